// vitrine eval: loss and accuracy of a model on a data set's test part.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/cli/commands.h"
#include "apps/cli/model_options.h"
#include "apps/cli/open_device.h"
#include "apps/cli/progress.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/evaluate.h"
#include "train/logs/confusion.h"
#include "train/logs/predictions.h"

namespace vitrine::cli {
namespace {

struct EvalFlags {
  ModelFlags model;
  std::string data;
  uint64_t batch = 64;
  bool train_part = false, json = false;
  std::vector<std::string> confusion;
  std::string predictions;
};

void evaluate(const EvalFlags& flags, const CommonOptions& common) {
  for (const std::string& file : flags.confusion) require_confusion_name(file);
  const PlanOptions plan = plan_options(flags.model);
  const Model model = open_model(flags.model, common);
  const bool tells = flags.json || !flags.confusion.empty();
  if (tells) require_few_classes(model.config.classes);
  const auto data = open_evaluation_set(model, flags.data, flags.train_part ? Split::train : Split::test);

  const std::unique_ptr<Device> device = open_device(common);
  PipelineStore pipelines(*device);
  Progress progress("pictures", data->count());
  std::vector<std::string> names = data->class_names();
  if (!model.labels.empty()) {
    names.resize(model.config.classes);
    for (uint64_t c = 0; c < names.size(); ++c) names[c] = model.labels[c];
  }
  std::optional<Predictions> predictions;
  if (!flags.predictions.empty()) predictions.emplace(pipelines, model, *data, names, flags.predictions);
  Confusion confusion(model.config.classes, std::move(names));
  TakeResults take;
  if (tells || predictions) {
    take = [&](std::span<const float> results, std::span<const uint32_t> labels) {
      if (tells) confusion.add(results, labels);
      if (predictions) predictions->add(results, labels);
    };
  }
  const TestResult result = evaluate_on(
      pipelines, model, *data,
      {.dtype = storage_type(common.dtype, device->capabilities()),
       .plan = plan,
       .warn = warn,
       .batch = std::min<uint64_t>(flags.batch, data->count())},
      [&](uint64_t done) { progress.show(done); }, take);
  progress.clear();
  nlohmann::ordered_json line{
      {"test_loss", result.loss}, {"test_accuracy", result.accuracy}, {"test_top5", result.top5}};
  if (flags.json) line.update(to_json(confusion));
  std::printf("%s\n", line.dump().c_str());
  // Whatever comes of the files, the result is there.
  std::fflush(stdout);
  for (const std::string& file : flags.confusion) write_confusion(file, confusion);
  if (predictions) predictions->commit();
}

}  // namespace

void add_eval(CLI::App& app, const CommonOptions& common) {
  CLI::App* command = app.add_subcommand("eval", "Loss and accuracy of a model on a data set");
  auto flags = std::make_shared<EvalFlags>();
  add_model_flags(*command, flags->model);
  command->add_option("--data", flags->data, "Folder with the data set, as for train")->required();
  command->add_flag("--train-part", flags->train_part,
                    "On the pictures that one trains on, instead of the test part");
  command->add_option("--batch", flags->batch, "Images that are computed together, at most")
      ->check(CLI::Range(uint64_t{1}, uint64_t{4096}))
      ->capture_default_str();
  command
      ->add_option(
          "--confusion", flags->confusion,
          "Writes which classes were taken for which: FILE.csv, FILE.png, or both with a comma between")
      ->delimiter(',');
  command
      ->add_option(
          "--predictions", flags->predictions,
          "Writes what the model says of every picture: file, label, predicted class and its probability")
      ->type_name("FILE.csv");
  command->add_flag("--json", flags->json,
                    "With figures for each class and the confusion matrix in the JSON object");
  command->callback([&common, flags] { evaluate(*flags, common); });
}

}  // namespace vitrine::cli

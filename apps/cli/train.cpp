// vitrine train: learns a classifier from a folder of labelled pictures.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/cli/commands.h"
#include "apps/cli/model_options.h"
#include "apps/cli/open_device.h"
#include "apps/cli/progress.h"
#include "runtime/util/error.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"
#include "runtime/util/unfinished.h"
#include "train/training_run.h"

namespace vitrine::cli {
namespace {

struct TrainFlags {
  std::string data, config, out, model, variants, fusions = "all", layouts = "kernels";
  std::vector<std::string> set;
  std::optional<uint64_t> epochs, batch_size, seed;
  std::optional<double> lr;
  double checkpoint_seconds = 60;
  bool resume = false, recompute = false, untuned = false;
  std::optional<std::string> validate_every;
  std::optional<uint64_t> patience, keep;
  bool tensorboard = false;
};

// Set by Ctrl-C and by a polite kill; looked at after every batch.
std::atomic<bool> stop_wanted{false};

extern "C" void ask_to_stop(int signal) {
  stop_wanted = true;
  remove_unfinished_on(signal);  // whoever asks twice means it
}

uint64_t validate_every_of(const std::string& text) {
  if (text == "epoch") return TrainConfig::every_epoch;
  uint64_t updates = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), updates);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error(ErrorCode::usage,
                "--validate-every: found " + in_quotes(text) + ", expected epoch or a number of updates");
  }
  return updates;
}

TrainConfig config_of(const TrainFlags& flags, const CommonOptions& common) {
  TrainConfig config = read_train_config(flags.config);
  for (const std::string& assignment : flags.set) set_field(config.model, assignment);
  if (flags.epochs) config.epochs = *flags.epochs;
  if (flags.batch_size) config.batch_size = *flags.batch_size;
  if (flags.lr) config.lr = *flags.lr;
  if (flags.seed) config.seed = *flags.seed;
  if (common.dtype != "auto") config.precision = common.dtype == "f16" ? Precision::f16 : Precision::f32;
  if (flags.validate_every) config.validate_every = validate_every_of(*flags.validate_every);
  if (flags.patience) config.patience = *flags.patience;
  if (flags.keep) config.keep = *flags.keep;
  if (flags.tensorboard) config.tensorboard = true;
  config.validate(flags.config);
  return config;
}

std::string time_text(double seconds) {
  const auto whole = static_cast<uint64_t>(std::llround(std::min(seconds, 1e9)));
  char text[64];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%llu:%02llu:%02llu", static_cast<unsigned long long>(whole / 3600),
                  static_cast<unsigned long long>(whole / 60 % 60),
                  static_cast<unsigned long long>(whole % 60));
  } else {
    std::snprintf(text, sizeof text, "%llu:%02llu", static_cast<unsigned long long>(whole / 60),
                  static_cast<unsigned long long>(whole % 60));
  }
  return text;
}

std::string bar(const TrainingProgress& progress) {
  constexpr uint64_t width = 24;
  const uint64_t full = progress.batches * width / std::max<uint64_t>(progress.total, 1);
  char text[160];
  std::snprintf(text, sizeof text, "epoch %llu/%llu [%s%s] loss %.4f, %.0f images/s, %s left",
                static_cast<unsigned long long>(progress.epoch),
                static_cast<unsigned long long>(progress.epochs), std::string(full, '#').c_str(),
                std::string(width - full, '.').c_str(), progress.loss, progress.images_per_second,
                time_text(progress.seconds_left).c_str());
  return text;
}

void print_line(const nlohmann::ordered_json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

void add_validation(nlohmann::ordered_json& line, const ValidationResult& validation) {
  line["val_loss"] = validation.result.loss;
  line["val_accuracy"] = validation.result.accuracy;
  line["val_top5"] = validation.result.top5;
  line["best"] = validation.best;
}

nlohmann::ordered_json line_of(const EpochReport& report) {
  nlohmann::ordered_json line{{"epoch", report.epoch},
                              {"loss", report.loss},
                              {"seconds", report.seconds},
                              {"images_per_second", report.images_per_second}};
  if (report.skipped_steps > 0) line["skipped_steps"] = report.skipped_steps;
  if (report.validation) add_validation(line, *report.validation);
  return line;
}

nlohmann::ordered_json line_of(const ValidationResult& validation) {
  nlohmann::ordered_json line{{"step", validation.update}, {"in_epoch", validation.epoch}};
  add_validation(line, validation);
  return line;
}

void train(const TrainFlags& flags, const CommonOptions& common) {
  // Files first: what is wrong with them needs no device to be found.
  TrainConfig config = config_of(flags, common);
  const std::filesystem::path out = flags.out;
  if (!flags.resume && path_exists(checkpoint_in(out), ErrorCode::failed)) {
    throw Error(ErrorCode::usage, shown(flags.out) +
                                      " holds a training already, expected another --out, or "
                                      "--resume to go on with it");
  }
  std::optional<Model> start;
  if (!flags.model.empty()) {
    start = vitrine::open_model({.model = flags.model, .seed = config.seed}, warn);
    if (!(start->config == config.model)) {
      throw Error(ErrorCode::bad_file, shown(flags.model) + " is a model of " + to_string(start->config) +
                                           ", the configuration's is " + to_string(config.model));
    }
    std::ranges::for_each(start->untrained, warn);
    if (!config.preprocess && start->preprocess_error.empty())
      config.preprocess = start->preprocess.with_size(config.model.image_height, config.model.image_width);
  }
  require_no_other_settings(config, out);
  std::error_code none;
  if (std::filesystem::equivalent(flags.config, out / "config.json", none)) {
    throw Error(ErrorCode::usage, shown(flags.config) +
                                      " would be overwritten by the trained model's config.json, expected "
                                      "another --out");
  }
  const DatasetOptions data_options = dataset_options(config);
  const auto data = open_dataset(flags.data, Split::train, data_options);
  const auto test = open_dataset(flags.data, Split::test, data_options);
  std::unique_ptr<Dataset> validation;
  if (config.validate_every > 0) validation = open_dataset(flags.data, Split::validation, data_options);
  const std::unique_ptr<Device> device = open_device(common);
  PipelineStore pipelines(*device);
  TrainingOptions options{.out = out,
                          .resume = flags.resume,
                          .recompute = flags.recompute,
                          .validation = validation.get(),
                          .checkpoint_seconds = flags.checkpoint_seconds,
                          .weights = start ? start->constants.get() : nullptr};
  options.plan = plan_options({.variants = flags.variants,
                               .fusions = flags.fusions,
                               .layouts = flags.layouts,
                               .untuned = flags.untuned});
  TrainingRun run(pipelines, config, *data, options);
  if (config.precision == Precision::f16 && !run.trainer().rounds()) {
    warn("f16 was asked for, but no product of this training is of f16 on " + device->capabilities().name +
         "; it trains in f32");
  }

  StatusLine line;
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  const bool done = run.run({.progress =
                                 [&](const TrainingProgress& progress) {
                                   if (line.due()) line.show(bar(progress));
                                 },
                             .epoch =
                                 [&](const EpochReport& report) {
                                   line.clear();
                                   print_line(line_of(report));
                                 },
                             .validation =
                                 [&](const ValidationResult& validated) {
                                   line.clear();
                                   print_line(line_of(validated));
                                 }},
                            stop_wanted);
  line.clear();
  remove_unfinished_on(SIGINT);
  remove_unfinished_on(SIGTERM);
  if (!done) {
    throw Error(ErrorCode::failed, "stopped in epoch " + std::to_string(run.position().epoch + 1) + " of " +
                                       std::to_string(config.epochs) +
                                       " and saved; the same command with "
                                       "--resume goes on");
  }
  if (run.ended_early()) {
    std::fprintf(stderr, "ended after %llu updates: no better validation in %llu\n",
                 static_cast<unsigned long long>(run.trainer().counts().updates),
                 static_cast<unsigned long long>(run.position().history.best.since));
  }
  const TestResult result = run.test_best(*test);
  print_line({{"test_loss", result.loss}, {"test_accuracy", result.accuracy}, {"test_top5", result.top5}});
}

}  // namespace

void add_train(CLI::App& app, const CommonOptions& common) {
  CLI::App* command = app.add_subcommand("train", "Train a classifier on a data set");
  auto flags = std::make_shared<TrainFlags>();
  command
      ->add_option("--data", flags->data,
                   "Folder with MNIST's or CIFAR-10's files, or with train/CLASS/picture.jpg")
      ->required();
  command->add_option("--config", flags->config, "JSON: the model, the optimiser and how long")->required();
  command->add_option("--out", flags->out, "Folder for checkpoints and the trained model")->required();
  command->add_option("--set", flags->set, "Overrides a field of the configuration's model: KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--epochs", flags->epochs, "Instead of the configuration's");
  command->add_option("--batch-size", flags->batch_size, "Instead of the configuration's");
  command->add_option("--lr", flags->lr, "Learning rate, instead of the configuration's");
  command->add_option("--model", flags->model, "Begin with the weights of this model instead of random ones");
  command->add_flag("--resume", flags->resume, "Go on from the checkpoint in --out, if there is one");
  command->add_flag("--recompute", flags->recompute,
                    "Compute each block's values again instead of keeping them: less memory, more time");
  command
      ->add_option("--checkpoint-seconds", flags->checkpoint_seconds,
                   "How often to save, besides at every epoch's end")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option(
      "--validate-every", flags->validate_every,
      "epoch, or a number of updates: how often it is tested on the validation part, and its best "
      "model kept; instead of the configuration's");
  command->add_option("--patience", flags->patience,
                      "Ends after so many validations without a better one; 0: never");
  command->add_flag("--tensorboard", flags->tensorboard,
                    "Writes TensorBoard's events besides --out's log.csv");
  command->add_option("--keep", flags->keep,
                      "Checkpoints to keep: with more than 1 those of the last epochs' ends, too");
  command->add_option("--variant", flags->variants,
                      "Kernels to use: operator=kernel, with commas between them");
  command
      ->add_option("--fuse", flags->fusions, "Rules of fusion: all, none, or some with commas between them")
      ->capture_default_str();
  add_layouts_flag(*command, flags->layouts);
  command->add_flag("--json", "As it is anyway: a JSON object a line, for each epoch and for the test part");
  command->callback([&app, &common, flags] {
    if (app.get_option("--seed")->count() > 0) flags->seed = common.seed;
    train(*flags, common);
  });
}

}  // namespace vitrine::cli

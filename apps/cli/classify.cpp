// vitrine classify: what a model sees in pictures.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/picture_stream.h"
#include "apps/cli/text_options.h"
#include "model/run/top_answers.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

struct ClassifyFlags {
  StreamFlags stream;
  uint64_t top = 5;
  bool json = false;
  std::string labels;
  std::vector<std::string> templates;
};

void print_json(const std::filesystem::path& image, const std::vector<TopAnswer>& guesses) {
  nlohmann::ordered_json line;
  line["image"] = image.string();
  line["top"] = nlohmann::ordered_json::array();
  for (const TopAnswer& guess : guesses) {
    nlohmann::ordered_json entry;
    entry["index"] = guess.index;
    entry["label"] = guess.label;
    entry["probability"] = guess.probability;
    line["top"].push_back(std::move(entry));
  }
  std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

// How many characters of UTF-8, as a terminal would count most of them.
size_t columns_of(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

void print_text(const std::filesystem::path& image, const std::vector<TopAnswer>& guesses) {
  std::printf("%s\n", shown(image).c_str());
  size_t widest = 0, digits = 1;
  std::vector<std::string> labels;
  for (const TopAnswer& guess : guesses) {
    labels.push_back(shown(guess.label));
    widest = std::max(widest, columns_of(labels.back()));
    digits = std::max(digits, std::to_string(guess.index).size());
  }
  for (size_t i = 0; i < guesses.size(); ++i) {
    const int padding = static_cast<int>(widest - columns_of(labels[i]));
    std::printf("  %*llu  %s%*s  %6.2f %%\n", static_cast<int>(digits),
                static_cast<unsigned long long>(guesses[i].index), labels[i].c_str(), padding, "",
                100.0 * static_cast<double>(guesses[i].probability));
  }
}

// Which of some labels a picture is like, by a model that was trained on pictures with their texts.
void classify_by_labels(const ClassifyFlags& flags, const CommonOptions& common) {
  const std::vector<std::string> labels = labels_of("--labels", flags.labels);
  require_places(flags.templates);
  if (flags.stream.model.model.empty()) {
    throw Error(ErrorCode::usage,
                "found --labels without --model, expected a CLIP or SigLIP that reads them");
  }
  const Model model = open_picture_model(flags.stream.model, flags.stream.picture, common, true);
  const TextModel text = open_text_model_of(model, warn);
  std::vector<float> vectors;
  const auto read_labels = [&](PipelineStore& pipelines) {
    TextRunner runner(pipelines, text, text_runner_options(flags.stream.model));
    vectors = label_vectors(runner, labels, flags.templates);
  };
  const auto take = [&](const std::filesystem::path& image, std::span<const float> features) {
    const std::vector<float> probabilities = text.probabilities(text.logits(features, vectors));
    const std::vector<TopAnswer> guesses = top_answers(probabilities, flags.top, Labels(labels));
    flags.json ? print_json(image, guesses) : print_text(image, guesses);
  };
  const Unreadable unreadable =
      stream_pictures(flags.stream, common, model, Result::features, take, read_labels);
  std::fflush(stdout);
  unreadable.report();
}

void classify(const ClassifyFlags& flags, const CommonOptions& common) {
  if (!flags.labels.empty()) {
    classify_by_labels(flags, common);
    return;
  }
  if (!flags.templates.empty()) {
    throw Error(ErrorCode::usage, "found --template without --labels, expected both");
  }
  const Model model = open_picture_model(flags.stream.model, flags.stream.picture, common, true);
  if (model.config.classes == 0) {
    throw Error(ErrorCode::usage,
                shown(model.name) +
                    ": found a model without a classifier, expected one for classify "
                    "(vitrine embed gives its features; --labels names classes for CLIP and "
                    "SigLIP)");
  }
  const Labels labels = answer_labels(model, warn);
  const auto take = [&](const std::filesystem::path& image, std::span<const float> probabilities) {
    const std::vector<TopAnswer> guesses = top_answers(probabilities, flags.top, labels);
    flags.json ? print_json(image, guesses) : print_text(image, guesses);
  };
  const Unreadable unreadable = stream_pictures(flags.stream, common, model, Result::probabilities, take);
  std::fflush(stdout);
  unreadable.report();
}

}  // namespace

void add_classify(CLI::App& app, const CommonOptions& common) {
  CLI::App* command = app.add_subcommand("classify", "What a model sees in pictures");
  auto flags = std::make_shared<ClassifyFlags>();
  add_stream_flags(*command, flags->stream);
  command->add_option("--top", flags->top, "How many of the likeliest classes to name")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "A JSON object a picture, one a line");
  command->add_option(
      "--labels", flags->labels,
      "For CLIP and SigLIP: what pictures may be, with commas between, or a file of one a line");
  command
      ->add_option("--template", flags->templates,
                   "A text with {} where a label goes, \"a photo of a {}\"; of several the mean is taken")
      ->type_name("TEXT");
  command->callback([&common, flags] { classify(*flags, common); });
}

}  // namespace vitrine::cli

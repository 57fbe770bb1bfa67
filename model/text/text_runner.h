// A text tower on a device.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/text_tower.h"
#include "runtime/graph/executable.h"
#include "runtime/graph/pipeline_store.h"

namespace vitrine {

struct TextRunnerOptions {
  PlanOptions plan = {};
  uint64_t batch = 16;  // texts that are computed together, at most
};

// Always in f32: nothing watches over f16's range here, and texts are short.
class TextRunner {
 public:
  // Both must outlive the runner.
  TextRunner(PipelineStore& pipelines, const TextModel& model, TextRunnerOptions options = {});

  // A row of config.width numbers each, not normalised.
  std::vector<float> run(const std::vector<std::string>& texts);

 private:
  Executable& executable(uint64_t batch);
  PipelineStore& pipelines_;
  const TextModel& model_;
  TextRunnerOptions options_;
  WeightStore weights_;
  std::vector<float> positions_;
  std::map<uint64_t, std::unique_ptr<Executable>> executables_;
};

// Which of its own tokens a text's vector is taken from. Error(bad_file) where the tokenizer gave no end.
uint64_t pooled_token(const TextConfig& config, std::span<const uint32_t> ids, const std::string& text);

// What stands between commas, without white space around it and without empty ones.
std::vector<std::string> labels_in(std::string_view text);

// The template with the label in every place of {}.
std::string with_label(std::string pattern, std::string_view label);

// A row a label, of length 1: the mean over the templates of the vectors, each of length 1, of the texts that
// are made by putting the label where a template has {}. Without templates the label is the text.
std::vector<float> label_vectors(TextRunner& runner, const std::vector<std::string>& labels,
                                 const std::vector<std::string>& templates);

}  // namespace vitrine

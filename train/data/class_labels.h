// Which class each sample is of, as files spell it: numbers, or names that are still to be numbered.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "train/data/dataset.h"

namespace vitrine {

// A number from 0 to the largest that a class can have, in decimal digits alone.
std::optional<uint32_t> class_number(std::string_view text);
// More aren't taken from a file: with each there is a row of the head.
constexpr uint32_t most_classes = 4'000'000;

class SpelledLabels {
 public:
  void add(std::string_view label);
  uint64_t size() const { return of_samples_.size(); }
  // Whether all of them are class numbers.
  bool numbers() const;
  const std::vector<std::string>& spellings() const { return spellings_; }
  std::string_view operator[](uint64_t i) const { return spellings_[of_samples_[i]]; }
  const std::vector<uint32_t>& of_samples() const { return of_samples_; }
  void set(std::vector<std::string> spellings, std::vector<uint32_t> of_samples);

 private:
  std::vector<std::string> spellings_;  // each once
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<uint32_t> of_samples_;
};

struct NumberedLabels {
  std::vector<uint32_t> labels;
  uint32_t classes = 0;
  std::vector<std::string> class_names;  // empty where they are numbers
};

// The numbers of the labels of `wanted`. Those of the training set, `train`, decide: names are numbered in
// their order, and where all are numbers they stand for themselves. `classes` is what the model has, or 0.
// `sample` says which one is meant, for the Error(bad_file) about a label that isn't a class.
NumberedLabels number_labels(const SpelledLabels& train, const SpelledLabels& wanted, uint32_t classes,
                             const std::function<std::string(uint64_t)>& sample);

}  // namespace vitrine

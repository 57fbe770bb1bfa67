// Which classes a model takes for which.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "images/image.h"

namespace vitrine {

struct ClassFigures {
  uint64_t count = 0;  // samples of the class
  // Of those that were taken for it, the share that is; of those that are, the share that was taken for it.
  // NaN where there are none.
  double precision = 0, recall = 0;
};

class Confusion {
 public:
  // One name a class, or none.
  explicit Confusion(uint64_t classes, std::vector<std::string> names = {});

  // results [labels.size(), classes]. A sample is taken for the class with the largest number, of equal ones
  // the first.
  void add(std::span<const float> results, std::span<const uint32_t> labels);

  uint64_t classes() const { return classes_; }
  std::string name(uint64_t number) const;  // its number where it has none
  uint64_t count(uint64_t label, uint64_t predicted) const;
  // Of every class: as often as they are labels, and as often as something was taken for them.
  const std::vector<uint64_t>& labelled() const { return labelled_; }
  const std::vector<uint64_t>& predicted() const { return predicted_; }
  ClassFigures figures(uint64_t number) const;

 private:
  uint64_t classes_;
  std::vector<std::string> names_;
  // Most of a large matrix is nothing.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> counts_;
  std::vector<uint64_t> labelled_, predicted_;
};

// {"classes": [{"name", "count", "precision", "recall"}, ...], "confusion": [[...], ...]}: a row a label, a
// column for what it was taken for. A share that there is not is null.
nlohmann::ordered_json to_json(const Confusion& confusion);
// A line a label: its name, the counts by what it was taken for, count, precision and recall.
std::string to_csv(const Confusion& confusion);
// The matrix in shades, each row by its own largest number; with the counts and the names of all classes
// where they have room, and of some where there are many.
Image picture_of(const Confusion& confusion);

// Error(usage) where a matrix of so many classes is too large to be told; ask before there is one.
void require_few_classes(uint64_t classes);
// As the name's end says: .csv or .png. Error(usage) for others; ask before there is anything to write.
void require_confusion_name(const std::filesystem::path& file);
void write_confusion(const std::filesystem::path& file, const Confusion& confusion);

}  // namespace vitrine

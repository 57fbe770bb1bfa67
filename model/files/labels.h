// What a classifier's outputs are called.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace vitrine {

class Labels {
 public:
  Labels() = default;
  explicit Labels(std::vector<std::string> names) : names_(std::move(names)) {}

  bool empty() const { return names_.empty(); }
  // What the class is called, as the file has it, control characters and all; "class 281" where nothing
  // says it.
  std::string operator[](uint64_t index) const;

 private:
  std::vector<std::string> names_;  // "" where there is none
};

// From Hugging Face's "id2label", or timm's "label_names" (a list, or an object whose keys are indices) with
// "label_descriptions", which then are the names. No labels where the file has none or the model has no
// classes. Throws Error(bad_file) that names `file` for labels that are malformed or of more classes
// than the model has; of Hugging Face's there must be just as many.
Labels read_labels(const nlohmann::json& config, uint64_t classes, const std::string& file);

}  // namespace vitrine

// What a model says of every sample of a data set, as a table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "model/files/weights.h"
#include "model/run/module_runner.h"
#include "runtime/util/atomic_file.h"
#include "train/data/dataset.h"

namespace vitrine {

// A CSV file: "index,file,label,predicted,probability", a line a sample. Probabilities are the device's, to
// the bit those of `vitrine classify`. The file appears whole, with commit(), or not at all.
class Predictions {
 public:
  // Pipelines, model and data have to outlive this. `names`: one a class, or none.
  Predictions(PipelineStore& pipelines, const Model& model, const Dataset& data,
              std::vector<std::string> names, const std::filesystem::path& to);

  // Of the next samples, in their order: the model's own results [labels, classes].
  void add(std::span<const float> results, std::span<const uint32_t> labels);
  void commit();

 private:
  void write();
  std::string name(uint64_t number) const;

  const Model& model_;
  const Dataset& data_;
  std::vector<std::string> names_;
  AtomicFile file_;
  ModuleRunner softmax_;
  std::vector<float> results_;
  std::vector<uint32_t> labels_;
  uint64_t written_ = 0;
};

}  // namespace vitrine

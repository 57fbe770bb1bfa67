// What a model's heads see of every sample, where that is the same in every epoch: computed once, and given
// in the order in which a BatchLoader would give the pictures.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "train/data/batch_loader.h"
#include "train/data/dataset.h"
#include "train/data/epoch_order.h"

namespace vitrine {

class FeatureCache {
 public:
  // The data set has to outlive this. `seed` and `parts` as a BatchLoader has them.
  FeatureCache(const Dataset& data, uint64_t width, const BatchParts& parts, uint64_t seed);
  // What it takes on the host.
  static uint64_t bytes(uint64_t samples, uint64_t width) { return samples * width * sizeof(float); }

  // The features of the samples that follow, as they are stored: [n, width].
  void add(std::span<const float> rows);
  bool complete() const { return features_.size() == data_.count() * width_; }

  // Writes a part of a batch once all are there: features [rows, width] and labels. What lies behind the
  // part's samples stays as it is.
  Batch fill(uint32_t epoch, uint64_t part, std::span<float> features, std::span<uint32_t> labels);

 private:
  const Dataset& data_;
  uint64_t width_;
  PartSizes sizes_;
  uint64_t seed_;
  std::vector<float> features_;
  std::optional<EpochOrder> order_;
  uint32_t epoch_ = 0;  // of the order
};

}  // namespace vitrine

#include "train/run/feature_cache.h"

#include <algorithm>

#include "runtime/util/error.h"

namespace vitrine {

FeatureCache::FeatureCache(const Dataset& data, uint64_t width, const BatchParts& parts, uint64_t seed)
    : data_(data),
      width_(width),
      sizes_({.samples = data.count(), .batch = static_cast<uint32_t>(parts.batch)}, parts),
      seed_(seed) {
  features_.reserve(data.count() * width);
}

void FeatureCache::add(std::span<const float> rows) {
  if (rows.size() % width_ != 0 || features_.size() + rows.size() > data_.count() * width_) {
    throw Error(ErrorCode::failed, data_.name() + ": found " + std::to_string(rows.size()) +
                                       " numbers, expected rows of " + std::to_string(width_) +
                                       " for at most " + std::to_string(data_.count()) + " samples");
  }
  features_.insert(features_.end(), rows.begin(), rows.end());
}

Batch FeatureCache::fill(uint32_t epoch, uint64_t part, std::span<float> features,
                         std::span<uint32_t> labels) {
  if (!order_ || epoch_ != epoch) {
    order_.emplace(data_.count(), seed_, epoch);
    epoch_ = epoch;
  }
  const uint32_t size = sizes_.size(part);
  for (uint32_t row = 0; row < size; ++row) {
    const uint32_t sample = order_->samples()[sizes_.place(part, row)];
    const auto from = std::span(features_).subspan(sample * width_, width_);
    std::ranges::copy(from, features.subspan(row * width_).begin());
    labels[row] = data_.label(sample);
  }
  return {.epoch = epoch, .index = part, .size = size};
}

}  // namespace vitrine

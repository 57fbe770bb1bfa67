// In which order an epoch takes the samples, and how they make batches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/data/batch_parts.h"

namespace vitrine {

// The samples of each class that has any.
using SamplesOfClasses = std::vector<std::vector<uint32_t>>;

// A permutation of the samples that depends on the seed and the number of the epoch alone: training that is
// taken up in the middle of an epoch goes on as if it had never stopped.
class EpochOrder {
 public:
  EpochOrder(uint64_t count, uint64_t seed, uint32_t epoch);
  static EpochOrder as_stored(uint64_t count);
  // As many samples, of which each class is equally likely and of a class each sample, drawn anew every time:
  // some come twice and some not at all.
  static EpochOrder balanced(const SamplesOfClasses& classes, uint64_t seed, uint32_t epoch);

  // As many samples: the first ones of the order, each `times` times, one after the other. timm's
  // RepeatAugSampler of one process does so; its epoch ends at a multiple of 256 besides.
  EpochOrder repeated(uint64_t times) &&;

  std::span<const uint32_t> samples() const { return samples_; }
  // What whatever is random about the sample at this place of the order is drawn with: the sample's own
  // number, and where samples may come more than once the place's.
  uint32_t draw_number(uint64_t place) const {
    return comes_again_ ? static_cast<uint32_t>(place) : samples_[place];
  }

 private:
  EpochOrder() = default;
  std::vector<uint32_t> samples_;
  bool comes_again_ = false;
};

struct BatchSizes {
  uint64_t samples = 0;
  uint32_t batch = 0;
  bool drop_last = false;  // leaves out the last batch where it would be smaller

  uint64_t batches() const { return drop_last ? samples / batch : (samples + batch - 1) / batch; }
  uint64_t first(uint64_t b) const { return b * batch; }
  uint32_t size(uint64_t b) const {
    const uint64_t left = samples - first(b);
    return left < batch ? static_cast<uint32_t>(left) : batch;
  }
};

// The same of the parts that batches are cut into, counted over all of an epoch's batches.
class PartSizes {
 public:
  PartSizes(BatchSizes batches, BatchParts parts) : batches_(batches), parts_(parts) {}

  uint64_t parts() const {
    const uint64_t all = batches_.batches();
    return all == 0 ? 0 : (all - 1) * parts_.count() + parts_.count(batches_.size(all - 1));
  }
  uint64_t first_of_batch(uint64_t b) const { return b * parts_.count(); }
  uint32_t size(uint64_t p) const {
    return static_cast<uint32_t>(parts_.size(batches_.size(batch_of(p)), p % parts_.count()));
  }
  // Where in the epoch's order a row of a part lies.
  uint64_t place(uint64_t p, uint64_t row) const {
    const uint64_t b = batch_of(p);
    return batches_.first(b) + parts_.place(batches_.size(b), p % parts_.count() * parts_.part + row);
  }

 private:
  uint64_t batch_of(uint64_t p) const { return p / parts_.count(); }
  BatchSizes batches_;
  BatchParts parts_;
};

}  // namespace vitrine

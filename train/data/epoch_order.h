// In which order an epoch takes the samples, and how they make batches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vitrine {

// A permutation of the samples that depends on the seed and the number of the epoch alone: training that is
// taken up in the middle of an epoch goes on as if it had never stopped.
class EpochOrder {
 public:
  EpochOrder(uint64_t count, uint64_t seed, uint32_t epoch);
  static EpochOrder as_stored(uint64_t count);

  std::span<const uint32_t> samples() const { return samples_; }

 private:
  EpochOrder() = default;
  std::vector<uint32_t> samples_;
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

}  // namespace vitrine

#include "train/data/epoch_order.h"

#include <numeric>
#include <utility>

#include "train/data/random_streams.h"

namespace vitrine {

EpochOrder EpochOrder::as_stored(uint64_t count) {
  EpochOrder order;
  order.samples_.resize(count);
  std::iota(order.samples_.begin(), order.samples_.end(), 0u);
  return order;
}

// Fisher and Yates: position i gets one of those that are left.
EpochOrder::EpochOrder(uint64_t count, uint64_t seed, uint32_t epoch) : EpochOrder(as_stored(count)) {
  const RandomStream stream = stream_for(seed, RandomUse::epoch_order, epoch);
  for (uint64_t i = 0; i < count; ++i) {
    const Philox::Block words = stream.block(i);
    const auto left = static_cast<uint32_t>(count - i);
    std::swap(samples_[i], samples_[i + below(left, words[0], words[1])]);
  }
}

}  // namespace vitrine

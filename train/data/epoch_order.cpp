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

EpochOrder EpochOrder::balanced(const SamplesOfClasses& classes, uint64_t seed, uint32_t epoch) {
  uint64_t count = 0;
  for (const std::vector<uint32_t>& samples : classes) count += samples.size();
  EpochOrder order;
  order.comes_again_ = true;
  order.samples_.resize(count);
  const RandomStream stream = stream_for(seed, RandomUse::sampling, epoch);
  for (uint64_t i = 0; i < count; ++i) {
    const Philox::Block words = stream.block(i);
    const auto& samples = classes[below(static_cast<uint32_t>(classes.size()), words[0], words[1])];
    order.samples_[i] = samples[below(static_cast<uint32_t>(samples.size()), words[2], words[3])];
  }
  return order;
}

EpochOrder EpochOrder::repeated(uint64_t times) && {
  if (times == 1) return std::move(*this);
  comes_again_ = true;
  // From behind: what is read lies in front of what is written.
  for (uint64_t i = samples_.size(); i-- > 0;) samples_[i] = samples_[i / times];
  return std::move(*this);
}

}  // namespace vitrine

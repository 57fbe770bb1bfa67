#include "train/logs/loss_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/util/four_digits.h"

namespace vitrine {
namespace {

// What falls by less is as good as flat, and may rise by as little.
constexpr double least_fall = 0.1;

}  // namespace

std::optional<std::string> LossWatch::add(uint64_t update, double loss) {
  if (said_ || !std::isfinite(loss)) return std::nullopt;
  if (counted_ == 0) first_update_ = update;
  sum_ += loss;
  if (++counted_ < span) return std::nullopt;
  const double mean = std::exchange(sum_, 0) / static_cast<double>(std::exchange(counted_, 0));
  if (!first_) {
    first_ = least_ = mean;
    return std::nullopt;
  }
  const double fallen = *first_ - *least_;
  const bool forgets = fallen >= least_fall * *first_ && mean - *least_ >= fallen / 2;
  const bool diverges = mean >= 1.5 * *first_;
  if (!forgets && !diverges) {
    least_ = std::min(*least_, mean);
    return std::nullopt;
  }
  said_ = true;
  return "the loss rises: " + four_digits(mean) + " is the mean of updates " + std::to_string(first_update_) +
         " to " + std::to_string(update) + ", where it began with " + four_digits(*first_) +
         " and had come to " + four_digits(*least_);
}

}  // namespace vitrine

#include "model/run/top_answers.h"

#include <algorithm>
#include <numeric>

namespace vitrine {

std::vector<TopAnswer> top_answers(std::span<const float> probabilities, uint64_t count,
                                   const Labels& labels) {
  std::vector<uint64_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), uint64_t{0});
  // NaN, which compares with nothing, counts as less than any number.
  const auto rank = [&](uint64_t i) {
    return probabilities[i] == probabilities[i] ? probabilities[i] : -1.0f;
  };
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min<uint64_t>(count, order.size()));
  std::partial_sort(order.begin(), middle, order.end(),
                    [&](uint64_t a, uint64_t b) { return rank(a) != rank(b) ? rank(a) > rank(b) : a < b; });
  std::vector<TopAnswer> answers;
  for (auto i = order.begin(); i != middle; ++i) answers.push_back({*i, labels[*i], probabilities[*i]});
  return answers;
}

}  // namespace vitrine

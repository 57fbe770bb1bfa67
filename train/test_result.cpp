#include "train/test_result.h"

#include <algorithm>
#include <cmath>

#include "runtime/util/error.h"

namespace vitrine {
namespace {

// How many numbers go before the one at `label`.
uint64_t place_of(std::span<const float> row, uint32_t label) {
  const float own = row[label];
  if (std::isnan(own)) return row.size();
  const auto before = row.first(label), behind = row.subspan(label + 1);
  return static_cast<uint64_t>(std::ranges::count_if(before, [&](float x) { return !(x < own); }) +
                               std::ranges::count_if(behind, [&](float x) { return !(x <= own); }));
}

}  // namespace

void TestSums::add(std::span<const float> results, std::span<const uint32_t> labels) {
  if (labels.empty()) return;
  const size_t classes = results.size() / labels.size();
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto row = results.subspan(i * classes, classes);
    if (labels[i] >= classes) {
      throw Error(ErrorCode::bad_file, "a label is " + std::to_string(labels[i]) + ", the model has " +
                                           std::to_string(classes) + " classes");
    }
    const auto highest = std::ranges::max_element(row);
    double sum = 0;
    for (const float value : row) sum += std::exp(static_cast<double>(value) - *highest);
    loss_ += std::log(sum) + *highest - row[labels[i]];
    const bool correct = static_cast<uint64_t>(highest - row.begin()) == labels[i];
    correct_ += correct;
    among_five_ += correct || place_of(row, labels[i]) < 5;
  }
  samples_ += labels.size();
}

TestResult TestSums::result() const {
  const auto n = static_cast<double>(samples_);
  return {loss_ / n, static_cast<double>(correct_) / n, static_cast<double>(among_five_) / n};
}

}  // namespace vitrine

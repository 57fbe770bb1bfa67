#include "train/test_result.h"

#include <algorithm>
#include <cmath>

#include "runtime/util/error.h"

namespace vitrine {

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
    correct_ += static_cast<uint64_t>(highest - row.begin()) == labels[i];
  }
  samples_ += labels.size();
}

TestResult TestSums::result() const {
  const auto n = static_cast<double>(samples_);
  return {loss_ / n, static_cast<double>(correct_) / n};
}

}  // namespace vitrine

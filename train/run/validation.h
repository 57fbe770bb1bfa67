// What a model came to on samples that it isn't trained on, on the way.
#pragma once

#include <cmath>
#include <cstdint>

#include "train/test_result.h"

namespace vitrine {

struct ValidationResult {
  uint64_t update = 0;  // after so many
  uint64_t epoch = 0;   // in which that was, from 1
  TestResult result;
  bool best = false;  // so far
};

// The best one so far. It has the highest accuracy, and of equal ones the lowest loss; the first of those.
struct BestValidation {
  uint64_t count = 0;   // of validations
  uint64_t since = 0;   // of those behind the best
  uint64_t newest = 0;  // the update that the last one was behind
  double loss = 0, accuracy = 0;

  // Whether this one is better than those before it.
  bool add(uint64_t update, const TestResult& result) {
    const bool better = count == 0 || result.accuracy > accuracy ||
                        (result.accuracy == accuracy &&
                         (result.loss < loss || (std::isnan(loss) && !std::isnan(result.loss))));
    ++count;
    ++since;
    newest = update;
    if (!better) return false;
    since = 0;
    loss = result.loss;
    accuracy = result.accuracy;
    return true;
  }
  bool operator==(const BestValidation&) const = default;
};

}  // namespace vitrine

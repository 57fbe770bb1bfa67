// A classifier's answer in words: the likeliest classes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/files/labels.h"

namespace vitrine {

struct TopAnswer {
  uint64_t index = 0;  // of the class
  std::string label;
  float probability = 0;
};

// At most `count`, the best first; of equal ones the lower index, so that the order is the same everywhere.
// NaN comes last.
std::vector<TopAnswer> top_answers(std::span<const float> probabilities, uint64_t count,
                                   const Labels& labels);

}  // namespace vitrine

// Where a model's parameters lie while they are trained: all in one buffer, so that an update is one
// dispatch. Gradients and moments have buffers of the same layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/vit/parameters.h"
#include "runtime/graph/graph.h"

namespace vitrine {

struct ParameterPlace {
  Parameter parameter;
  uint64_t first = 0;  // element of the buffers
};

struct ParameterLayout {
  std::vector<ParameterPlace>
      places;  // those that are learned; weight decay concerns the matrices, which lie in front
  uint64_t decay_elements = 0;  // how far that goes
  uint64_t elements = 0;        // of a buffer. What lies between parameters stays 0

  const ParameterPlace& find(std::string_view name) const;  // throws where there is none
};

ParameterLayout layout_of(const ViTConfig& config);

// The buffers' names.
inline constexpr std::string_view parameters_buffer = "parameters", gradients_buffer = "gradients",
                                  moment1_buffer = "moment1", moment2_buffer = "moment2";

}  // namespace vitrine

// Where those parameters of a model that are trained lie meanwhile: all in one buffer, so that an update is
// one dispatch. Gradients and moments have buffers of the same layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/vit/parameters.h"
#include "runtime/graph/graph.h"
#include "train/train_config.h"

namespace vitrine {

struct ParameterPlace {
  Parameter parameter;
  uint64_t first = 0;  // element of the buffers
};

// What is updated alike: a range of the buffers.
struct UpdateGroup {
  uint64_t first = 0, elements = 0;
  uint64_t decay_elements = 0;  // weight decay concerns the matrices, which lie in front
  double rate = 1;              // of the learning rate
};

struct ParameterLayout {
  std::vector<ParameterPlace> places;  // those that are trained
  std::vector<UpdateGroup> groups;     // one where the learning rate is the same for all
  uint64_t elements = 0;               // of a buffer. What lies between parameters stays 0

  const ParameterPlace& find(std::string_view name) const;  // throws where there is none
};

ParameterLayout layout_of(const TrainConfig& config);
// Which layer a parameter belongs to, as timm counts them: 0 for what comes before the blocks, then the
// blocks, the last one with the final norm, and depth + 1 for the head. The learning rate of layer i is
// layer_decay^(depth + 1 - i) times that of the head.
uint64_t layer_of(const Parameter& parameter, uint64_t depth);
ParameterLayout layout_of(const ViTConfig& config);  // all of them

// The buffers' names.
inline constexpr std::string_view parameters_buffer = "parameters", gradients_buffer = "gradients",
                                  moment1_buffer = "moment1", moment2_buffer = "moment2",
                                  average_buffer = "average";

}  // namespace vitrine

// Where numbers of a training pass f16's range: a step's forward pass in f32, with the largest magnitude
// taken of all that f16 would multiply.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"
#include "train/training_graph.h"

namespace vitrine {

struct F16RangeGraph {
  // The forward pass with "losses", and where products may be rounded the output "magnitudes".
  std::shared_ptr<const Graph> graph;
  std::vector<std::string> products;  // which node each magnitude is of, in the order in which they run
};
inline constexpr std::string_view magnitudes_output = "magnitudes";

// Gradients are scaled before they are rounded, so what the forward pass multiplies is all that can be too
// large.
F16RangeGraph make_f16_range_graph(const TrainConfig& config, const ParameterLayout& layout,
                                   const StepGraphOptions& options);

}  // namespace vitrine

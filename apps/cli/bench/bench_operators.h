// Where a model's time goes: a profile's steps added up by operator and by layer.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/graph/executable.h"

namespace vitrine::cli {

// One row of a table: all dispatches of one operator, or of one layer in all blocks.
struct OperatorTime {
  std::string name, operator_name;
  std::string kernels;  // those that ran it, with commas
  uint64_t dispatches = 0;
  double seconds = 0;
  Cost cost;
};

// A node's name without the number of its block: "blocks.3.mlp.fc1" becomes "blocks.*.mlp.fc1".
std::string layer_of(const std::string& node_name);

struct OperatorTimes {
  // Each with the slowest row first.
  std::vector<OperatorTime> operators, layers;
};

// Of the profile whose total is the median: medians of each step would leave out what disturbs now this step
// and now that, and add up to less than a run takes. Empty without profiles.
OperatorTimes operator_times(const Plan& plan, std::vector<Profile> profiles);

// "operators" and "layers" as vitrine bench --json has them.
void add_operator_times(nlohmann::ordered_json& line, const OperatorTimes& times);

void print_operators(const OperatorTimes& times);

}  // namespace vitrine::cli

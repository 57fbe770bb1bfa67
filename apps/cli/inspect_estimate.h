// What `vitrine inspect --device-profile` says of a card that isn't here: kernels, tiles, and an estimate of
// their times.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/graph/plan.h"

namespace vitrine::cli {

// A line for each dispatch, those that repeat in every block together.
void print_estimate(const Plan& plan);
// Members of the plan's object, and of each of its "dispatches".
void add_estimate(nlohmann::ordered_json& line, const Plan& plan);

}  // namespace vitrine::cli

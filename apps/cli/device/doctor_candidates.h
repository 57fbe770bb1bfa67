// What a device could run besides what its plans choose: for vitrine doctor --candidates.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/graph/plan.h"

namespace vitrine::cli {

struct CandidateDispatches {
  std::string op, kernel;
  std::vector<Dispatch> dispatches;
};

// Every kernel of matmul and attention that is meant for the device, in every configuration that can run the
// largest such node of these plans; f32 and f16 nodes apart.
std::vector<CandidateDispatches> largest_candidates(std::span<const Plan* const> plans);

}  // namespace vitrine::cli

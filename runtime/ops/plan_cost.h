// What the model of costs (cost.h) expects of every dispatch of a plan.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/graph/plan.h"
#include "runtime/ops/cost.h"

namespace vitrine {

struct StepCost {
  Work work;  // as the kernel states it, else plain_work()
  bool stated = false;
  Estimate estimate;
  std::optional<uint64_t> shared_bytes;  // of a workgroup, as the shader declares them
};

// One a step.
std::vector<StepCost> costs_of(const Plan& plan);

}  // namespace vitrine

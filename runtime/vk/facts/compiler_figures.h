// What drivers' compilers say of a pipeline, in one vocabulary: every driver has words of its own.
#pragma once

#include <optional>
#include <span>

#include "runtime/vk/pipeline.h"

namespace vitrine {

struct CompilerFigures {
  std::optional<double> registers;      // of one invocation's lane
  std::optional<double> spills;         // registers that live in memory, or instructions that move them there
  std::optional<double> scratch_bytes;  // private memory of one invocation
  std::optional<double> occupancy;      // subgroups (Apple: invocations) that fit a core at once
  std::optional<double> cycles;         // the compiler's estimate for one subgroup
  std::optional<double> instructions;
  std::optional<double> code_bytes;

  // Values live in memory that belong in registers.
  bool spills_to_memory() const { return spills.value_or(0) > 0 || scratch_bytes.value_or(0) > 0; }
};

// Figures of a pipeline's executables; of several the worse one counts.
CompilerFigures figures_of(std::span<const ExecutableStatistics> executables);

}  // namespace vitrine

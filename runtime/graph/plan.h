// What a device will do for a graph, decided before any Vulkan object exists: kernels, specialization
// constants, parameters, group counts, memory, barriers, submission slices. Pure: the same graph,
// capabilities and options make the same plan, on any machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/fusion.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/memory_planner.h"
#include "runtime/graph/op.h"
#include "runtime/graph/submissions.h"
#include "runtime/vk/capabilities.h"

namespace vitrine {

struct KernelChoices;  // kernel_choice.h

// A piece of one of the memories that an Executable owns.
struct MemoryRange {
  enum class Space : uint8_t { nothing, arena, constant, input, output, state };
  Space space = Space::nothing;
  uint32_t index = 0;  // which slab, constant, input, output or buffer of states
  uint64_t offset = 0, bytes = 0;
  bool operator==(const MemoryRange&) const = default;
};

// One dispatch in its place.
struct Step {
  uint32_t node = 0;
  std::string kernel;         // the operator's kernel that it belongs to
  std::string configuration;  // and which of its configurations; empty where it has only one
  Dispatch dispatch;
  std::vector<MemoryRange> ranges;  // one an operand
  std::string access;               // one letter an operand: 'r', 'w', 'x' (both)
  bool barrier_before = false;
  uint32_t slice = 0;             // steps of one slice are submitted together
  std::vector<GroupRange> parts;  // where one slice would take too long: from `slice` on, a part each
  double seconds = 0;             // estimated, or measured on the device
};

// A constant as some kernel wants it: as it is (layout empty), or packed by a dispatch once at load.
struct PlannedConstant {
  ValueId value;
  std::string layout;
  uint64_t bytes = 0;
  std::optional<Dispatch> pack;
  bool operator==(const PlannedConstant& other) const {
    return value == other.value && layout == other.layout;
  }
};

struct PlanOptions {
  // operator -> the kernel it must use, or kernel:configuration
  std::map<std::string, std::string, std::less<>> variants;
  std::shared_ptr<const KernelChoices> known;    // what was found out on this device; none: nothing was
  bool untuned = false;                          // with_stored_choices() leaves the tuned kernels out
  FusionSet fusions = all_fusions();             // the rules that are on
  bool layouts = true;                           // kernels may agree on others than row by row
  double slice_seconds = 0.1;                    // no submission is meant to run longer
  std::function<void(const std::string&)> warn;  // told which steps take longer all the same
  bool reuse_memory = true;
  uint64_t guard_bytes = 0;  // unused bytes around every tensor of the arena, for tests
};

struct Plan {
  std::shared_ptr<const Graph> graph;  // what the rules of fusion made of the one that was given
  std::vector<std::string> fusion_changes;
  Capabilities device;
  PlanOptions options;

  std::vector<Step> steps;
  uint32_t slice_count = 0;
  std::vector<PlannedConstant> constants;
  std::vector<ValueId> inputs, outputs;
  struct StateBuffer {
    std::string name;
    uint64_t bytes = 0;  // up to the end of the last state in it
  };
  std::vector<StateBuffer> states;
  std::vector<std::string> choices;  // one a node: its kernel, who chose it, and why not the others
  std::vector<ValueId> laid_out;     // values that lie as their reader likes them, not row by row

  // The arena: intermediate values and scratch.
  std::vector<uint64_t> slab_bytes;
  uint64_t largest_live_set = 0;
  struct Tensor {
    std::string name;
    MemoryRange range;
    uint32_t first_step = 0, last_step = 0;
  };
  std::vector<Tensor> tensors;
  // How far past its end any buffer may be read (by address-bound kernels).
  uint64_t tail_bytes = 0;

  // All that needs a pipeline: the steps' dispatches in order, then those that pack constants.
  std::vector<const Dispatch*> dispatches() const;
  uint64_t arena_bytes() const;
  uint64_t constant_bytes() const;
  double flops() const;
};

Plan make_plan(std::shared_ptr<const Graph> graph, const Capabilities& device,
               const PlanOptions& options = {});

// How many nodes do the parts of which rule besides their own: "bias 49, residual 24; off: layer_scale".
std::string fusion_summary(const Plan& plan);
// Dispatches, barriers, submissions, and the memory of activations and constants: three lines.
std::string memory_summary(const Plan& plan);

// "op=kernel[,op=kernel:configuration]" as in --variant and VITRINE_VARIANT; throws Error(usage) for
// operators and kernels that there are not. Which configurations there are depends on node and device.
std::map<std::string, std::string, std::less<>> parse_variants(std::string_view text);

}  // namespace vitrine

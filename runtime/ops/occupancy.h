// What the choice of a tile asks of a device: how many registers an invocation may fill before compilers move
// some to memory, how much work fills the device, and when too little of it fits at once. Pure guesses where
// neither Vulkan nor the vendor tells.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/vk/capabilities.h"

namespace vitrine {

// Registers, in words of 32 bits, that an invocation has in subgroups of this size; 0: of whatever size the
// driver takes, which is the one with the most.
double registers_of_lane(const Capabilities& device, uint32_t subgroup_size = 0);

// How many of them values that a kernel counts may fill: compilers need the rest for addresses, for counters
// and for loads that they begin early.
double register_budget(const Capabilities& device, uint32_t subgroup_size = 0);

// Those shapes that keep to the budget, or where none does, the one with the fewest registers.
template <typename Shape, typename Registers>
std::vector<Shape> within_registers(const std::vector<Shape>& shapes, double budget, Registers registers) {
  std::vector<Shape> within;
  std::ranges::copy_if(shapes, std::back_inserter(within),
                       [&](const Shape& shape) { return registers(shape) <= budget; });
  if (within.empty() && !shapes.empty()) within.push_back(*std::ranges::min_element(shapes, {}, registers));
  return within;
}

// Multiprocessors, compute units or cores.
double compute_units(const Capabilities& device);

// How many workgroups keep all of them busy, two each; and how many invocations, in the tiles' usual sizes.
double filling_groups(const Capabilities& device);
double filling_invocations(const Capabilities& device);

// By how much workgroups slow each other down whose invocations take so many bytes of shared memory and so
// many registers each: 1 where enough of them fit a compute unit to hide memory's latency.
double crowding(const Capabilities& device, double shared_bytes, double registers);

}  // namespace vitrine

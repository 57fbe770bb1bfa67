// What the choice of a tile asks of a device: how many registers an invocation may fill before compilers move
// some to memory, and how many compute units there are. Pure guesses where neither Vulkan nor the vendor
// tells.
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

}  // namespace vitrine

// How long a dispatch takes on a device, from its capabilities alone: the one model that all kernels order
// their tiles by, and that `vitrine inspect --device-profile` prints. Pure, and never compared with a GPU:
// the order of two estimates is worth more than either.
//
// A workgroup alone on a compute unit waits: for barriers, for memory where it doesn't fetch ahead, and for
// its own instructions where its subgroups don't fill the unit. Several fill each other's gaps until the
// busiest part of the unit is hardly ever idle: arithmetic, matrix units, shared memory, or the way to the
// cache. So a unit that is given g workgroups, of which r fit it at once, is done after the longer of
//
//   g x what one workgroup keeps the busiest part busy        (throughput; longer where too few fit)
//   ceil(g / r) x what one takes alone                        (latency: crowding, and a tail)
//
// with g = ceil(workgroups / units); and the device no sooner than memory and the cache have moved all bytes.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/graph/op.h"
#include "runtime/graph/work.h"
#include "runtime/vk/capabilities.h"

namespace vitrine {

// What is known or guessed of a device's speed. A cycle is one of its clock.
struct DeviceRates {
  double units = 1;
  double hertz = 1;
  double multiply_adds = 1, matrix_multiply_adds = 0, instructions = 1;  // of a unit, a cycle
  double shared_bytes = 1;                                               // of a unit, a cycle
  double schedulers = 1;                                                 // of a unit
  double moved_bytes = 1;   // from and to the cache, of a unit alone, a cycle
  double cache_bytes = 1;   // of all units together, a cycle
  double memory_bytes = 1;  // of the device, a cycle
  double cache_size = 0;    // bytes
  double room_shared = 1, room_registers = 1, room_subgroups = 1;  // of a unit
  double memory_latency = 1, barrier = 1;                          // cycles
  double launch = 0;  // seconds from a dispatch's end to the next one's work
};
DeviceRates rates_of(const Capabilities& device);

enum class Bound : uint8_t {
  arithmetic,
  matrix_units,
  instructions,
  shared_memory,
  cache,
  memory,
  waiting,
  launch
};
std::string_view name_of(Bound bound);

struct Estimate {
  double seconds = 0;  // of the dispatch, from the end of the one before
  Bound bound = Bound::launch;
  double resident = 0;    // workgroups that fit a unit at once
  double used_units = 0;  // the share of units that have any work
  double subgroups = 0;   // for which a scheduler has room, with a fraction; 0 where it isn't known
};
Estimate estimate(const Work& work, const Capabilities& device);

// The shapes of a kernel in the order of their times; `work` says what a shape asks of a device.
template <typename Shape, typename WorkOf>
std::vector<Shape> fastest_first(const std::vector<Shape>& shapes, const Capabilities& device, WorkOf work) {
  std::vector<std::pair<double, const Shape*>> timed;
  for (const Shape& shape : shapes) timed.emplace_back(estimate(work(shape), device).seconds, &shape);
  std::ranges::stable_sort(timed, {}, [](const auto& each) { return each.first; });
  std::vector<Shape> in_order;
  for (const auto& [seconds, shape] : timed) in_order.push_back(*shape);
  return in_order;
}

// The work of a dispatch whose kernel states none: what the mathematics of its node asks for, shared out
// evenly over its invocations.
Work plain_work(const Dispatch& dispatch, const Cost& cost, double constant_bytes, size_t dispatches);

}  // namespace vitrine

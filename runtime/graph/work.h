// What a dispatch asks of a device: plain numbers that a kernel states and the model of costs
// (runtime/ops/cost.h) turns into time.
#pragma once

#include <cstdint>

namespace vitrine {

struct Work {
  double groups = 0;  // workgroups; 0: the kernel doesn't state its work
  uint32_t threads = 0;
  uint32_t subgroup_size = 0;  // that is asked for; 0: the device's own
  double registers = 0;        // of an invocation, as the kernel counts them
  double shared_bytes = 0;     // of a workgroup

  // Of one workgroup from beginning to end, padding included:
  double multiply_adds = 0;         // of f32
  double matrix_multiply_adds = 0;  // on matrix units
  double instructions = 0;          // others, of all invocations: loads, addresses, exponentials
  double shared_traffic = 0;        // bytes that it reads from shared memory
  double moved = 0;                 // bytes that it reads from memory or a cache, and writes
  double rounds = 0;                // of its loop, each behind a barrier
  double pause = 0;                 // cycles of a round in which it only stores the next one
  double ahead = 0;                 // rounds whose loads are on their way during one
  double cpu_speed = 1;             // of its multiply-adds where the device is a CPU: measured, not derived

  // Of all workgroups together, each byte once:
  double constant_bytes = 0;  // weights, which come from memory
  double resident_bytes = 0;  // tensors, which may still lie in a cache
  uint32_t dispatches = 1;    // one behind the other
};

}  // namespace vitrine

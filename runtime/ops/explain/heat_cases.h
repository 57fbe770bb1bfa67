// What the cases of the operators that color numbers share.
#pragma once

#include "runtime/check/op_case.h"
#include "runtime/ops/explain/heat.h"

namespace vitrine {

// Colors that jump from one to the next as no real map's do.
inline reference::HostTensor some_colors() {
  return reference::random_tensor({heat_colors}, DType::u32, 77, 0, 0x1000000);
}
inline reference::HostTensor some_choice(double row) { return reference::filled({1}, DType::u32, row); }

}  // namespace vitrine

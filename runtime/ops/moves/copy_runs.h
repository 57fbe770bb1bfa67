// The dispatch behind slice and concat: runs of consecutive elements copied from one tensor to another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/graph/op.h"

namespace vitrine {

// A tensor seen from one of its axes: `outer` blocks of `size` steps of `inner` elements.
struct AxisView {
  uint64_t outer = 1, size = 1, inner = 1;
};

AxisView view_axis(const Shape& shape, int axis);
// `axis` counted from the front, or -1 when the shape has no such axis.
int resolve_axis(const Shape& shape, int64_t axis);

// Where a copy's runs lie, in elements.
struct Runs {
  uint64_t number = 0, length = 0;
  uint64_t from = 0, from_stride = 0, to = 0, to_stride = 0;
};

std::string_view copy_variant(DType dtype);
Dispatch copy_runs(const Capabilities& device, DType dtype, Operand source, Operand target, const Runs& runs);

}  // namespace vitrine

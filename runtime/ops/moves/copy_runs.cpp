#include "runtime/ops/moves/copy_runs.h"

#include "runtime/ops/lowering.h"
#include "shaders/moves/copy_runs.h"

namespace vitrine {

AxisView view_axis(const Shape& shape, int axis) {
  AxisView view;
  for (int i = 0; i < static_cast<int>(shape.rank()); ++i) {
    (i < axis ? view.outer : i == axis ? view.size : view.inner) *= shape[i];
  }
  return view;
}

int resolve_axis(const Shape& shape, int64_t axis) {
  const auto rank = static_cast<int64_t>(shape.rank());
  const int64_t from_front = axis < 0 ? axis + rank : axis;
  return from_front >= 0 && from_front < rank ? static_cast<int>(from_front) : -1;
}

std::string_view copy_variant(DType dtype) { return size_of(dtype) == 4 ? "w32" : "w16"; }

Dispatch copy_runs(const Capabilities& device, DType dtype, Operand source, Operand target,
                   const Runs& runs) {
  const uint64_t count = runs.number * runs.length;
  Dispatch dispatch;
  dispatch.shader = &find_shader("copy_runs", copy_variant(dtype));
  dispatch.constants = {{"local_size", workgroup_size(device, 256)}, {"run", to_u32(runs.length)}};
  dispatch.operands = {source, target};
  dispatch.set_params(shader::CopyRunsParams{to_u32(count), to_u32(runs.from), to_u32(runs.from_stride),
                                             to_u32(runs.to), to_u32(runs.to_stride)});
  dispatch.groups = spread_groups(device, ceil_div(count, dispatch.constant("local_size")));
  return dispatch;
}

}  // namespace vitrine

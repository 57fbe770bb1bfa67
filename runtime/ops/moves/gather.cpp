#include "runtime/ops/moves/gather.h"

#include <utility>
#include <vector>

#include "runtime/ops/lowering.h"
#include "shaders/moves/gather.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& x = c.input(0);
  const Value& rows = c.input(1);
  c.require(x.shape.rank() >= 2, "x is " + x.shape.to_string() + ", expected [.., rows, width]");
  c.require(rows.shape.rank() == 1 && rows.dtype == DType::u32,
            "the row numbers are " + std::string(name_of(rows.dtype)) + " " + rows.shape.to_string() +
                ", expected u32 [picked]");
  std::vector<uint64_t> dims(x.shape.dims().begin(), x.shape.dims().end());
  dims[dims.size() - 2] = rows.shape[0];
  c.output(Shape(dims), x.dtype);
}

double flops(const LowerContext&) { return 0; }

std::string_view variant(const LowerContext& c) { return size_of(c.input(0).dtype) == 4 ? "w32" : "w16"; }

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "gather", variant(c)); }

Lowered lower(const LowerContext& c) {
  const Shape& source = c.input(0).shape;
  const Shape& result = c.output(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("gather", variant(c));
  dispatch.constants = {{"local_size", row_workgroup_size(c.device(), source[-1])}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::output(0)};
  dispatch.set_params(shader::GatherParams{to_u32(result.rows()), to_u32(result[-2]), to_u32(source[-2]),
                                           to_u32(source[-1])});
  dispatch.groups = spread_groups(c.device(), result.rows());
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_gather{"gather", infer, flops, kernels, gather_cases};

ValueId gather(Graph& graph, std::string name, ValueId x, ValueId rows) {
  return graph.add(op_gather, std::move(name), {x, rows})[0];
}

}  // namespace vitrine

#include "runtime/ops/sum_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/sum_rows.h"

namespace vitrine {
namespace {

// Up to here one invocation adds all rows of its column.
constexpr uint64_t rows_at_once = 64;

void infer(InferContext& c) {
  const Value& a = c.input(0);
  c.require(is_computable(a.dtype), "x is " + std::string(name_of(a.dtype)) + ", expected f32 or f16");
  if (c.has_input(1)) {
    const Value& b = c.input(1);
    c.require(a.shape == b.shape && a.dtype == b.dtype,
              "the factors are " + std::string(name_of(a.dtype)) + " " + a.shape.to_string() + " and " +
                  std::string(name_of(b.dtype)) + " " + b.shape.to_string() + ", expected the same");
  }
  const int64_t kept = c.attributes().integer("kept");
  c.require(kept >= 1 && kept <= static_cast<int64_t>(a.shape.rank()),
            std::to_string(kept) + " dimensions of " + a.shape.to_string() + " can't be kept");
  c.output(Shape(a.shape.dims().last(static_cast<size_t>(kept))), DType::f32);
}

double flops(const LowerContext& c) {
  return (c.has_input(1) ? 2.0 : 1.0) * static_cast<double>(c.input(0).shape.elements());
}

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "sum_rows", name_of(c.input(0).dtype));
}

Lowered lower(const LowerContext& c) {
  const uint64_t width = c.output(0).shape.elements();
  const uint64_t rows = c.input(0).shape.elements() / width;
  Lowered lowered;
  const auto pass = [&](DType dtype, Operand a, Operand b, Operand y, uint64_t from, uint64_t to) {
    Dispatch& dispatch = lowered.dispatches.emplace_back();
    dispatch.shader = &find_shader("sum_rows", name_of(dtype));
    dispatch.constants = {workgroup_size(c.device(), 128), b != Operand::nothing()};
    dispatch.operands = {a, b, y};
    dispatch.set_params(shader::SumRowsParams{to_u32(from * width), to_u32(to * width)});
    dispatch.groups = spread_groups(c.device(), ceil_div(to * width, dispatch.constants[0]));
    dispatch.note = std::to_string(from) + " rows to " + std::to_string(to);
  };
  const DType dtype = c.input(0).dtype;
  const Operand b = c.has_input(1) ? Operand::input(1) : Operand::nothing();
  const uint64_t partial = partial_rows(rows);
  if (partial == 1) {
    pass(dtype, Operand::input(0), b, Operand::output(0), rows, 1);
    return lowered;
  }
  lowered.scratch.push_back(partial * width * sizeof(float));
  pass(dtype, Operand::input(0), b, Operand::scratch(0), rows, partial);
  pass(DType::f32, Operand::scratch(0), Operand::nothing(), Operand::output(0), partial, 1);
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", refuses, no_preference, lower}};

}  // namespace

const OpDef op_sum_rows{"sum_rows", infer, flops, kernels};

ValueId sum_rows(Graph& graph, std::string name, ValueId x, size_t kept) {
  return graph.add(op_sum_rows, std::move(name), {x, {}}, {{"kept", static_cast<int64_t>(kept)}})[0];
}

ValueId sum_products(Graph& graph, std::string name, ValueId a, ValueId b, size_t kept) {
  return graph.add(op_sum_rows, std::move(name), {a, b}, {{"kept", static_cast<int64_t>(kept)}})[0];
}

uint64_t partial_rows(uint64_t rows) {
  const auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(rows)));
  return ceil_div(rows, std::max(rows_at_once, root));
}

}  // namespace vitrine

#include "runtime/ops/moves/transpose.h"

#include <utility>
#include <vector>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "shaders/moves/transpose.h"

namespace vitrine {
namespace {

constexpr uint32_t tile = 32;
constexpr uint32_t block_rows = 64;
// Every lane reads what its whole subgroup does.
constexpr uint32_t most_lanes = 16;

bool is_flat(const Attributes& attributes) { return attributes.flag("flat"); }

struct Matrices {
  uint64_t count = 1, rows = 1, columns = 1;
};
Matrices matrices_of(const LowerContext& c) {
  const Shape& shape = c.input(0).shape;
  const uint64_t rows = is_flat(c.attributes()) ? shape.rows() : shape[-2];
  return {shape.rows() / rows, rows, shape[-1]};
}

void infer(InferContext& c) {
  const Value& x = c.input(0);
  const bool flat = is_flat(c.attributes());
  c.require(x.shape.rank() >= (flat ? 1 : 2) && is_computable(x.dtype),
            "x is " + std::string(name_of(x.dtype)) + " " + x.shape.to_string() + ", expected f32 or f16 " +
                (flat ? "[.., columns]" : "[.., rows, columns]"));
  std::vector<uint64_t> dims(x.shape.dims().begin(), x.shape.dims().end());
  if (flat) {
    dims = {x.shape[-1], x.shape.rows()};
  } else {
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  }
  c.output(Shape(dims), x.dtype);
}

double flops(const LowerContext&) { return 0; }

void backward(GradContext& c) {
  const Value& x = c.input_value(0);
  if (is_flat(c.attributes()) && x.shape.rank() != 2) c.refuse("its flat form has no derivative");
  c.add(0, transpose(c.graph(), c.name("x"), c.gradient(0)));
}

std::optional<std::string> refuse_tiled(const LowerContext& c) {
  return refuse(c, "transpose", name_of(c.input(0).dtype));
}

Lowered lower_tiled(const LowerContext& c) {
  const auto [count, rows, columns] = matrices_of(c);
  const uint64_t across = ceil_div(columns, tile), tiles = count * ceil_div(rows, tile) * across;
  Dispatch dispatch;
  dispatch.shader = &find_shader("transpose", name_of(c.input(0).dtype));
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)}, {"tile", tile}};
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(shader::TransposeParams{to_u32(rows), to_u32(columns), to_u32(across), to_u32(tiles)});
  dispatch.groups = spread_groups(c.device(), tiles);
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

std::optional<std::string> refuse_lanes(const LowerContext& c) {
  if (auto reason = refuse(c, "transpose_cpu_lanes", name_of(c.input(0).dtype))) return reason;
  const uint32_t lanes = c.device().subgroup_size;
  if (lanes == 0 || lanes > most_lanes)
    return "subgroups of " + std::to_string(lanes) + " lanes are too wide";
  const auto [count, rows, columns] = matrices_of(c);
  if (ceil_div(columns, lanes) > c.device().max_workgroup_count[0] ||
      count * ceil_div(rows, block_rows) > c.device().max_workgroup_count[1]) {
    return "the matrices need more workgroups than the device takes";
  }
  return std::nullopt;
}

Lowered lower_lanes(const LowerContext& c) {
  const auto [count, rows, columns] = matrices_of(c);
  const uint32_t lanes = c.device().subgroup_size;
  const uint64_t blocks = ceil_div(rows, block_rows);
  Dispatch dispatch;
  dispatch.shader = &find_shader("transpose_cpu_lanes", name_of(c.input(0).dtype));
  dispatch.constants = {
      {"local_size", lanes}, {"lanes", lanes}, {"block_rows", block_rows}, {"whole_words", rows % 8 == 0}};
  dispatch.subgroup_size = lanes;
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(shader::TransposeParams{to_u32(rows), to_u32(columns), to_u32(blocks), 0});
  dispatch.groups = {to_u32(ceil_div(columns, lanes)), to_u32(count * blocks), 1};
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  if (columns % lanes != 0) lowered.overread_bytes = lanes * size_of(c.input(0).dtype);
  return lowered;
}

constexpr KernelDef kernels[] = {{"tiled", Target::any, refuse_tiled, no_preference, lower_tiled},
                                 {"cpu_lanes", Target::cpu, refuse_lanes, prefer_on_cpu, lower_lanes}};

}  // namespace

const OpDef op_transpose{"transpose", infer, flops, kernels, transpose_cases, backward};

ValueId transpose(Graph& graph, std::string name, ValueId x) {
  return graph.add(op_transpose, std::move(name), {x}, {{"flat", int64_t{0}}})[0];
}

ValueId transpose_rows(Graph& graph, std::string name, ValueId x) {
  return graph.add(op_transpose, std::move(name), {x}, {{"flat", int64_t{1}}})[0];
}

}  // namespace vitrine

#include "runtime/ops/pictures/apply_operation.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/pictures/picture_operation.h"

namespace vitrine {
namespace {

// A sum of bytes over a picture has to fit 32 bits.
constexpr uint64_t most_pixels = uint64_t{1} << 24;

void require_pictures(InferContext& c) {
  const Value& pixels = c.input(0);
  const Value& operations = c.input(1);
  c.require(pixels.dtype == DType::u32 && pixels.shape.rank() == 3,
            "the pixels are " + std::string(name_of(pixels.dtype)) + " " + pixels.shape.to_string() +
                ", expected u32 [pictures, height, width]");
  c.require(pixels.shape[1] * pixels.shape[2] <= most_pixels,
            "the pictures are " + pixels.shape.to_string() + ", expected at most 2^24 pixels each");
  c.require(operations.dtype == DType::u32 && operations.shape.rank() == 3 &&
                operations.shape[0] == pixels.shape[0] && operations.shape[2] == VITRINE_OPERATION_WORDS,
            "the operations are " + std::string(name_of(operations.dtype)) + " " +
                operations.shape.to_string() + ", expected u32 [" + std::to_string(pixels.shape[0]) +
                ", operations, " + std::to_string(VITRINE_OPERATION_WORDS) + "]");
  const int64_t which = c.attributes().integer("operation");
  c.require(
      which >= 0 && static_cast<uint64_t>(which) < operations.shape[1],
      "operation " + std::to_string(which) + " of " + std::to_string(operations.shape[1]) + " was asked for");
}

shader::PictureOperationParams params_of(const LowerContext& c) {
  return {.pictures = to_u32(c.input(0).shape[0]),
          .operations = to_u32(c.input(1).shape[1]),
          .operation = to_u32(static_cast<uint64_t>(c.attributes().integer("operation")))};
}

// ---- tables ----------------------------------------------------------------------------------------

void infer_tables(InferContext& c) {
  require_pictures(c);
  c.output({c.input(0).shape[0], 256}, DType::u32);
}

double flops_tables(const LowerContext& c) { return 4.0 * static_cast<double>(c.input(0).shape.elements()); }

std::optional<std::string> refuses_tables(const LowerContext& c) {
  return refuse(c, "operation_tables", "u32");
}

Lowered lower_tables(const LowerContext& c) {
  const Shape& pixels = c.input(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("operation_tables", "u32");
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"picture_pixels", to_u32(pixels[1] * pixels[2])}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::output(0)};
  dispatch.set_params(params_of(c));
  dispatch.groups = spread_groups(c.device(), pixels[0]);
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr KernelDef kernels_tables[] = {{"simple", Target::any, refuses_tables, no_preference, lower_tables}};

// ---- pixels ----------------------------------------------------------------------------------------

void infer_apply(InferContext& c) {
  require_pictures(c);
  const Value& tables = c.input(2);
  const Shape wanted{c.input(0).shape[0], 256};
  c.require(tables.dtype == DType::u32 && tables.shape == wanted,
            "the tables are " + std::string(name_of(tables.dtype)) + " " + tables.shape.to_string() +
                ", expected u32 " + wanted.to_string());
  c.output(c.input(0).shape, DType::u32);
}

// An interpolation's.
double flops_apply(const LowerContext& c) { return 100.0 * static_cast<double>(c.input(0).shape.elements()); }

std::optional<std::string> refuses_apply(const LowerContext& c) {
  return refuse(c, "apply_operation", "u32");
}

Lowered lower_apply(const LowerContext& c) {
  const Shape& pixels = c.input(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("apply_operation", "u32");
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"width", to_u32(pixels[2])},
                        {"height", to_u32(pixels[1])},
                        {"interpolates", c.attributes().integer("interpolates") != 0},
                        {"turns_hues", c.attributes().integer("turns_hues") != 0}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::input(2), Operand::output(0)};
  dispatch.set_params(params_of(c));
  dispatch.groups =
      spread_groups(c.device(), pixels[0] * ceil_div(pixels[1] * pixels[2], dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr KernelDef kernels_apply[] = {{"simple", Target::any, refuses_apply, no_preference, lower_apply}};

}  // namespace

const OpDef op_operation_tables{"operation_tables", infer_tables, flops_tables, kernels_tables,
                                operation_tables_cases};
const OpDef op_apply_operation{"apply_operation", infer_apply, flops_apply, kernels_apply,
                               apply_operation_cases};

ValueId operation_tables(Graph& graph, std::string name, ValueId pixels, ValueId operations,
                         uint64_t operation) {
  return graph.add(op_operation_tables, std::move(name), {pixels, operations},
                   {{"operation", static_cast<int64_t>(operation)}})[0];
}

ValueId apply_operation(Graph& graph, std::string name, ValueId pixels, ValueId operations, ValueId tables,
                        const ApplyOperationOptions& options) {
  return graph.add(op_apply_operation, std::move(name), {pixels, operations, tables},
                   {{"operation", static_cast<int64_t>(options.operation)},
                    {"interpolates", int64_t{options.interpolates}},
                    {"turns_hues", int64_t{options.turns_hues}}})[0];
}

}  // namespace vitrine

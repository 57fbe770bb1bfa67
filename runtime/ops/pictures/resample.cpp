#include "runtime/ops/pictures/resample.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/pictures/resample.h"

namespace vitrine {
namespace {

constexpr uint64_t block_rows = VITRINE_RESAMPLE_BLOCK_ROWS;
constexpr uint64_t rows_each = 4;  // of an invocation, as in resample_rows.comp

void require_words(InferContext& c, size_t input, const char* what) {
  const Value& value = c.input(input);
  c.require(value.dtype == DType::u32 && value.shape.rank() == 1,
            std::string(what) + " are " + std::string(name_of(value.dtype)) + " " + value.shape.to_string() +
                ", expected u32 of rank 1");
}

uint64_t attribute(const InferContext& c, std::string_view name) {
  return static_cast<uint64_t>(c.attributes().integer(name));
}

// ---- rows ------------------------------------------------------------------------------------------

void infer_rows(InferContext& c) {
  require_words(c, 0, "the pixels");
  require_words(c, 1, "the table's words");
  const uint64_t blocks = attribute(c, "blocks"), width = attribute(c, "width");
  c.require(blocks > 0 && width > 0, "a result of " + std::to_string(blocks) + " blocks and " +
                                         std::to_string(width) + " columns was asked for");
  c.output({blocks, block_rows, width}, DType::u32);
}

// A pixel of a bicubic reduction has a part in four results, each a multiplication and an addition a colour.
constexpr double flops_a_pixel = 4 * 3 * 2;

double flops_rows(const LowerContext& c) {
  return flops_a_pixel * static_cast<double>(c.input(0).shape.elements());
}

std::optional<std::string> refuses_rows(const LowerContext& c) { return refuse(c, "resample_rows", "u32"); }

Dispatch dispatch_rows(const LowerContext& c, bool rows_in_lanes, uint32_t local_size, uint64_t groups) {
  const Shape& result = c.output(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("resample_rows", "u32");
  dispatch.constants = {
      {"local_size", local_size}, {"rows_in_lanes", rows_in_lanes}, {"columns", to_u32(result[-1])}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::output(0)};
  dispatch.set_params(shader::ResampleParams{.blocks = to_u32(result[0]), .pictures = 0});
  dispatch.groups = spread_groups(c.device(), groups);
  return dispatch;
}

Lowered lower_rows(const LowerContext& c) {
  const Shape& result = c.output(0).shape;
  const uint32_t size = workgroup_size(c.device(), 64);
  Lowered lowered;
  lowered.dispatches.push_back(
      dispatch_rows(c, false, size, result[0] * (block_rows / rows_each) * ceil_div(result[-1], size)));
  return lowered;
}

Lowered lower_rows_in_lanes(const LowerContext& c) {
  const Shape& result = c.output(0).shape;
  const uint32_t size = workgroup_size(c.device(), block_rows);
  Lowered lowered;
  lowered.dispatches.push_back(dispatch_rows(c, true, size, result[0] * (block_rows / size) * result[-1]));
  return lowered;
}

constexpr KernelDef kernels_rows[] = {
    {"columns", Target::any, refuses_rows, no_preference, lower_rows},
    {"cpu_lanes", Target::cpu, refuses_rows, prefer_on_cpu, lower_rows_in_lanes}};

// ---- columns ---------------------------------------------------------------------------------------

void infer_columns(InferContext& c) {
  const Value& x = c.input(0);
  c.require(x.dtype == DType::u32 && x.shape.rank() == 3 && x.shape[1] == block_rows,
            "x is " + std::string(name_of(x.dtype)) + " " + x.shape.to_string() + ", expected u32 [blocks, " +
                std::to_string(block_rows) + ", width]");
  require_words(c, 1, "the table's words");
  const uint64_t pictures = attribute(c, "pictures"), height = attribute(c, "height");
  c.require(pictures > 0 && height > 0,
            std::to_string(pictures) + " pictures of " + std::to_string(height) + " rows were asked for");
  c.output({pictures, height, x.shape[2]}, DType::u32);
}

double flops_columns(const LowerContext& c) {
  return flops_a_pixel * static_cast<double>(c.input(0).shape.elements());
}

std::optional<std::string> refuses_columns(const LowerContext& c) {
  return refuse(c, "resample_columns", "u32");
}

Lowered lower_columns(const LowerContext& c) {
  const Shape& result = c.output(0).shape;
  const uint32_t size = workgroup_size(c.device(), 64);
  Dispatch dispatch;
  dispatch.shader = &find_shader("resample_columns", "u32");
  dispatch.constants = {{"local_size", size}, {"columns", to_u32(result[-1])}, {"rows", to_u32(result[1])}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::output(0)};
  dispatch.set_params(
      shader::ResampleParams{.blocks = to_u32(c.input(0).shape[0]), .pictures = to_u32(result[0])});
  dispatch.groups = spread_groups(c.device(), result[0] * result[1] * ceil_div(result[-1], size));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr KernelDef kernels_columns[] = {
    {"simple", Target::any, refuses_columns, no_preference, lower_columns}};

}  // namespace

const OpDef op_resample_rows{"resample_rows", infer_rows, flops_rows, kernels_rows, resample_rows_cases};
const OpDef op_resample_columns{"resample_columns", infer_columns, flops_columns, kernels_columns,
                                resample_columns_cases};

ValueId resample_rows(Graph& graph, std::string name, ValueId pixels, ValueId table,
                      const ResampleOptions& options) {
  return graph.add(
      op_resample_rows, std::move(name), {pixels, table},
      {{"blocks", static_cast<int64_t>(options.blocks)}, {"width", static_cast<int64_t>(options.width)}})[0];
}

ValueId resample_columns(Graph& graph, std::string name, ValueId x, ValueId table, uint64_t pictures,
                         uint64_t height) {
  return graph.add(
      op_resample_columns, std::move(name), {x, table},
      {{"pictures", static_cast<int64_t>(pictures)}, {"height", static_cast<int64_t>(height)}})[0];
}

}  // namespace vitrine

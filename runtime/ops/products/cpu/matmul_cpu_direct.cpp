// The two kernels of matmul for devices that are a CPU: `cpu_direct`, and `cpu_chunks` for such whose loops
// gather.
#include "shaders/products/cpu/matmul_cpu_direct.h"

#include "runtime/ops/lowering.h"
#include "runtime/ops/products/cpu/direct_product.h"
#include "runtime/ops/products/matmul_kernels.h"

namespace vitrine {
namespace {

DirectProduct product_of(const LowerContext& context, bool in_chunks = false) {
  const MatmulSizes sizes = matmul_sizes(context);
  const std::vector<Operand> operands = matmul_operands(context);
  return {.rows = sizes.m,
          .columns = sizes.n,
          .depth = sizes.k,
          .weight_input = matmul_input::weight,
          .weight = context.input(matmul_input::weight).dtype,
          .out = context.output(0).dtype,
          .epilogue = epilogue_constants(context),
          .extras = {operands[matmul_input::bias], operands[matmul_input::scale],
                     operands[matmul_input::residual]},
          .rows_by_depth = is_x_transposed(context.node()),
          .weight_by_depth = is_weight_transposed(context.node()),
          .configuration = context.configuration(),
          .in_chunks = in_chunks};
}

std::optional<std::string> refuse_packed(const LowerContext& context, const DirectProduct& product) {
  if (auto reason = context.missing("matmul_cpu_direct_rows", name_of(context.input(matmul_input::x).dtype)))
    return reason;
  return refuse_direct_product(context, product);
}

Lowered lower_packed(const LowerContext& context, const DirectProduct& product) {
  Lowered lowered;
  lowered.in_place = matmul_in_place(context);
  if (context.input_layout(matmul_input::x)) {
    add_packed_product(context, product, Operand::input(matmul_input::x), lowered);
    return lowered;
  }
  if (product.rows_by_depth) {
    add_product_by_depth(context, product, lowered);
    return lowered;
  }
  const uint32_t threads = workgroup_size(context.device(), 64);
  Dispatch rows;
  rows.shader = &find_shader("matmul_cpu_direct_rows", name_of(context.input(matmul_input::x).dtype));
  rows.constants = {{"local_size", threads},
                    {"block_rows", product.block_rows()},
                    {"unroll", product.unroll},
                    {"whole_steps", product.depth % product.unroll == 0}};
  rows.operands = {Operand::input(matmul_input::x), Operand::scratch(0)};
  rows.set_params(shader::MatmulDirectRowsParams{.rows = to_u32(product.rows),
                                                 .depth = to_u32(product.depth),
                                                 .steps = to_u32(product.steps()),
                                                 .count = to_u32(product.packed_elements())});
  rows.groups = striding_groups(context.device(), product.packed_elements() / product.unroll, threads);
  add_direct_product(context, product, std::move(rows), lowered);
  return lowered;
}

}  // namespace

std::optional<std::string> refuse_direct(const LowerContext& context) {
  return refuse_packed(context, product_of(context));
}
std::optional<std::string> refuse_chunks(const LowerContext& context) {
  return refuse_packed(context, product_of(context, true));
}

double prefer_direct(const LowerContext& context) { return prefer_direct_product(context); }
double prefer_chunks(const LowerContext& context) { return prefer_chunked_product(context); }

std::vector<std::string> direct_configurations(const LowerContext& context) {
  return direct_product_configurations(product_of(context));
}
std::vector<std::string> chunks_configurations(const LowerContext& context) {
  return direct_product_configurations(product_of(context, true));
}

Lowered lower_direct(const LowerContext& context) { return lower_packed(context, product_of(context)); }
Lowered lower_chunks(const LowerContext& context) { return lower_packed(context, product_of(context, true)); }

std::optional<Layout> direct_likes_layout(const LowerContext& context, uint32_t input) {
  return input == matmul_input::x ? liked_layout(product_of(context)) : std::nullopt;
}
std::optional<Layout> chunks_likes_layout(const LowerContext& context, uint32_t input) {
  return input == matmul_input::x ? liked_layout(product_of(context, true)) : std::nullopt;
}

bool direct_writes_layout(const LowerContext& context, const Layout& layout) {
  return can_write(product_of(context), layout);
}
bool chunks_writes_layout(const LowerContext& context, const Layout& layout) {
  return can_write(product_of(context, true), layout);
}

}  // namespace vitrine

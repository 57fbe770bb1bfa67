#include "runtime/ops/products/matmul.h"

#include <algorithm>
#include <array>

#include "runtime/ops/lowering.h"
#include "runtime/ops/products/matmul_kernels.h"

namespace vitrine {
namespace {

constexpr std::array kernels{
    KernelDef{"tiled", Target::any, refuse_tiled, prefer_tiled, lower_tiled, tiled_configurations},
    KernelDef{"cpu_direct", Target::cpu, refuse_direct, prefer_direct, lower_direct, direct_configurations,
              direct_likes_layout, direct_writes_layout},
    KernelDef{"cpu_chunks", Target::cpu, refuse_chunks, prefer_chunks, lower_chunks, chunks_configurations,
              chunks_likes_layout, chunks_writes_layout},
    KernelDef{"coopmat", Target::matrix_units, refuse_coopmat, prefer_coopmat, lower_coopmat,
              coopmat_configurations},
    KernelDef{"cpu_small", Target::cpu, refuse_small, prefer_small, lower_small},
    KernelDef{"few_rows", Target::any, refuse_few_rows, prefer_few_rows, lower_few_rows},
    KernelDef{"coopmat_flexible", Target::matrix_units, refuse_coopmat_flexible, prefer_coopmat_flexible,
              lower_coopmat_flexible, coopmat_flexible_configurations},
    unproven({"coopmat2", Target::matrix_units, refuse_coopmat2, prefer_coopmat2, lower_coopmat2,
              coopmat2_configurations}),
};

}  // namespace

bool is_x_transposed(const Node& node) { return node.attributes.flag("transposed_x"); }
bool is_weight_transposed(const Node& node) { return node.attributes.flag("transposed_weight"); }

bool is_rounded(const Node& node) { return node.attributes.flag("rounded"); }

std::optional<std::string> refuse_transposed(const LowerContext& context) {
  if (!is_x_transposed(context.node()) && !is_weight_transposed(context.node())) return std::nullopt;
  return "an operand is transposed";
}

MatmulSizes matmul_sizes(const Node& node, const Shape& x, const Shape& weight) {
  const bool columns = is_x_transposed(node);
  return {.m = columns ? x[-1] : x.rows(),
          .n = is_weight_transposed(node) ? weight[-1] : weight.rows(),
          .k = columns ? x.rows() : x[-1]};
}

MatmulSizes matmul_sizes(const LowerContext& context) {
  const Value& weight = context.input(matmul_input::weight);
  MatmulSizes sizes;
  if (reads_patches(context.node())) {
    sizes = {.m = context.output(0).shape.rows(),
             .n = weight.shape[0],
             .k = weight.shape.elements() / weight.shape[0]};
  } else {
    sizes = matmul_sizes(context.node(), context.input(matmul_input::x).shape, weight.shape);
  }
  sizes.in_bytes = size_of(weight.dtype);
  sizes.out_bytes = size_of(context.output(0).dtype);
  return sizes;
}

void infer_matmul(InferContext& c) {
  const Value& x = c.input(matmul_input::x);
  const Value& weight = c.input(matmul_input::weight);
  c.require(is_computable(x.dtype) && weight.dtype == x.dtype,
            "x is " + std::string(name_of(x.dtype)) + " and the weight " +
                std::string(name_of(weight.dtype)) + ", both f32 or both f16 were expected");
  const bool turned_x = c.attributes().flag("transposed_x");
  const bool turned_weight = c.attributes().flag("transposed_weight");
  c.require(turned_weight ? weight.shape.rank() >= 1 : weight.shape.rank() == 2,
            "the weight is " + weight.shape.to_string() + ", " + (turned_weight ? "[.., N]" : "[N, K]") +
                " was expected");
  const uint64_t n = turned_weight ? weight.shape[-1] : weight.shape[0];
  const uint64_t k = turned_weight ? weight.shape.rows() : weight.shape[1];
  c.require(x.shape.rank() >= 1 && (turned_x ? x.shape.rows() : x.shape[-1]) == k,
            "x is " + x.shape.to_string() + (turned_x ? " transposed" : "") + " and the weight " +
                weight.shape.to_string() + (turned_weight ? " transposed" : "") +
                ", [.., K] and [N, K] were expected");
  std::vector<uint64_t> dims(x.shape.dims().begin(), x.shape.dims().end());
  if (turned_x) dims = {x.shape[-1], n};
  dims.back() = n;
  const Shape shape{std::span<const uint64_t>(dims)};

  const auto check = [&](uint32_t at, const char* what, const Shape& expected) {
    if (!c.has_input(at)) return;
    const Value& value = c.input(at);
    c.require(value.dtype == DType::f32 && value.shape == expected,
              std::string(what) + " is " + std::string(name_of(value.dtype)) + " " + value.shape.to_string() +
                  ", f32 " + expected.to_string() + " was expected");
  };
  check(matmul_input::bias, "the bias", Shape{n});
  check(matmul_input::scale, "the scale", Shape{n});
  check(matmul_input::residual, "the residual", shape);

  const int64_t activation = c.attributes().integer("activation");
  c.require(activation >= 0 && activation < VITRINE_ACTIVATION_COUNT,
            "the activation is number " + std::to_string(activation) + ", 0 to " +
                std::to_string(VITRINE_ACTIVATION_COUNT - 1) + " were expected");
  const auto out = static_cast<DType>(c.attributes().integer("out"));
  c.require(out == x.dtype || out == DType::f32,
            "the output is to be " + std::string(name_of(out)) + ", x's dtype or f32 was expected");
  const bool rounded = c.attributes().flag("rounded");
  c.require(!rounded || x.dtype == DType::f32,
            "x is " + std::string(name_of(x.dtype)) + ", f32 was expected where it is to be rounded");
  c.require(rounded || !c.has_input(matmul_input::magnitude), "nothing is rounded that has a magnitude");
  check(matmul_input::magnitude, "the magnitude", Shape{1});
  c.output(shape, out);
}

double matmul_flops(const LowerContext& context) {
  const MatmulSizes sizes = matmul_sizes(context);
  return 2.0 * static_cast<double>(sizes.m) * static_cast<double>(sizes.n) * static_cast<double>(sizes.k);
}

std::string matmul_variant(const LowerContext& context) {
  return storage_variant(context.input(matmul_input::weight).dtype, context.output(0).dtype);
}

std::vector<NamedConstant> epilogue_constants(const LowerContext& context) {
  const Attributes& attributes = context.attributes();
  const int64_t activation =
      attributes.has("activation") ? attributes.integer("activation") : VITRINE_ACTIVATION_NONE;
  return {{"epilogue_activation", to_u32(static_cast<uint64_t>(activation))},
          {"epilogue_has_bias", context.has_input(matmul_input::bias)},
          {"epilogue_has_scale", context.has_input(matmul_input::scale)},
          {"epilogue_has_residual", context.has_input(matmul_input::residual)}};
}

std::vector<Operand> matmul_operands(const LowerContext& context) {
  std::vector<Operand> operands;
  for (uint32_t i = 0; i <= matmul_input::residual; ++i) {
    operands.push_back(context.has_input(i) ? Operand::input(i) : Operand::nothing());
  }
  operands.push_back(Operand::output(0));
  return operands;
}

std::vector<std::pair<uint32_t, uint32_t>> matmul_in_place(const LowerContext& context) {
  if (!context.has_input(matmul_input::residual) || context.output(0).dtype != DType::f32) return {};
  if (context.output_layout(0)) return {};
  // The residual's memory must have no second reader inside the node.
  const auto& inputs = context.node().inputs;
  const ValueId residual = inputs[matmul_input::residual];
  if (std::count(inputs.begin(), inputs.end(), residual) > 1) return {};
  return {{0, matmul_input::residual}};
}

const OpDef op_matmul{"matmul",     infer_matmul,         matmul_flops, kernels,
                      matmul_cases, differentiate_matmul, matmul_sample};

ValueId matmul(Graph& graph, std::string name, ValueId x, ValueId weight, const MatmulOptions& options) {
  const DType out = options.out.value_or(graph.value(x).dtype);
  std::vector<ValueId> inputs{x, weight, options.bias, options.scale, options.residual};
  if (options.magnitude) inputs.push_back(options.magnitude);
  Attributes attributes{{"activation", static_cast<int64_t>(options.activation)},
                        {"out", static_cast<int64_t>(out)}};
  if (options.rounded) attributes.set("rounded", int64_t{1});
  return graph.add(op_matmul, std::move(name), std::move(inputs), std::move(attributes))[0];
}

}  // namespace vitrine

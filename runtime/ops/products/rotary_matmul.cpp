#include "runtime/ops/products/rotary_matmul.h"

#include "runtime/graph/fusion.h"
#include "runtime/ops/attention/rotary.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

uint64_t attribute(const Node& node, std::string_view name) {
  return static_cast<uint64_t>(node.attributes.integer(name));
}

void infer(InferContext& c) {
  const Value &x = c.input(matmul_input::x), &weight = c.input(matmul_input::weight);
  c.require(is_computable(x.dtype) && weight.dtype == x.dtype && x.shape.rank() == 3 &&
                weight.shape.rank() == 2 && weight.shape[1] == x.shape[2],
            "x is " + std::string(name_of(x.dtype)) + " " + x.shape.to_string() + " and the weight " +
                std::string(name_of(weight.dtype)) + " " + weight.shape.to_string() +
                ", expected [batch, tokens, K] and [N, K], both f32 or both f16");
  const Shape heads{x.shape[0], x.shape[1], weight.shape[0]};
  if (c.has_input(matmul_input::bias)) {
    const Value& bias = c.input(matmul_input::bias);
    c.require(bias.dtype == DType::f32 && bias.shape == Shape{heads[2]},
              "the bias is " + std::string(name_of(bias.dtype)) + " " + bias.shape.to_string() +
                  ", expected f32 [" + std::to_string(heads[2]) + "]");
  }
  c.require(!c.has_input(matmul_input::scale) && !c.has_input(matmul_input::residual),
            "there is a scale or a residual, expected none");
  require_turns(c, heads, c.input(rotary_matmul_input::table));
  const auto width = static_cast<uint64_t>(c.attributes().integer("width"));
  const auto count = static_cast<uint64_t>(c.attributes().integer("heads"));
  c.require(width % 4 == 0 && heads[2] == count * width,
            counted(count, "head") + " of width " + std::to_string(width) + " were asked of " +
                std::to_string(heads[2]) +
                " columns, expected all of them, and a width that is a multiple of 4");
  c.output(heads, x.dtype);
}

constexpr KernelDef kernels[] = {
    {"tiled", Target::any, refuse_tiled, prefer_tiled, lower_tiled, tiled_configurations},
    {"coopmat", Target::matrix_units, refuse_coopmat, prefer_coopmat, lower_coopmat, coopmat_configurations}};

// ---- the rule of fusion ----------------------------------------------------------------------------------

bool holds(const Node& node) { return node.op == &op_rotary_matmul; }

// On a CPU each lane has one column, its pair another one, and what a pass of its own reads is in the cache.
bool suits(const Capabilities& device) { return device.type != DeviceType::cpu; }

bool is_bare(const Node& product) {
  return product.attributes.integer("activation") == VITRINE_ACTIVATION_NONE &&
         !product.inputs[matmul_input::scale] && !product.inputs[matmul_input::residual] &&
         !is_rounded(product) && !is_x_transposed(product) && !is_weight_transposed(product);
}

std::optional<Fused> take(const FusionContext& context) {
  const Node& node = context.node();
  if (node.op != &op_rotary || node.attributes.flag("back")) return std::nullopt;
  const Node* product = context.absorbable(node.inputs[0], op_matmul);
  if (!product || !is_bare(*product)) return std::nullopt;
  const Value &x = context.value(product->inputs[matmul_input::x]), &out = context.output();
  if (attribute(node, "width") % 4 != 0 || context.input(0).shape != out.shape || x.dtype != out.dtype)
    return std::nullopt;
  Fused fused{.node = node, .absorbed = {product}};
  fused.node.op = &op_rotary_matmul;
  fused.node.inputs = product->inputs;
  fused.node.inputs.resize(rotary_matmul_input::table);
  fused.node.inputs.push_back(node.inputs[1]);
  return fused;
}

ValueId split(Graph& graph, const Node& node) {
  const ValueId product =
      matmul(graph, node.name + ".product", node.inputs[matmul_input::x], node.inputs[matmul_input::weight],
             {.bias = node.inputs[matmul_input::bias]});
  return graph.add(op_rotary, node.name, {product, node.inputs[rotary_matmul_input::table]},
                   node.attributes)[0];
}

}  // namespace

const OpDef op_rotary_matmul{"rotary_matmul",     infer,   matmul_flops,        kernels,
                             rotary_matmul_cases, nullptr, rotary_matmul_sample};

extern const FusionRule fuse_rotary{
    "rotary", "rotary positions behind a matrix product, on GPUs", holds, take, split, false, suits};

bool turns_heads(const Node& node) { return node.attributes.has("turned"); }

std::string with_turns(const LowerContext& context, std::string variant) {
  return (turns_heads(context.node()) ? "rotary_" : "") + std::move(variant);
}

void add_turns(const LowerContext& context, Dispatch& dispatch) {
  const Node& node = context.node();
  if (!turns_heads(node)) return;
  const Shape& table = context.input(rotary_matmul_input::table).shape;
  const uint64_t tokens = context.output(0).shape[1];
  dispatch.add_constants({{"rotary_width", to_u32(attribute(node, "width"))},
                          {"rotary_columns", to_u32(attribute(node, "turned") * attribute(node, "width"))},
                          {"rotary_tokens", to_u32(tokens)},
                          {"rotary_first", to_u32(tokens - table[-3])},
                          {"rotary_tables", to_u32(table.rank() == 4 ? table[0] : 1)},
                          {"rotary_halves", node.attributes.flag("halves")}});
  dispatch.operands.push_back(Operand::input(rotary_matmul_input::table));
}

}  // namespace vitrine

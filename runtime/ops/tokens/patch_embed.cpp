#include "runtime/ops/tokens/patch_embed.h"

#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/moves/reshape.h"
#include "runtime/ops/moves/transpose.h"
#include "runtime/ops/moves/unfold.h"
#include "runtime/ops/products/cpu/direct_product.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/ops/products/weight_gradient.h"
#include "runtime/util/error.h"
#include "shaders/lib/activation.h"
#include "shaders/tokens/cpu/patch_embed_cpu_rows.h"

namespace vitrine {
namespace {

constexpr uint32_t image_input = 0, weight_input = 1, bias_input = 2;

void infer(InferContext& c) {
  const Value& image = c.input(image_input);
  const Value& weight = c.input(weight_input);
  c.require(image.shape.rank() == 4 && image.dtype == DType::f32,
            "the image is " + std::string(name_of(image.dtype)) + " " + image.shape.to_string() +
                ", expected f32 [images, channels, height, width]");
  const auto height = static_cast<uint64_t>(c.attributes().integer("patch_height"));
  const auto width = static_cast<uint64_t>(c.attributes().integer("patch_width"));
  const std::string patch = std::to_string(height) + " x " + std::to_string(width);
  c.require(height > 0 && width > 0, "a patch of " + patch + " pixels was asked for");
  c.require(image.shape[2] >= height && image.shape[3] >= width,
            "the image " + image.shape.to_string() + " is smaller than a patch of " + patch);
  c.require(is_computable(weight.dtype) && weight.shape.rank() == 4 && weight.shape[1] == image.shape[1] &&
                weight.shape[2] == height && weight.shape[3] == width,
            "the weight is " + std::string(name_of(weight.dtype)) + " " + weight.shape.to_string() +
                ", expected f32 or f16 [dims, " + std::to_string(image.shape[1]) + ", " +
                std::to_string(height) + ", " + std::to_string(width) + "]");
  if (c.has_input(bias_input)) {
    const Value& bias = c.input(bias_input);
    c.require(bias.dtype == DType::f32 && bias.shape == Shape{weight.shape[0]},
              "the bias is " + std::string(name_of(bias.dtype)) + " " + bias.shape.to_string() +
                  ", expected f32 [" + std::to_string(weight.shape[0]) + "]");
  }
  const auto out = static_cast<DType>(c.attributes().integer("out"));
  c.require(is_computable(out), "the result can't be " + std::string(name_of(out)) + ", only f32 or f16");
  c.output({image.shape[0], (image.shape[2] / height) * (image.shape[3] / width), weight.shape[0]}, out);
}

double flops(const LowerContext& c) {
  const Shape& weight = c.input(weight_input).shape;
  return 2.0 * static_cast<double>(c.output(0).shape.rows()) * static_cast<double>(weight.elements());
}

// ---- cpu_direct: for devices that are a CPU --------------------------------------------------------

DirectProduct product_of(const LowerContext& c, bool in_chunks = false) {
  const Shape& weight = c.input(weight_input).shape;
  const bool has_bias = c.has_input(bias_input);
  return {.rows = c.output(0).shape.rows(),
          .columns = weight[0],
          .depth = weight.elements() / weight[0],
          .weight_input = weight_input,
          .weight = c.input(weight_input).dtype,
          .out = c.output(0).dtype,
          .epilogue = {{"epilogue_activation", VITRINE_ACTIVATION_NONE},
                       {"epilogue_has_bias", has_bias},
                       {"epilogue_has_scale", false},
                       {"epilogue_has_residual", false}},
          .extras = {has_bias ? Operand::input(bias_input) : Operand::nothing(), Operand::nothing(),
                     Operand::nothing()},
          .configuration = c.configuration(),
          .in_chunks = in_chunks};
}

std::optional<std::string> refuses_packed(const LowerContext& c, const DirectProduct& product) {
  if (auto reason = refuse(c, "patch_embed_cpu_rows", "f32")) return reason;
  return refuse_direct_product(c, product);
}

Lowered lower_packed(const LowerContext& c, const DirectProduct& product) {
  const Shape& image = c.input(image_input).shape;
  const Shape& weight = c.input(weight_input).shape;
  const uint64_t count = product.packed_elements() / product.unroll;
  const uint32_t threads = workgroup_size(c.device(), 64);
  Dispatch rows;
  rows.shader = &find_shader("patch_embed_cpu_rows", "f32");
  rows.constants = {{"local_size", threads},
                    {"block_rows", product.block_rows()},
                    {"unroll", product.unroll},
                    {"patch_height", to_u32(weight[2])},
                    {"patch_width", to_u32(weight[3])}};
  rows.operands = {Operand::input(image_input), Operand::scratch(0)};
  rows.set_params(shader::PatchEmbedRowsParams{.rows = to_u32(product.rows),
                                               .steps = to_u32(product.steps()),
                                               .count = to_u32(count),
                                               .channels = to_u32(image[1]),
                                               .height = to_u32(image[2]),
                                               .width = to_u32(image[3]),
                                               .patch_rows = to_u32(image[2] / weight[2]),
                                               .patch_columns = to_u32(image[3] / weight[3])});
  rows.groups = striding_groups(c.device(), count, threads);
  Lowered lowered;
  add_direct_product(c, product, std::move(rows), lowered);
  return lowered;
}

std::optional<std::string> refuses_direct(const LowerContext& c) { return refuses_packed(c, product_of(c)); }
std::optional<std::string> refuses_chunks(const LowerContext& c) {
  return refuses_packed(c, product_of(c, true));
}
Lowered lower_direct(const LowerContext& c) { return lower_packed(c, product_of(c)); }
Lowered lower_chunks(const LowerContext& c) { return lower_packed(c, product_of(c, true)); }
std::vector<std::string> direct_configurations(const LowerContext& c) {
  return direct_product_configurations(product_of(c));
}
std::vector<std::string> chunks_configurations(const LowerContext& c) {
  return direct_product_configurations(product_of(c, true));
}

// The product of unfolded patches with the weight.
void backward(GradContext& c) {
  if (c.input_value(weight_input).dtype != DType::f32 || c.output_value(0).dtype != DType::f32)
    c.refuse("only a weight and tokens in f32 have a derivative");
  Graph& graph = c.graph();
  const Shape weight = c.input_value(weight_input).shape, image = c.input_value(image_input).shape;
  const PatchSize patch{weight[2], weight[3]};
  const uint64_t dims = weight[0], depth = weight.elements() / dims;
  if (c.wants(weight_input) || c.wants(bias_input)) {
    ValueId rows;
    if (c.wants(weight_input)) rows = unfold(graph, c.name("patches"), c.input(image_input), patch);
    const WeightGradient found =
        linear_gradients(graph, c.name("weight"), c.gradient(0), rows, {.bias = c.wants(bias_input)});
    if (found.weight) c.add(weight_input, reshape(graph, c.name("weight.shape"), found.weight, weight));
    if (found.bias) c.add(bias_input, found.bias);
  }
  if (c.wants(image_input)) {
    const ValueId matrix = reshape(graph, c.name("matrix"), c.input(weight_input), {dims, depth});
    const ValueId rows =
        matmul(graph, c.name("rows"), c.gradient(0), transpose(graph, c.name("turned"), matrix));
    c.add(image_input, fold(graph, c.name("image"), rows, image[2], image[3], patch));
  }
}

constexpr KernelDef kernels[] = {
    {"tiled", Target::any, refuse_tiled, prefer_tiled, lower_tiled, tiled_configurations},
    {"cpu_direct", Target::cpu, refuses_direct, prefer_direct_product, lower_direct, direct_configurations},
    {"cpu_chunks", Target::cpu, refuses_chunks, prefer_chunked_product, lower_chunks, chunks_configurations},
    {"coopmat", Target::matrix_units, refuse_coopmat, prefer_coopmat, lower_coopmat, coopmat_configurations},
    {"coopmat_flexible", Target::matrix_units, refuse_coopmat_flexible, prefer_coopmat_flexible,
     lower_coopmat_flexible, coopmat_flexible_configurations}};

}  // namespace

const OpDef op_patch_embed{"patch_embed",     infer, flops, kernels, patch_embed_cases, backward,
                           patch_embed_sample};

ValueId patch_embed(Graph& graph, std::string name, ValueId image, ValueId weight, ValueId bias,
                    const PatchEmbedOptions& options) {
  return graph.add(op_patch_embed, std::move(name), {image, weight, bias},
                   {{"patch_height", static_cast<int64_t>(options.patch_height)},
                    {"patch_width", static_cast<int64_t>(options.patch_width)},
                    {"out", static_cast<int64_t>(options.out.value_or(DType::f32))}})[0];
}

}  // namespace vitrine

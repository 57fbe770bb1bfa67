#include "runtime/ops/tokens/patch_embed.h"

#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/moves/reshape.h"
#include "runtime/ops/moves/sum_rows.h"
#include "runtime/ops/moves/transpose.h"
#include "runtime/ops/moves/unfold.h"
#include "runtime/ops/products/cpu/direct_product.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/ops/products/weight_gradient.h"
#include "runtime/ops/tokens/patch_embed_cpu.h"
#include "runtime/ops/tokens/patch_weight_gradient.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

using namespace patch_embed_input;

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

// The product of unfolded patches with the weight.
void backward(GradContext& c) {
  if (c.input_value(weight_input).dtype != DType::f32 || c.output_value(0).dtype != DType::f32)
    c.refuse("only a weight and tokens in f32 have a derivative");
  Graph& graph = c.graph();
  const Shape weight = c.input_value(weight_input).shape, image = c.input_value(image_input).shape;
  const PatchSize patch{weight[2], weight[3]};
  const uint64_t dims = weight[0], depth = weight.elements() / dims;
  const bool narrow = dims <= narrow_patch_embedding;
  if (narrow && c.wants(weight_input)) {
    const ValueId found =
        patch_weight_gradient(graph, c.name("weight"), c.gradient(0), c.input(image_input), patch);
    c.add(weight_input, reshape(graph, c.name("weight.shape"), found, weight));
  }
  if (narrow && c.wants(bias_input)) c.add(bias_input, sum_rows(graph, c.name("bias"), c.gradient(0)));
  if (!narrow && (c.wants(weight_input) || c.wants(bias_input))) {
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
    {"cpu_direct", Target::cpu, refuse_patch_direct, prefer_direct_product, lower_patch_direct,
     patch_direct_configurations},
    {"cpu_chunks", Target::cpu, refuse_patch_chunks, prefer_chunked_product, lower_patch_chunks,
     patch_chunks_configurations},
    {"cpu_in_place", Target::cpu, refuse_patch_in_place, prefer_patch_in_place, lower_patch_in_place},
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

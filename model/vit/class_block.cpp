#include "model/vit/class_block.h"

#include <utility>

#include "runtime/ops/attention/attention.h"
#include "runtime/ops/moves/concat.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/ops/products/matmul.h"

namespace vitrine {

namespace {

ViTConfig of_the_block(ViTConfig config) {
  config.dropout = 0;
  return config;
}

}  // namespace

ClassBlock::ClassBlock(const ViTConfig& config, std::string name, uint64_t index)
    : ModuleBase(of_the_block(config), std::move(name)), mlp_(config_, path("mlp")) {
  const uint64_t dim = config.dim;
  declare_norm(Module::class_norm1, "norm1");
  declare_linear(Module::class_q, "attn.q", dim, dim, config.qkv_bias);
  declare_linear(Module::class_k, "attn.k", dim, dim, config.qkv_bias);
  declare_linear(Module::class_v, "attn.v", dim, dim, config.qkv_bias);
  declare_linear(Module::class_projection, "attn.proj", dim, dim);
  if (config.layer_scale) declare(Module::class_scale1, Leaf::whole, "ls1.gamma", {dim});
  declare_norm(Module::class_norm2, "norm2");
  // Files know the parts of this MLP by other names than a block's.
  for (Parameter parameter : mlp_.parameters()) {
    parameter.module = parameter.module == Module::fc1 ? Module::class_fc1 : Module::class_fc2;
    parameters_.push_back(std::move(parameter));
  }
  if (config.layer_scale) declare(Module::class_scale2, Leaf::whole, "ls2.gamma", {dim});
  for (Parameter& parameter : parameters_) parameter.block = index;
}

ValueId ClassBlock::operator()(GraphBuilder& builder, ValueId class_token, ValueId patches) const {
  Graph& graph = builder.graph();
  const DType dtype = builder.dtype(name_);
  const auto linear = [&](const std::string& at, ValueId x) {
    return matmul(
        graph, path(at), x, constant(builder, at + ".weight", dtype),
        {.bias = constant_if(config_.qkv_bias, builder, at + ".bias", dtype), .rounded = builder.rounded()});
  };
  const auto scale = [&](std::string_view at) { return constant_if(has(at), builder, at, DType::f32); };
  const ValueId all = norm(builder, "norm1", concat(graph, path("tokens"), {class_token, patches}, 1), dtype);
  const ValueId q = linear("attn.q", slice(graph, path("class_token"), all, 1, 0, 1));
  const ValueId k = linear("attn.k", all), v = linear("attn.v", all);
  const uint64_t width = config_.dim / config_.heads;
  const AttentionResult attended = attention(graph, path("attn"), q, k, v,
                                             {.heads = config_.heads,
                                              .key_width = width,
                                              .value_width = width,
                                              .store_lse = builder.training(),
                                              .rounded = builder.rounded()});
  const ValueId x = last_linear(builder, "attn.proj", path("attn.proj"), attended.out,
                                {.scale = scale("ls1.gamma"), .residual = class_token});
  const ValueId normed = norm(builder, "norm2", x, builder.dtype(mlp_.name()));
  return mlp_.values(builder, normed, {.scale = scale("ls2.gamma"), .residual = x}).out;
}

}  // namespace vitrine

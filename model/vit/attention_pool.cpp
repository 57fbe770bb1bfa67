#include "model/vit/attention_pool.h"

#include "runtime/ops/attention/attention.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/moves/repeat.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/tokens/pool.h"

namespace vitrine {

namespace {

// As in timm, nothing is dropped in here, and the MLP is a plain one.
ViTConfig of_the_pool(ViTConfig config) {
  if (config.mlp != MlpKind::plain) config.activation = Activation::gelu;
  config.dropout = 0;
  config.mlp_hidden = config.pooling_hidden();
  config.mlp = MlpKind::plain;
  config.mlp_norm = false;
  config.mlp_bias = true;
  return config;
}

}  // namespace

AttentionPool::AttentionPool(const ViTConfig& config, std::string name)
    : ModuleBase(of_the_pool(config), std::move(name)), mlp_(config_, path("mlp")) {
  const uint64_t dim = config.dim;
  declare(Module::pool_latent, Leaf::whole, "latent", {1, dim});
  if (config.pool_query) declare_linear(Module::pool_q, "q", dim, dim);
  declare_linear(Module::pool_kv, "kv", 2 * dim, dim, config.pool_bias);
  declare_linear(Module::pool_projection, "proj", dim, dim);
  if (!config.pool_mlp) return;
  declare_norm(Module::pool_norm, "norm");
  // Files know the parts of this MLP by other names than a block's.
  for (Parameter parameter : mlp_.parameters()) {
    parameter.module = parameter.module == Module::fc1 ? Module::pool_fc1 : Module::pool_fc2;
    parameters_.push_back(std::move(parameter));
  }
}

AttentionPool::Values AttentionPool::values(GraphBuilder& builder, ValueId patches, bool keep_lse) const {
  Graph& graph = builder.graph();
  const DType dtype = builder.dtype(name_);
  const uint64_t batch = graph.value(patches).shape[0], dim = config_.dim;
  const auto linear = [&](const std::string& at, ValueId x, ValueId residual, DType out) {
    const ValueId weight = constant(builder, at + ".weight", dtype);
    return matmul(graph, path(at), x, weight,
                  {.bias = constant_if(has(at + ".bias"), builder, at + ".bias", dtype),
                   .residual = residual,
                   .out = out,
                   .rounded = builder.rounded()});
  };
  const ValueId latent = convert(graph, path("latent.convert"), constant(builder, "latent", dtype), dtype);
  // The same query for all images: projected once.
  const ValueId query = config_.pool_query ? linear("q", latent, {}, dtype) : latent;
  const ValueId q = repeat(graph, path("q.repeat"), query, batch);
  const ValueId kv = linear("kv", patches, {}, dtype);
  const uint64_t heads = config_.pooling_heads(), width = dim / heads;
  Values out;
  AttentionValues& attended = out.attention;
  attended = {.q = q,
              .k = kv,
              .v = kv,
              .options = {.heads = heads,
                          .key_width = width,
                          .value_width = width,
                          .v_offset = dim,
                          .store_lse = keep_lse || builder.training(),
                          .rounded = builder.rounded()}};
  const AttentionResult fused = attention(graph, path("attend"), q, kv, kv, attended.options);
  attended.lse = fused.lse;
  attended.heads = fused.out;
  const ValueId x = attended.out = linear("proj", fused.out, {}, DType::f32);
  if (!config_.pool_mlp) {
    out.out = pool_token(graph, path("token"), x, 0);
    return out;
  }
  const ValueId normed = norm(builder, "norm", x, builder.dtype(mlp_.name()));
  out.out = pool_token(graph, path("token"), mlp_.values(builder, normed, {.residual = x}).out, 0);
  return out;
}

}  // namespace vitrine

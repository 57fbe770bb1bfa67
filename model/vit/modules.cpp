#include "model/vit/modules.h"

#include <algorithm>
#include <utility>

#include "runtime/ops/attention/plain_attention.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/elementwise/gated_product.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/products/grouped_matmul.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/tokens/patch_embed.h"

namespace vitrine {
namespace {

std::string dotted(std::string_view name, std::string_view leaf) {
  return name.empty() ? std::string(leaf) : std::string(name) + "." + std::string(leaf);
}

// Adds the residual to what a branch gives, of which some samples are dropped.
ValueId end_branch(GraphBuilder& builder, const std::string& node, ValueId x, const Epilogue& epilogue) {
  if (!epilogue.residual) return x;
  x = builder.drop_samples(node + ".drop", x, epilogue.drop_rate);
  return add(builder.graph(), node + ".add", epilogue.residual, x);
}

}  // namespace

std::string ModuleBase::path(std::string_view leaf) const { return dotted(name_, leaf); }

void ModuleBase::declare(Module module, Leaf leaf, std::string_view at, Shape shape) {
  std::string full = path(at);
  if (leaf == Leaf::weight) full += ".weight";
  if (leaf == Leaf::bias) full += ".bias";
  parameters_.push_back({.name = std::move(full), .module = module, .leaf = leaf, .shape = shape});
}

void ModuleBase::declare_linear(Module module, std::string_view at, uint64_t out, uint64_t in, bool bias) {
  declare(module, Leaf::weight, at, {out, in});
  if (bias) declare(module, Leaf::bias, at, {out});
}

void ModuleBase::declare_norm(Module module, std::string_view at) {
  declare(module, Leaf::weight, at, {config_.dim});
  declare(module, Leaf::bias, at, {config_.dim});
}

void ModuleBase::declare_all_of(const ModuleBase& part, uint64_t block) {
  for (Parameter parameter : part.parameters()) {
    if (block) parameter.block = block;
    parameters_.push_back(std::move(parameter));
  }
}

const Parameter& ModuleBase::parameter(std::string_view leaf) const {
  const std::string full = path(leaf);
  const auto found = std::ranges::find(parameters_, full, &Parameter::name);
  if (found == parameters_.end()) throw Error(ErrorCode::failed, "the model has no parameter '" + full + "'");
  return *found;
}

ValueId ModuleBase::constant(GraphBuilder& builder, std::string_view leaf, DType matrices) const {
  return builder.constant(parameter(leaf), matrices);
}

ValueId ModuleBase::joined(GraphBuilder& builder, std::initializer_list<std::string_view> leaves) const {
  std::vector<const Parameter*> parts;
  for (const std::string_view leaf : leaves) parts.push_back(&parameter(leaf));
  return builder.joined(parts);
}

ValueId ModuleBase::constant_if(bool present, GraphBuilder& builder, std::string_view leaf,
                                DType matrices) const {
  return present ? constant(builder, leaf, matrices) : ValueId{};
}

ValueId ModuleBase::norm(GraphBuilder& builder, std::string_view at, ValueId x, DType out) const {
  const ValueId gamma = constant(builder, dotted(at, "weight"), DType::f32);
  const ValueId beta = constant(builder, dotted(at, "bias"), DType::f32);
  return layer_norm(builder.graph(), path(at), x, gamma, beta, {.eps = config_.eps, .out = out});
}

ValueId ModuleBase::linear(GraphBuilder& builder, std::string_view at, std::string node, ValueId x,
                           ValueId weight, MatmulOptions options) const {
  Graph& graph = builder.graph();
  options.rounded = builder.rounded();
  const std::span<const LowRankPair> pairs = builder.pairs_of(path(at));
  if (pairs.empty()) return matmul(graph, std::move(node), x, weight, options);
  // What comes behind the sum of both is done to each: the layer's has the residual, and the pair's is added
  // to that. An activation has to wait for the sum.
  const Activation activation = std::exchange(options.activation, Activation::none);
  const ValueId base = matmul(graph, node, x, weight, options);
  const ValueId sum =
      builder.low_rank(node, x, pairs.front(), {.scale = options.scale, .residual = base, .out = DType::f32});
  return activation == Activation::none ? sum : activate(graph, node + ".activation", sum, activation);
}

ValueId ModuleBase::last_linear(GraphBuilder& builder, std::string_view at, std::string node, ValueId x,
                                const Epilogue& epilogue) const {
  Graph& graph = builder.graph();
  const DType dtype = builder.dtype(name_);
  const ValueId weight = constant(builder, dotted(at, "weight"), dtype);
  const ValueId bias = constant(builder, dotted(at, "bias"), dtype);
  if (!builder.training() || (config_.dropout == 0 && epilogue.drop_rate == 0)) {
    return linear(builder, at, std::move(node), x, weight,
                  {.bias = bias, .scale = epilogue.scale, .residual = epilogue.residual, .out = DType::f32});
  }
  x = linear(builder, at, node, x, weight, {.bias = bias, .out = DType::f32});
  x = builder.dropout(node + ".dropout", x, config_.dropout);
  if (epilogue.scale) x = multiply(graph, node + ".scale", x, epilogue.scale);
  return end_branch(builder, node, x, epilogue);
}

PatchEmbed::PatchEmbed(const ViTConfig& config, std::string name) : ModuleBase(config, std::move(name)) {
  declare(Module::patch, Leaf::weight, "proj",
          {config.dim, config.channels, config.patch_height, config.patch_width});
  if (config.patch_bias) declare(Module::patch, Leaf::bias, "proj", {config.dim});
  if (config.patch_norm) declare_norm(Module::patch_norm, "norm");
}

ValueId PatchEmbed::operator()(GraphBuilder& builder, ValueId image) const {
  const DType dtype = builder.dtype(name_);
  const ValueId weight = constant(builder, "proj.weight", dtype);
  const ValueId bias = constant_if(config_.patch_bias, builder, "proj.bias", dtype);
  const ValueId x = patch_embed(
      builder.graph(), name_.empty() ? "patch_embed" : name_, image, weight, bias,
      {.patch_height = config_.patch_height, .patch_width = config_.patch_width, .out = DType::f32});
  return config_.patch_norm ? norm(builder, "norm", x, DType::f32) : x;
}

Attention::Attention(const ViTConfig& config, std::string name) : ModuleBase(config, std::move(name)) {
  if (config.per_head_maps) {
    const auto maps = [&](Module module, std::string_view at, uint64_t width) {
      declare(module, Leaf::weight, at, {config.heads, width, config.dim / config.heads});
      if (config.qkv_bias) declare(module, Leaf::bias, at, {config.heads, width});
    };
    maps(Module::q, "q", config.head_key_width());
    maps(Module::k, "k", config.head_key_width());
    maps(Module::v, "v", config.head_value_width());
  } else {
    declare_linear(Module::qkv, "qkv", 2 * config.key_columns() + config.value_columns(), config.dim,
                   config.qkv_bias);
  }
  if (config.projection) declare_linear(Module::projection, "proj", config.dim, config.value_columns());
}

AttentionValues Attention::values(GraphBuilder& builder, ValueId x, const AttentionKeeps& keeps,
                                  const Epilogue& epilogue) const {
  Graph& graph = builder.graph();
  const DType dtype = builder.dtype(name_);
  x = convert(graph, path("in.convert"), x, dtype);
  AttentionValues out{.options = {.heads = config_.heads,
                                  .key_width = config_.head_key_width(),
                                  .value_width = config_.head_value_width(),
                                  .scale = config_.attention_scale(),
                                  .store_lse = keeps.lse || builder.training(),
                                  .rounded = builder.rounded(),
                                  .causal = config_.causal}};
  if (builder.training() && config_.attention_dropout > 0) {
    out.options.drop_rate = config_.attention_dropout;
    out.options.drop_stream = builder.next_stream();
    out.options.step = builder.step();
  }
  const ValueId all_maps =
      config_.per_head_maps ? joined(builder, {"q.weight", "k.weight", "v.weight"}) : ValueId{};
  const auto take_from_one = [&](ValueId qkv) {
    out.q = out.k = out.v = qkv;
    out.options.k_offset = config_.key_columns();
    out.options.v_offset = 2 * config_.key_columns();
  };
  if (all_maps) {
    const ValueId bias = config_.qkv_bias ? joined(builder, {"q.bias", "k.bias", "v.bias"}) : ValueId{};
    take_from_one(grouped_matmul(graph, path("qkv"), x, all_maps, bias));
  } else if (config_.per_head_maps) {
    const auto map = [&](const std::string& at) {
      const ValueId weight = constant(builder, at + ".weight", dtype);
      return grouped_matmul(graph, path(at), x, weight,
                            constant_if(config_.qkv_bias, builder, at + ".bias", dtype));
    };
    out.q = map("q");
    out.k = map("k");
    out.v = map("v");
  } else if (const auto pairs = builder.pairs_of(path("qkv"));
             !pairs.empty() && pairs.front().rows() != parameter("qkv.weight").shape[0]) {
    // Pairs of their own: three products, so that each is added where it belongs.
    const uint64_t keys = config_.key_columns();
    const auto map = [&](const char* at, uint64_t first, uint64_t rows) {
      const ValueId bias = config_.qkv_bias ? builder.rows(parameter("qkv.bias"), first, rows) : ValueId{};
      ValueId out_of = matmul(graph, path(at), x, builder.rows(parameter("qkv.weight"), first, rows),
                              {.bias = bias, .rounded = builder.rounded()});
      for (const LowRankPair& pair : pairs) {
        if (pair.first_row == first) out_of = builder.low_rank(path(at), x, pair, {.residual = out_of});
      }
      return out_of;
    };
    out.q = map("q", 0, keys);
    out.k = map("k", keys, keys);
    out.v = map("v", 2 * keys, config_.value_columns());
  } else {
    const ValueId weight = constant(builder, "qkv.weight", dtype);
    take_from_one(linear(builder, "qkv", path("qkv"), x, weight,
                         {.bias = constant_if(config_.qkv_bias, builder, "qkv.bias", dtype)}));
  }
  const std::string node = name_.empty() ? "attention" : name_;
  if (keeps.scores) {
    const PlainAttentionResult plain = plain_attention(graph, node, out.q, out.k, out.v, out.options);
    out.heads = plain.out;
    out.scores = plain.scores;
    out.weights = plain.weights;
  } else {
    const AttentionResult fused = vitrine::attention(graph, node, out.q, out.k, out.v, out.options);
    out.heads = fused.out;
    out.lse = fused.lse;
  }
  if (config_.projection) {
    out.out = project(builder, path("proj"), out.heads, epilogue);
  } else {
    out.out = end_branch(builder, node, out.heads, epilogue);
  }
  return out;
}

ValueId Attention::project(GraphBuilder& builder, std::string node, ValueId heads,
                           const Epilogue& epilogue) const {
  return last_linear(builder, "proj", std::move(node), heads, epilogue);
}

Mlp::Mlp(const ViTConfig& config, std::string name) : ModuleBase(config, std::move(name)) {
  const uint64_t branches = config.mlp == MlpKind::swiglu ? 2 : 1;
  declare_linear(Module::fc1, "fc1", branches * config.mlp_width(), config.dim);
  declare_linear(Module::fc2, "fc2", config.dim, config.mlp_width());
}

MlpValues Mlp::values(GraphBuilder& builder, ValueId x, const Epilogue& epilogue) const {
  Graph& graph = builder.graph();
  const DType dtype = builder.dtype(name_);
  const bool gated = config_.mlp == MlpKind::swiglu;
  x = convert(graph, path("in.convert"), x, dtype);
  const ValueId fc1 = constant(builder, "fc1.weight", dtype);
  MlpValues out;
  out.hidden = linear(builder, "fc1", path("fc1"), x, fc1,
                      {.bias = constant(builder, "fc1.bias", dtype),
                       .activation = gated ? Activation::none : config_.activation});
  if (gated) out.hidden = gated_product(graph, path("gate"), out.hidden, config_.activation);
  out.hidden = builder.dropout(path("hidden.dropout"), out.hidden, config_.dropout);
  out.out = last_linear(builder, "fc2", path("fc2"), out.hidden, epilogue);
  return out;
}

Block::Block(const ViTConfig& config, std::string name, uint64_t index)
    : ModuleBase(config, std::move(name)), attention_(config, path("attn")), mlp_(config, path("mlp")) {
  declare_norm(Module::norm1, "norm1");
  declare_all_of(attention_);
  if (config.layer_scale) declare(Module::scale1, Leaf::whole, "ls1.gamma", {config.dim});
  declare_norm(Module::norm2, "norm2");
  declare_all_of(mlp_);
  if (config.layer_scale) declare(Module::scale2, Leaf::whole, "ls2.gamma", {config.dim});
  for (Parameter& parameter : parameters_) parameter.block = index;
  if (config.depth > 1) {
    drop_rate_ = config.stochastic_depth * static_cast<double>(index) / static_cast<double>(config.depth - 1);
  }
}

BlockValues Block::values(GraphBuilder& builder, ValueId x, const AttentionKeeps& keeps) const {
  const auto scale = [&](std::string_view at) {
    return constant_if(config_.layer_scale, builder, at, DType::f32);
  };
  BlockValues out{.in = x};
  out.normed1 = norm(builder, "norm1", x, builder.dtype(attention_.name()));
  out.attention = attention_.values(builder, out.normed1, keeps,
                                    {.scale = scale("ls1.gamma"), .residual = x, .drop_rate = drop_rate_});
  out.normed2 = norm(builder, "norm2", out.attention.out, builder.dtype(mlp_.name()));
  out.mlp =
      mlp_.values(builder, out.normed2,
                  {.scale = scale("ls2.gamma"), .residual = out.attention.out, .drop_rate = drop_rate_});
  return out;
}

}  // namespace vitrine

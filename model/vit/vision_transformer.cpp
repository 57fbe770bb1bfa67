#include "model/vit/vision_transformer.h"

#include <array>
#include <string>
#include <utility>

#include "model/vit/rotary_table.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/moves/concat.h"
#include "runtime/ops/moves/repeat.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/norms/softmax.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/tokens/assemble_tokens.h"
#include "runtime/ops/tokens/pool.h"

namespace vitrine {
namespace {

constexpr std::array<std::pair<Result, std::string_view>, 4> result_names{
    {{Result::logits, "logits"},
     {Result::probabilities, "probabilities"},
     {Result::features, "features"},
     {Result::tokens, "tokens"}}};

}  // namespace

std::string_view name_of(Result result) {
  for (const auto& [known, name] : result_names) {
    if (known == result) return name;
  }
  return "?";
}

std::optional<Result> result_named(std::string_view name) {
  for (const auto& [result, known] : result_names) {
    if (known == name) return result;
  }
  return std::nullopt;
}

Result natural_result(const ViTConfig& config) {
  if (config.classes == 0) return Result::features;
  return config.softmax_output ? Result::probabilities : Result::logits;
}

std::vector<uint64_t> result_shape(const ViTConfig& config, Result result, uint64_t images) {
  switch (result) {
    case Result::logits:
    case Result::probabilities:
      return {images, config.classes};
    case Result::features:
      return {images, config.feature_width()};
    case Result::tokens:
      return {images, config.tokens(), config.result_width()};
  }
  return {};
}

VisionTransformer::VisionTransformer(const ViTConfig& c, std::string name)
    : ModuleBase(c, std::move(name)), patch_embed_(c, path("patch_embed")) {
  blocks_.reserve(c.depth);
  for (uint64_t i = 0; i < c.depth; ++i) blocks_.emplace_back(c, path("blocks." + std::to_string(i)), i);

  if (c.class_token) declare(Module::class_token, Leaf::whole, "cls_token", {c.dim});
  if (c.distillation_token) declare(Module::distillation_token, Leaf::whole, "dist_token", {c.dim});
  if (c.registers) declare(Module::registers, Leaf::whole, "reg_token", {c.registers, c.dim});
  if (c.detection_tokens)
    declare(Module::detection_tokens, Leaf::whole, "det_token", {c.detection_tokens, c.dim});
  if (c.positions != Positions::none) {
    declare(Module::positions, Leaf::whole, "pos_embed", {c.position_rows(), c.dim});
    parameters_.back().fixed = c.positions != Positions::learned;
  }
  declare_all_of(patch_embed_);
  if (c.rotary_learned) {
    declare(Module::rotary_frequencies, Leaf::whole, "rope.freqs", frequencies_shape(c));
    parameters_.back().aside = true;
  }
  if (c.rotary_class) {
    declare(Module::rotary_class, Leaf::whole, "rope.class_token", class_angles_shape(c));
    parameters_.back().aside = true;
  }
  if (c.pre_norm) declare_norm(Module::pre_norm, "norm_pre");
  for (const Block& block : blocks_) declare_all_of(block);
  for (uint64_t i = 0; i < c.class_blocks; ++i)
    declare_all_of(class_blocks_.emplace_back(c, path("blocks_token_only." + std::to_string(i)), i));
  if (c.neck) declare_all_of(neck_.emplace(c, path("neck")));
  if (c.final_norm) declare_norm(Module::norm, "norm");
  if (c.pool == Pool::attention) declare_all_of(attention_pool_.emplace(c, path("attn_pool")));
  if (c.fc_norm) declare_norm(Module::fc_norm, "fc_norm");
  if (c.representation_size)
    declare_linear(Module::pre_logits, "pre_logits.fc", c.representation_size, c.pooled_width());
  if (c.embedding_size)
    declare_linear(Module::embedding, "visual_projection", c.embedding_size, c.pooled_width(), false);
  if (c.classes) declare_linear(Module::head, "head", c.classes, c.feature_width());
  if (c.classes && c.distilled_head) declare_linear(Module::distillation_head, "head_dist", c.classes, c.dim);
}

ValueId VisionTransformer::tokens(GraphBuilder& builder, ValueId image, const BlockTaps& taps) const {
  ValueId x = assemble(builder, patch_embed_(builder, image));
  for (uint64_t i = 0; i < blocks_.size(); ++i) {
    const auto tap = taps.find(i);
    if (tap == taps.end()) {
      x = blocks_[i](builder, x);
      continue;
    }
    const BlockValues values = blocks_[i].values(builder, x, tap->second.keeps);
    if (tap->second.look) tap->second.look(builder, values);
    x = values.out;
  }
  return class_blocks_.empty() ? x : with_class_token(builder, x);
}

ValueId VisionTransformer::with_class_token(GraphBuilder& builder, ValueId patches) const {
  Graph& graph = builder.graph();
  ValueId token = repeat_tokens(graph, path("cls_token.repeat"), constant(builder, "cls_token", DType::f32),
                                graph.value(patches).shape[0]);
  for (const ClassBlock& block : class_blocks_) token = block(builder, token, patches);
  return concat(graph, path("cls_token.concat"), {token, patches}, 1);
}

VisionTransformer::Heads VisionTransformer::heads(GraphBuilder& builder, ValueId image) const {
  const Seen both = seen(builder, tokens(builder, image), nullptr);
  return {head(builder, "head", both.features), head(builder, "head_dist", both.distillation)};
}

ValueId VisionTransformer::operator()(GraphBuilder& builder, ValueId image, Result result,
                                      const BlockTaps& taps) const {
  const ValueId x = tokens(builder, image, taps);
  const auto pool_tap = taps.find(blocks_.size());
  return finish(builder, x, result, pool_tap == taps.end() ? nullptr : &pool_tap->second);
}

ValueId VisionTransformer::assemble(GraphBuilder& builder, ValueId x) const {
  const bool any_positions = config_.positions != Positions::none;
  // Of tokens behind the patches, too: these are put there first.
  const bool positions = any_positions && config_.detection_tokens == 0;
  if (positions || config_.prefix_in_blocks()) {
    const auto constant_of = [&](bool present, std::string_view leaf) {
      return constant_if(present, builder, leaf, DType::f32);
    };
    x = assemble_tokens(
        builder.graph(), path("tokens"), x,
        {.class_token = constant_of(config_.class_token && class_blocks_.empty(), "cls_token"),
         .distillation_token = constant_of(config_.distillation_token, "dist_token"),
         .registers = constant_of(config_.registers > 0, "reg_token"),
         .positions = constant_of(positions, "pos_embed"),
         .out = DType::f32});
  }
  if (config_.detection_tokens) {
    Graph& graph = builder.graph();
    const ValueId behind = repeat_tokens(graph, path("tokens.repeat"),
                                         constant(builder, "det_token", DType::f32), graph.value(x).shape[0]);
    x = concat(graph, path("tokens.detection"), {x, behind}, 1);
    if (any_positions)
      x = add(graph, path("tokens.positions"), x, constant(builder, "pos_embed", DType::f32));
  }
  x = builder.dropout(path("tokens.dropout"), x, config_.dropout);
  return config_.pre_norm ? norm(builder, "norm_pre", x, DType::f32) : x;
}

// One token of every image behind the final norm. A LayerNorm sees one token at a time, so pooling first
// gives the same numbers for less work.
ValueId VisionTransformer::token(GraphBuilder& builder, ValueId x, uint64_t index, const std::string& node,
                                 DType out) const {
  ValueId pooled = pool_token(builder.graph(), path(node), x, index);
  if (config_.final_norm)
    pooled = norm_as(builder, node + ".norm", "norm", pooled, config_.fc_norm ? DType::f32 : out);
  if (config_.fc_norm) pooled = norm_as(builder, node + ".fc_norm", "fc_norm", pooled, out);
  return convert(builder.graph(), path(node + ".convert"), pooled, out);
}

// [B, pooled_width], in `out`.
ValueId VisionTransformer::pooled(GraphBuilder& builder, ValueId x, DType out, const BlockTap* tap) const {
  Graph& graph = builder.graph();
  const uint64_t first = config_.first_pooled(), count = config_.pooled_tokens();
  switch (config_.pool) {
    case Pool::token:
      return token(builder, x, 0, "class_token", out);
    case Pool::first:
      return token(builder, x, 0, "first_patch", out);
    case Pool::prefix:
      if (config_.final_norm) x = norm(builder, "norm", x, DType::f32);
      x = pool_mean(graph, path("pool"), x, 0, config_.prefix_tokens());
      if (config_.fc_norm) x = norm(builder, "fc_norm", x, out);
      break;
    case Pool::mean:
      if (neck_ || config_.final_norm) x = normed(builder, neck_ ? "neck" : "norm", x);
      x = pool_mean(graph, path("pool"), x, first, count);
      if (config_.fc_norm) x = norm(builder, "fc_norm", x, out);
      break;
    case Pool::token_and_mean: {
      if (config_.final_norm) x = norm(builder, "norm", x, DType::f32);
      const ValueId class_token = pool_token(graph, path("class_token"), x, 0);
      const ValueId mean = pool_mean(graph, path("mean"), x, first, count);
      x = concat(graph, path("pool"), {class_token, mean}, -1);
      break;
    }
    case Pool::attention: {
      const DType dtype = builder.dtype(attention_pool_->name());
      if (config_.final_norm) x = norm(builder, "norm", x, dtype);
      if (first) x = slice(graph, path("patches"), x, 1, first, first + count);
      x = convert(graph, path("patches.convert"), x, dtype);
      const AttentionPool::Values values = attention_pool_->values(builder, x, tap && tap->keeps.lse);
      if (tap && tap->look) tap->look(builder, {.attention = values.attention});
      x = values.out;
      if (config_.fc_norm) x = norm(builder, "fc_norm", x, out);
      break;
    }
  }
  return convert(graph, path("pool.convert"), x, out);
}

// What the head sees, in `out`.
ValueId VisionTransformer::features(GraphBuilder& builder, ValueId x, DType out, const BlockTap* tap) const {
  if (config_.representation_size) {
    // In f32 always: tanh would make a number of an infinity, and f16's overflow would pass unseen.
    const ValueId weight = constant(builder, "pre_logits.fc.weight", DType::f32);
    const ValueId represented =
        matmul(builder.graph(), path("pre_logits"), pooled(builder, x, DType::f32, tap), weight,
               {.bias = constant(builder, "pre_logits.fc.bias", DType::f32), .activation = Activation::tanh});
    return convert(builder.graph(), path("pre_logits.convert"), represented, out);
  }
  if (config_.embedding_size) {
    const DType dtype = builder.dtype(path("visual_projection"));
    const ValueId weight = constant(builder, "visual_projection.weight", dtype);
    return matmul(builder.graph(), path("visual_projection"), pooled(builder, x, dtype, tap), weight,
                  {.out = out});
  }
  return pooled(builder, x, out, tap);
}

ValueId VisionTransformer::head(GraphBuilder& builder, const std::string& at, ValueId x,
                                ValueId residual) const {
  const DType dtype = builder.dtype(path(at));
  const ValueId weight = constant(builder, at + ".weight", dtype);
  return matmul(builder.graph(), path(at), x, weight,
                {.bias = constant(builder, at + ".bias", dtype), .residual = residual, .out = DType::f32});
}

ValueId VisionTransformer::finish(GraphBuilder& builder, ValueId x, Result result,
                                  const BlockTap* pool_tap) const {
  if (result == Result::tokens)
    return neck_ || config_.final_norm ? normed(builder, neck_ ? "neck" : "norm", x) : x;
  Graph& graph = builder.graph();
  if (result == Result::features) {
    const ValueId pooled = features(builder, x, DType::f32, pool_tap);
    if (!config_.distilled_head) return pooled;
    const ValueId both =
        add(graph, path("features.add"), pooled, token(builder, x, 1, "distillation_token", DType::f32));
    return scale(graph, path("features.mean"), both, 0.5);
  }
  if (config_.classes == 0) {
    throw Error(ErrorCode::usage, "--what is " + std::string(name_of(result)) +
                                      " and the model has no head, expected features or tokens");
  }
  return classify(builder, seen(builder, x, pool_tap), result);
}

VisionTransformer::Seen VisionTransformer::seen(GraphBuilder& builder, ValueId x, const BlockTap* tap) const {
  Seen both{.features = features(builder, x, builder.dtype(path("head")), tap)};
  if (config_.distilled_head) {
    both.distillation = token(builder, x, 1, "distillation_token", builder.dtype(path("head_dist")));
  }
  return both;
}

ValueId VisionTransformer::classify(GraphBuilder& builder, const Seen& seen, Result result) const {
  Graph& graph = builder.graph();
  ValueId logits = head(builder, "head", seen.features);
  if (config_.distilled_head) {
    const ValueId both = head(builder, "head_dist", seen.distillation, logits);
    logits = scale(graph, path("heads.mean"), both, 0.5);
  }
  return result == Result::probabilities ? softmax(graph, path("softmax"), logits) : logits;
}

uint64_t VisionTransformer::head_inputs_width() const {
  return config_.feature_width() + (config_.distilled_head ? config_.dim : 0);
}

ValueId VisionTransformer::head_inputs(GraphBuilder& builder, ValueId tokens) const {
  const Seen both = seen(builder, tokens, nullptr);
  if (!both.distillation) return both.features;
  return concat(builder.graph(), path("head_inputs"), {both.features, both.distillation}, -1);
}

ValueId VisionTransformer::classify(GraphBuilder& builder, ValueId head_inputs, Result result) const {
  if (!config_.distilled_head) return classify(builder, Seen{.features = head_inputs}, result);
  const uint64_t width = config_.feature_width();
  const auto part = [&](const char* node, uint64_t begin, uint64_t end) {
    return slice(builder.graph(), path(node), head_inputs, -1, begin, end);
  };
  return classify(builder,
                  Seen{.features = part("head.in", 0, width),
                       .distillation = part("head_dist.in", width, head_inputs_width())},
                  result);
}

}  // namespace vitrine

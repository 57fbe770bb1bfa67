#include "model/vit_graph.h"

#include <array>
#include <map>

#include "model/parameters.h"
#include "runtime/ops/assemble_tokens.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/binary.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/gated_product.h"
#include "runtime/ops/grouped_matmul.h"
#include "runtime/ops/layer_norm.h"
#include "runtime/ops/matmul.h"
#include "runtime/ops/patch_embed.h"
#include "runtime/ops/pool.h"
#include "runtime/ops/softmax.h"
#include "runtime/ops/unary.h"

namespace vitrine {
namespace {

constexpr std::array<std::pair<Result, std::string_view>, 4> result_names{
    {{Result::logits, "logits"},
     {Result::probabilities, "probabilities"},
     {Result::features, "features"},
     {Result::tokens, "tokens"}}};

class Builder {
 public:
  Builder(const ViTConfig& config, const ViTGraphOptions& options)
      : c_(config), batch_(options.batch), dtype_(options.dtype), graph_(std::make_shared<Graph>()) {
    for (Parameter& parameter : parameters_of(config))
      parameters_.emplace(parameter.name, std::move(parameter));
  }

  std::shared_ptr<const Graph> build(Result result) {
    ValueId x = embed();
    for (uint64_t i = 0; i < c_.depth; ++i) x = block(x, "blocks." + std::to_string(i));
    graph_->output(finish(x, result), std::string(name_of(result)));
    return graph_;
  }

 private:
  // The named parameter as a constant; made on first use.
  ValueId constant(const std::string& name) {
    if (const auto made = constants_.find(name); made != constants_.end()) return made->second;
    const auto found = parameters_.find(name);
    if (found == parameters_.end())
      throw Error(ErrorCode::failed, "the model has no parameter '" + name + "'");
    const ValueId id =
        graph_->constant(name, found->second.shape, found->second.is_matrix() ? dtype_ : DType::f32);
    constants_.emplace(name, id);
    return id;
  }
  ValueId constant_if(bool present, const std::string& name) { return present ? constant(name) : ValueId{}; }

  ValueId norm(const std::string& name, ValueId x, DType out) {
    return layer_norm(*graph_, name, x, constant(name + ".weight"), constant(name + ".bias"),
                      {.eps = c_.eps, .out = out});
  }

  ValueId embed() {
    const ValueId image = graph_->input("image", {batch_, c_.channels, c_.image_height, c_.image_width});
    ValueId x =
        patch_embed(*graph_, "patch_embed", image, constant("patch_embed.proj.weight"),
                    constant_if(c_.patch_bias, "patch_embed.proj.bias"),
                    {.patch_height = c_.patch_height, .patch_width = c_.patch_width, .out = DType::f32});
    if (c_.patch_norm) x = norm("patch_embed.norm", x, DType::f32);
    const bool positions = c_.positions != Positions::none;
    if (positions || c_.prefix_tokens()) {
      x = assemble_tokens(*graph_, "tokens", x,
                          {.class_token = constant_if(c_.class_token, "cls_token"),
                           .distillation_token = constant_if(c_.distillation_token, "dist_token"),
                           .registers = constant_if(c_.registers > 0, "reg_token"),
                           .positions = constant_if(positions, "pos_embed"),
                           .out = DType::f32});
    }
    return c_.pre_norm ? norm("norm_pre", x, DType::f32) : x;
  }

  // The heads' outputs side by side, [B, N, heads * value_width].
  ValueId attend(ValueId x, const std::string& at) {
    AttentionOptions options{.heads = c_.heads,
                             .key_width = c_.head_key_width(),
                             .value_width = c_.head_value_width(),
                             .scale = c_.attention_scale()};
    if (c_.per_head_maps) {
      const auto map = [&](const std::string& which) {
        const std::string name = at + ".attn." + which;
        return grouped_matmul(*graph_, name, x, constant(name + ".weight"),
                              constant_if(c_.qkv_bias, name + ".bias"));
      };
      const ValueId q = map("q"), k = map("k"), v = map("v");
      return attention(*graph_, at + ".attn", q, k, v, options).out;
    }
    const std::string name = at + ".attn.qkv";
    const ValueId qkv = matmul(*graph_, name, x, constant(name + ".weight"),
                               {.bias = constant_if(c_.qkv_bias, name + ".bias")});
    options.k_offset = c_.key_columns();
    options.v_offset = 2 * c_.key_columns();
    return attention(*graph_, at + ".attn", qkv, qkv, qkv, options).out;
  }

  ValueId block(ValueId x, const std::string& at) {
    const ValueId attended = attend(norm(at + ".norm1", x, dtype_), at);
    if (c_.projection) {
      const std::string name = at + ".attn.proj";
      x = matmul(*graph_, name, attended, constant(name + ".weight"),
                 {.bias = constant(name + ".bias"),
                  .scale = constant_if(c_.layer_scale, at + ".ls1.gamma"),
                  .residual = x,
                  .out = DType::f32});
    } else {
      x = add(*graph_, at + ".attn.add", x, attended);
    }
    const bool gated = c_.mlp == MlpKind::swiglu;
    ValueId hidden = matmul(
        *graph_, at + ".mlp.fc1", norm(at + ".norm2", x, dtype_), constant(at + ".mlp.fc1.weight"),
        {.bias = constant(at + ".mlp.fc1.bias"), .activation = gated ? Activation::none : c_.activation});
    if (gated) hidden = gated_product(*graph_, at + ".mlp.gate", hidden, c_.activation);
    return matmul(*graph_, at + ".mlp.fc2", hidden, constant(at + ".mlp.fc2.weight"),
                  {.bias = constant(at + ".mlp.fc2.bias"),
                   .scale = constant_if(c_.layer_scale, at + ".ls2.gamma"),
                   .residual = x,
                   .out = DType::f32});
  }

  // One token of every image behind the final norm. A LayerNorm sees one token at a time, so pooling
  // first gives the same numbers for less work.
  ValueId token(ValueId x, uint64_t index, const std::string& name, DType out) {
    ValueId pooled = pool_token(*graph_, name, x, index);
    if (c_.final_norm) pooled = norm_as(name + ".norm", "norm", pooled, c_.fc_norm ? DType::f32 : out);
    if (c_.fc_norm) pooled = norm_as(name + ".fc_norm", "fc_norm", pooled, out);
    return convert(*graph_, name + ".convert", pooled, out);
  }
  ValueId norm_as(std::string name, const std::string& constants, ValueId x, DType out) {
    return layer_norm(*graph_, std::move(name), x, constant(constants + ".weight"),
                      constant(constants + ".bias"), {.eps = c_.eps, .out = out});
  }

  // What the head sees, in `out`.
  ValueId features(ValueId x, DType out) {
    const bool more = c_.representation_size > 0;
    ValueId pooled;
    if (c_.pool == Pool::token) {
      pooled = token(x, 0, "class_token", more ? dtype_ : out);
    } else {
      if (c_.final_norm) x = norm("norm", x, DType::f32);
      pooled = pool_mean(*graph_, "pool", x, c_.prefix_tokens(), c_.patches());
      const DType next = more ? dtype_ : out;
      if (c_.fc_norm) pooled = norm("fc_norm", pooled, next);
      pooled = convert(*graph_, "pool.convert", pooled, next);
    }
    if (!more) return pooled;
    return matmul(*graph_, "pre_logits", pooled, constant("pre_logits.fc.weight"),
                  {.bias = constant("pre_logits.fc.bias"), .activation = Activation::tanh, .out = out});
  }

  ValueId head(const std::string& name, ValueId x, ValueId residual = {}) {
    return matmul(*graph_, name, x, constant(name + ".weight"),
                  {.bias = constant(name + ".bias"), .residual = residual, .out = DType::f32});
  }

  ValueId finish(ValueId x, Result result) {
    if (result == Result::tokens) return c_.final_norm ? norm("norm", x, DType::f32) : x;
    if (result == Result::features) {
      const ValueId pooled = features(x, DType::f32);
      if (!c_.distilled_head) return pooled;
      const ValueId both =
          add(*graph_, "features.add", pooled, token(x, 1, "distillation_token", DType::f32));
      return scale(*graph_, "features.mean", both, 0.5);
    }
    if (c_.classes == 0) {
      throw Error(ErrorCode::usage, "--what is " + std::string(name_of(result)) +
                                        " and the model has no head, expected features or tokens");
    }
    ValueId logits = head("head", features(x, dtype_));
    if (c_.distilled_head) {
      const ValueId both = head("head_dist", token(x, 1, "distillation_token", dtype_), logits);
      logits = scale(*graph_, "heads.mean", both, 0.5);
    }
    return result == Result::probabilities ? softmax(*graph_, "softmax", logits) : logits;
  }

  const ViTConfig& c_;
  uint64_t batch_;
  DType dtype_;
  std::shared_ptr<Graph> graph_;
  std::map<std::string, Parameter> parameters_;
  std::map<std::string, ValueId> constants_;
};

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

std::shared_ptr<const Graph> make_vit_graph(const ViTConfig& config, const ViTGraphOptions& options) {
  return Builder(config, options).build(options.result.value_or(natural_result(config)));
}

}  // namespace vitrine

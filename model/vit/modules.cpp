#include "model/vit/modules.h"

#include <algorithm>
#include <utility>

#include "model/vit/lambda.h"
#include "model/vit/relative_table.h"
#include "model/vit/rotary_table.h"
#include "model/vit/stem.h"
#include "runtime/ops/attention/grid_bias.h"
#include "runtime/ops/attention/plain_attention.h"
#include "runtime/ops/attention/rotary.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/elementwise/gated_product.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/maps/neighbourhoods.h"
#include "runtime/ops/moves/concat.h"
#include "runtime/ops/moves/reshape.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/ops/moves/token_windows.h"
#include "runtime/ops/moves/transpose.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/norms/softmax.h"
#include "runtime/ops/products/grouped_matmul.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/tokens/patch_embed.h"

namespace vitrine {
namespace {

std::string dotted(std::string_view name, std::string_view leaf) {
  return name.empty() ? std::string(leaf) : std::string(name) + "." + std::string(leaf);
}

// What all blocks turn by, and have as a bias; it belongs to no module.
constexpr std::string_view shared_rotary = "rope", shared_bias = "rel_pos";

bool has_named(std::span<const Parameter> parameters, std::string_view name) {
  return std::ranges::find(parameters, name, &Parameter::name) != parameters.end();
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

void ModuleBase::declare_norm(Module module, std::string_view at, uint64_t width) {
  declare(module, Leaf::weight, at, {width});
  if (config_.norm == NormKind::layer) declare(module, Leaf::bias, at, {width});
}

// What several parts share is declared once.
void ModuleBase::declare_all_of(const ModuleBase& part, uint64_t block) {
  for (Parameter parameter : part.parameters()) {
    const bool shared = parameter.name == shared_rotary || parameter.name.starts_with(shared_bias);
    if (shared && has_named(parameters_, parameter.name)) continue;
    if (block) parameter.block = block;
    parameters_.push_back(std::move(parameter));
  }
}

bool ModuleBase::has(std::string_view leaf) const { return has_named(parameters_, path(leaf)); }

const Parameter& ModuleBase::parameter(std::string_view leaf) const {
  const std::string full = path(leaf);
  const auto found = std::ranges::find(parameters_, full, &Parameter::name);
  if (found == parameters_.end()) throw Error(ErrorCode::failed, "the model has no parameter '" + full + "'");
  return *found;
}

double ModuleBase::eps_of(Module norm) const {
  const bool behind = norm == Module::norm || norm == Module::fc_norm || norm == Module::neck_norm1 ||
                      norm == Module::neck_norm2;
  return behind && config_.final_eps != 0 ? config_.final_eps : config_.eps;
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
  return norm_as(builder, at, at, x, out);
}

ValueId ModuleBase::norm_as(GraphBuilder& builder, std::string_view node, std::string_view at, ValueId x,
                            DType out) const {
  return norm_at(builder, path(node), at, x, out);
}

ValueId ModuleBase::norm_at(GraphBuilder& builder, std::string node, std::string_view at, ValueId x,
                            DType out) const {
  const bool rms = config_.norm == NormKind::rms;
  const ValueId gamma = constant(builder, dotted(at, "weight"), DType::f32);
  const ValueId beta = constant_if(!rms, builder, dotted(at, "bias"), DType::f32);
  return layer_norm(builder.graph(), std::move(node), x, gamma, beta,
                    {.eps = eps_of(parameter(dotted(at, "weight")).module), .out = out, .rms = rms});
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
  const std::string bias_at = dotted(at, "bias");
  const ValueId bias = constant_if(has(bias_at), builder, bias_at, dtype);
  if (!builder.training() || (config_.dropout == 0 && epilogue.drop_rate == 0)) {
    return linear(builder, at, std::move(node), x, weight,
                  {.bias = bias, .scale = epilogue.scale, .residual = epilogue.residual, .out = DType::f32});
  }
  x = linear(builder, at, node, x, weight, {.bias = bias, .out = DType::f32});
  x = builder.dropout(node + ".dropout", x, config_.dropout);
  if (epilogue.scale) x = multiply(graph, node + ".scale", x, epilogue.scale);
  return end_branch(builder, node, x, epilogue);
}

ValueId ModuleBase::end_branch(GraphBuilder& builder, const std::string& node, ValueId x,
                               const Epilogue& epilogue) {
  if (!epilogue.residual) return x;
  x = builder.drop_samples(node + ".drop", x, epilogue.drop_rate);
  return add(builder.graph(), node + ".add", epilogue.residual, x);
}

PatchEmbed::PatchEmbed(const ViTConfig& config, std::string name) : ModuleBase(config, std::move(name)) {
  const uint64_t stride = config.stem_stride();
  if (config.stem != Stem::none) {
    stem_ = std::make_shared<const ConvolutionalStem>(config, path("backbone"));
    declare_all_of(*stem_);
  }
  by_rows_ = config.stem != Stem::none || !config.patches_adjoin();
  if (by_rows_) {
    declare(Module::stem_kernel, Leaf::whole, "proj",
            {config.dim,
             config.stem_channels() * (config.patch_height / stride) * (config.patch_width / stride)});
    parameters_.back().fixed = true;
  }
  declare(Module::patch, Leaf::weight, "proj",
          {config.dim, config.stem_channels(), config.patch_height / stride, config.patch_width / stride});
  parameters_.back().aside = by_rows_;
  if (config.patch_bias) declare(Module::patch, Leaf::bias, "proj", {config.dim});
  if (config.patch_norm) declare_norm(Module::patch_norm, "norm");
}

ValueId PatchEmbed::operator()(GraphBuilder& builder, ValueId image) const {
  if (by_rows_) return convolved(builder, image);
  const DType dtype = builder.dtype(name_);
  const ValueId weight = constant(builder, "proj.weight", dtype);
  const ValueId bias = constant_if(config_.patch_bias, builder, "proj.bias", dtype);
  const ValueId x = patch_embed(
      builder.graph(), name_.empty() ? "patch_embed" : name_, image, weight, bias,
      {.patch_height = config_.patch_height, .patch_width = config_.patch_width, .out = DType::f32});
  return config_.patch_norm ? norm(builder, "norm", x, DType::f32) : x;
}

ValueId PatchEmbed::convolved(GraphBuilder& builder, ValueId image) const {
  const DType dtype = builder.dtype(name_);
  const uint64_t stride = config_.stem_stride();
  Windows windows{.height = config_.image_height / stride, .width = config_.image_width / stride};
  windows.kernel_height = config_.patch_height / stride;
  windows.kernel_width = config_.patch_width / stride;
  windows.stride_y = config_.stride_height() / stride;
  windows.stride_x = config_.stride_width() / stride;
  windows.rows = config_.grid_height();
  windows.columns = config_.grid_width();
  const ValueId map = stem_ ? (*stem_)(builder, image, dtype) : image;
  const ValueId x = convolution(
      builder.graph(), name_.empty() ? "patch_embed" : name_, map, constant(builder, "proj", dtype), windows,
      !stem_, {.bias = constant_if(config_.patch_bias, builder, "proj.bias", dtype), .out = DType::f32});
  return config_.patch_norm ? norm(builder, "norm", x, DType::f32) : x;
}

Attention::Attention(const ViTConfig& config, std::string name, uint64_t block)
    : ModuleBase(config, std::move(name)), block_(block) {
  const uint64_t keys = config.key_columns(), values = config.value_columns();
  if (config.per_head_maps) {
    const auto maps = [&](Module module, std::string_view at, uint64_t width) {
      declare(module, Leaf::weight, at, {config.heads, width, config.dim / config.heads});
      if (config.qkv_bias) declare(module, Leaf::bias, at, {config.heads, width});
    };
    maps(Module::q, "q", config.head_key_width());
    maps(Module::k, "k", config.head_key_width());
    maps(Module::v, "v", config.head_value_width());
  } else {
    declare_linear(Module::qkv, "qkv", 2 * keys + values, config.dim, config.qkv_bias);
    if (config.qkv_bias && !config.key_bias) {
      declare(Module::qkv_mask, Leaf::whole, "qkv.bias_mask", {2 * keys + values});
      parameters_.back().fixed = true;
    }
  }
  if (config.head_norm) {
    declare_norm(Module::q_norm, "q_norm", config.head_key_width());
    declare_norm(Module::k_norm, "k_norm", config.head_key_width());
  }
  if (config.rotary != Rotary::none) {
    declare(Module::rotary, Leaf::whole, shared_rotary, rotary_table_shape(config));
    parameters_.back().fixed = true;
    if (!config.rotary_learned) parameters_.back().name = shared_rotary;
  }
  if (config.relative_bias != RelativeBias::none) declare_bias();
  if (config.attention == AttentionKind::differential) {
    declare(Module::lambda, Leaf::whole, "lambda", {config.head_value_width()});
    parameters_.back().fixed = true;
    for (const auto& [module, at] :
         {std::pair(Module::lambda_q1, "lambda_q1"), std::pair(Module::lambda_k1, "lambda_k1"),
          std::pair(Module::lambda_q2, "lambda_q2"), std::pair(Module::lambda_k2, "lambda_k2")}) {
      declare(module, Leaf::whole, at, {config.head_key_width()});
      parameters_.back().aside = true;
    }
    declare(Module::sub_norm, Leaf::weight, "sub_norm", {config.head_value_width()});
  }
  if (config.attention == AttentionKind::talking_heads) {
    declare_linear(Module::talking_before, "proj_l", config.heads, config.heads);
    declare_linear(Module::talking_after, "proj_w", config.heads, config.heads);
  }
  if (config.attention_norm) declare_norm(Module::attention_norm, "norm", values);
  if (config.projection)
    declare_linear(Module::projection, "proj", config.dim, values, config.projection_bias);
}

void Attention::declare_bias() {
  if (config_.relative_bias == RelativeBias::decomposed) {
    const uint64_t width = config_.head_key_width(), window = config_.window;
    const uint64_t down = window ? window : config_.grid_height();
    const uint64_t across = window ? window : config_.grid_width();
    declare(Module::relative_height, Leaf::whole, "rel_pos_h", {2 * down - 1, width});
    declare(Module::relative_width, Leaf::whole, "rel_pos_w", {2 * across - 1, width});
    return;
  }
  const bool shared = config_.relative_bias == RelativeBias::shared;
  const uint64_t hidden = config_.relative_hidden, heads = config_.heads;
  const size_t first = parameters_.size();
  declare(shared ? Module::shared_relative_bias : Module::relative_bias, Leaf::whole, shared_bias,
          {relative_rows(config_), heads});
  parameters_.back().fixed = hidden > 0;
  if (hidden) {
    const Module fc1 = shared ? Module::shared_relative_fc1 : Module::relative_fc1;
    const Module fc2 = shared ? Module::shared_relative_fc2 : Module::relative_fc2;
    declare_linear(fc1, "rel_pos.fc1", hidden, 2);
    declare_linear(fc2, "rel_pos.fc2", heads, hidden, !config_.relative_swin);
  }
  for (size_t i = first; i < parameters_.size(); ++i) {
    Parameter& parameter = parameters_[i];
    parameter.aside = !parameter.fixed && hidden > 0;
    if (shared) parameter.name = parameter.name.substr(path(shared_bias).size() - shared_bias.size());
  }
}

// While it is learned, what stays 0 of it is made so on every way.
ValueId Attention::qkv_bias(GraphBuilder& builder, DType dtype) const {
  if (!config_.qkv_bias) return {};
  const ValueId bias = constant(builder, "qkv.bias", dtype);
  if (config_.key_bias || !builder.training()) return bias;
  return multiply(builder.graph(), path("qkv.bias.masked"), bias,
                  constant(builder, "qkv.bias_mask", DType::f32));
}

void Attention::map(GraphBuilder& builder, ValueId x, AttentionValues& out) const {
  Graph& graph = builder.graph();
  const DType dtype = builder.dtype(name_);
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
    const auto map_heads = [&](const std::string& at) {
      const ValueId weight = constant(builder, at + ".weight", dtype);
      return grouped_matmul(graph, path(at), x, weight,
                            constant_if(config_.qkv_bias, builder, at + ".bias", dtype));
    };
    out.q = map_heads("q");
    out.k = map_heads("k");
    out.v = map_heads("v");
  } else if (const auto pairs = builder.pairs_of(path("qkv"));
             !pairs.empty() && pairs.front().rows() != parameter("qkv.weight").shape[0]) {
    // Pairs of their own: three products, so that each is added where it belongs.
    const uint64_t keys = config_.key_columns();
    const auto map_rows = [&](const char* at, uint64_t first, uint64_t rows) {
      const ValueId bias = config_.qkv_bias ? builder.rows(parameter("qkv.bias"), first, rows) : ValueId{};
      ValueId out_of = matmul(graph, path(at), x, builder.rows(parameter("qkv.weight"), first, rows),
                              {.bias = bias, .rounded = builder.rounded()});
      for (const LowRankPair& pair : pairs) {
        if (pair.first_row == first) out_of = builder.low_rank(path(at), x, pair, {.residual = out_of});
      }
      return out_of;
    };
    out.q = map_rows("q", 0, keys);
    out.k = map_rows("k", keys, keys);
    out.v = map_rows("v", 2 * keys, config_.value_columns());
  } else {
    const ValueId weight = constant(builder, "qkv.weight", dtype);
    take_from_one(linear(builder, "qkv", path("qkv"), x, weight, {.bias = qkv_bias(builder, dtype)}));
  }
}

// Head by head, for which queries and keys become tensors of their own.
void Attention::norm_heads(GraphBuilder& builder, AttentionValues& out) const {
  Graph& graph = builder.graph();
  const uint64_t width = config_.head_key_width(), columns = config_.key_columns();
  const auto normed = [&](ValueId x, uint64_t offset, const std::string& at) {
    const Shape shape = graph.value(x).shape;
    const DType dtype = graph.value(x).dtype;
    if (shape[2] != columns) x = slice(graph, path(at + ".in"), x, 2, offset, offset + columns);
    x = reshape(graph, path(at + ".heads"), x, {shape[0], shape[1], config_.softmaxes(), width});
    x = norm(builder, at, x, dtype);
    return reshape(graph, path(at + ".columns"), x, {shape[0], shape[1], columns});
  };
  const ValueId q = normed(out.q, out.options.q_offset, "q_norm");
  out.k = normed(out.k, out.options.k_offset, "k_norm");
  out.q = q;
  out.options.q_offset = out.options.k_offset = 0;
}

void Attention::repeat_values(GraphBuilder& builder, AttentionValues& out) const {
  Graph& graph = builder.graph();
  const uint64_t columns = config_.value_columns(), width = config_.head_value_width();
  const Shape shape = graph.value(out.v).shape;
  ValueId v = out.v;
  if (shape[2] != columns)
    v = slice(graph, path("v"), v, 2, out.options.v_offset, out.options.v_offset + columns);
  v = reshape(graph, path("v.heads"), v, {shape[0], shape[1], config_.heads, width});
  v = concat(graph, path("v.twice"), {v, v}, -1);
  out.v = reshape(graph, path("v.columns"), v, {shape[0], shape[1], 2 * columns});
  out.options.v_offset = 0;
}

void Attention::subtract(GraphBuilder& builder, AttentionValues& out) const {
  Graph& graph = builder.graph();
  const Shape shape = graph.value(out.heads).shape;
  const uint64_t rows = shape[0] * shape[1], width = config_.head_value_width();
  const ValueId both = reshape(graph, path("pairs"), out.heads, {rows, config_.heads, 2, width});
  const ValueId first = slice(graph, path("first"), both, 2, 0, 1);
  const ValueId second = slice(graph, path("second"), both, 2, 1, 2);
  out.lambda = constant(builder, "lambda", DType::f32);
  const ValueId difference =
      add(graph, path("difference"), first, multiply(graph, path("share"), second, out.lambda));
  const Shape columns{shape[0], shape[1], config_.value_columns()};
  out.difference = reshape(graph, path("difference.columns"), difference, columns);
  // timm's own epsilon, whatever that of the model's other norms is.
  const ValueId normed =
      layer_norm(graph, path("sub_norm"), difference, constant(builder, "sub_norm.weight", DType::f32), {},
                 {.eps = 1e-5, .out = builder.dtype(name_), .rms = true});
  const ValueId scaled = scale(graph, path("sub_norm.scale"), normed, 1 - first_lambda(block_));
  out.heads = reshape(graph, path("heads"), scaled, columns);
}

// [N, B * heads * M] as the same, of which each head is a sum of all.
ValueId Attention::mix_heads(GraphBuilder& builder, const std::string& at, ValueId x,
                             uint64_t columns) const {
  Graph& graph = builder.graph();
  const Shape shape = graph.value(x).shape;
  const uint64_t heads = config_.heads, rows = shape.elements() / (heads * columns);
  x = transpose(graph, path(at + ".in"), reshape(graph, path(at + ".rows"), x, {rows, heads, columns}));
  x = matmul(graph, path(at), x, constant(builder, at + ".weight", DType::f32),
             {.bias = constant(builder, at + ".bias", DType::f32)});
  return transpose(graph, path(at + ".out"), x);
}

void Attention::talk(GraphBuilder& builder, AttentionValues& out) const {
  Graph& graph = builder.graph();
  const Shape shape = graph.value(out.q).shape;
  const uint64_t batch = shape[0], count = shape[1], heads = config_.heads;
  const uint64_t keys = config_.head_key_width(), values = config_.head_value_width();
  const auto part = [&](const char* at, ValueId x, uint64_t offset, uint64_t columns) {
    if (graph.value(x).shape[2] != columns) x = slice(graph, path(at), x, 2, offset, offset + columns);
    return convert(graph, path(std::string(at) + ".f32"), x, DType::f32);
  };
  ValueId q = part("q", out.q, out.options.q_offset, heads * keys);
  const ValueId k = part("k", out.k, out.options.k_offset, heads * keys);
  const ValueId v = part("v", out.v, out.options.v_offset, heads * values);
  // What a product of a matrix for each group takes: groups are the heads of all images, rows the tokens.
  const auto tokens_first = [&](const std::string& at, ValueId x, uint64_t columns) {
    if (batch > 1) {
      x = transpose(graph, path(at + ".images"),
                    reshape(graph, path(at + ".flat"), x, {batch, count * columns}));
      x = transpose(graph, path(at + ".tokens"),
                    reshape(graph, path(at + ".last"), x, {count, columns, batch}));
    }
    return reshape(graph, path(at + ".groups"), x, {count, batch * columns});
  };
  q = tokens_first("q", scale(graph, path("q.scale"), q, config_.attention_scale()), heads * keys);
  const ValueId columns =
      reshape(graph, path("k.groups"), transpose(graph, path("k.columns"), k), {batch * heads, keys, count});
  const ValueId scores = grouped_matmul(graph, path("scores"), q, transpose(graph, path("k.rows"), columns));
  ValueId weights = softmax(graph, path("weights"), mix_heads(builder, "proj_l", scores, count));
  weights = mix_heads(builder, "proj_w", weights, count);
  weights = builder.dropout(path("weights.dropout"), weights, config_.attention_dropout);
  weights = reshape(graph, path("weights.groups"), weights, {count, batch * heads * count});
  const ValueId summed = reshape(graph, path("v.groups"), transpose(graph, path("v.columns"), v),
                                 {batch * heads, values, count});
  ValueId x = grouped_matmul(graph, path("sums"), weights, summed);
  const uint64_t width = heads * values;
  if (batch > 1) {
    x = transpose(graph, path("sums.images"), reshape(graph, path("sums.tokens"), x, {count, batch, width}));
    x = transpose(graph, path("sums.batch"), reshape(graph, path("sums.flat"), x, {count * width, batch}));
  }
  x = reshape(graph, path("heads"), x, {batch, count, width});
  out.heads = convert(graph, path("heads.convert"), x, builder.dtype(name_));
}

void Attention::turn(GraphBuilder& builder, AttentionValues& out) const {
  Graph& graph = builder.graph();
  const std::string at = config_.rotary_learned ? path(shared_rotary) : std::string(shared_rotary);
  const auto table = std::ranges::find(parameters_, at, &Parameter::name);
  const ValueId angles = builder.constant(*table, DType::f32);
  RotaryOptions options{
      .width = config_.head_key_width(),
      .pairs = config_.rotary == Rotary::halves ? RotaryPairs::halves : RotaryPairs::neighbours};
  const auto turned = [&](const char* node, ValueId x, uint64_t heads, uint64_t with_others) {
    options.turned = heads;
    options.heads = with_others;
    return rotary(graph, path(node), x, angles, options);
  };
  if (out.q != out.k) {
    out.q = turned("q_rotary", out.q, config_.heads, config_.heads);
    out.k = turned("k_rotary", out.k, config_.heads, config_.heads);
    return;
  }
  // Values come along: then the product that makes all three has one reader, which can take it over, and for
  // the derivative one tensor of gradients belongs to them.
  const uint64_t both = 2 * config_.heads, values = config_.value_columns() / options.width;
  const bool along = out.v == out.q && config_.value_columns() % options.width == 0;
  out.q = out.k = turned("rotary", out.q, both, along ? both + values : both);
  if (along) out.v = out.q;
}

void Attention::add_bias(GraphBuilder& builder, AttentionValues& out) const {
  AttentionOptions& options = out.options;
  options.bias_height = config_.window ? config_.window : config_.grid_height();
  options.bias_width = config_.window ? config_.window : config_.grid_width();
  options.bias_first = config_.prefix_tokens();
  if (config_.relative_bias == RelativeBias::decomposed) {
    options.bias_rows =
        grid_bias(builder.graph(), path("rel_pos"), out.q, constant(builder, "rel_pos_h", DType::f32),
                  constant(builder, "rel_pos_w", DType::f32),
                  {.heads = config_.heads,
                   .key_width = config_.head_key_width(),
                   .q_offset = options.q_offset,
                   .height = options.bias_height,
                   .width = options.bias_width});
    return;
  }
  const bool shared = config_.relative_bias == RelativeBias::shared;
  const std::string at = shared ? std::string(shared_bias) : path(shared_bias);
  options.bias = builder.constant(*std::ranges::find(parameters_, at, &Parameter::name), DType::f32);
}

AttentionValues Attention::values(GraphBuilder& builder, ValueId x, const AttentionKeeps& keeps,
                                  const Epilogue& epilogue) const {
  Graph& graph = builder.graph();
  const DType dtype = builder.dtype(name_);
  x = convert(graph, path("in.convert"), x, dtype);
  const TokenGrid grid{config_.grid_height(), config_.grid_width(), config_.window};
  if (config_.window) x = partition_windows(graph, path("windows"), x, grid);
  AttentionValues out{.options = {.heads = config_.softmaxes(),
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
  map(builder, x, out);
  if (config_.head_norm) norm_heads(builder, out);
  if (config_.rotary != Rotary::none) turn(builder, out);
  if (config_.relative_bias != RelativeBias::none) add_bias(builder, out);
  const bool differential = config_.attention == AttentionKind::differential;
  if (differential) repeat_values(builder, out);
  const std::string node = name_.empty() ? "attention" : name_;
  if (config_.attention == AttentionKind::talking_heads) {
    talk(builder, out);
  } else if (keeps.scores) {
    const PlainAttentionResult plain = plain_attention(graph, node, out.q, out.k, out.v, out.options);
    out.heads = plain.out;
    out.scores = plain.scores;
    out.weights = plain.weights;
  } else {
    const AttentionResult fused = vitrine::attention(graph, node, out.q, out.k, out.v, out.options);
    out.heads = fused.out;
    out.lse = fused.lse;
  }
  if (differential) subtract(builder, out);
  if (config_.window) out.heads = merge_windows(graph, path("merge"), out.heads, grid);
  out.projected = config_.attention_norm ? norm(builder, "norm", out.heads, dtype) : out.heads;
  if (config_.projection) {
    out.out = project(builder, path("proj"), out.projected, epilogue);
  } else {
    out.out = end_branch(builder, node, out.projected, epilogue);
  }
  return out;
}

ValueId Attention::project(GraphBuilder& builder, std::string node, ValueId heads,
                           const Epilogue& epilogue) const {
  return last_linear(builder, "proj", std::move(node), heads, epilogue);
}

Mlp::Mlp(const ViTConfig& config, std::string name) : ModuleBase(config, std::move(name)) {
  const uint64_t branches = config.mlp == MlpKind::swiglu ? 2 : 1;
  declare_linear(Module::fc1, "fc1", branches * config.mlp_width(), config.dim, config.mlp_bias);
  if (config.mlp_norm) declare_norm(Module::mlp_norm, "norm", config.mlp_width());
  declare_linear(Module::fc2, "fc2", config.dim, config.mlp_width(), config.mlp_bias);
}

MlpValues Mlp::values(GraphBuilder& builder, ValueId x, const Epilogue& epilogue) const {
  Graph& graph = builder.graph();
  const DType dtype = builder.dtype(name_);
  const bool gated = config_.mlp == MlpKind::swiglu;
  x = convert(graph, path("in.convert"), x, dtype);
  const ValueId fc1 = constant(builder, "fc1.weight", dtype);
  MlpValues out;
  out.hidden = linear(builder, "fc1", path("fc1"), x, fc1,
                      {.bias = constant_if(config_.mlp_bias, builder, "fc1.bias", dtype),
                       .activation = gated ? Activation::none : config_.activation});
  if (gated) out.hidden = gated_product(graph, path("gate"), out.hidden, config_.activation);
  out.hidden = builder.dropout(path("hidden.dropout"), out.hidden, config_.dropout);
  const ValueId normed = config_.mlp_norm ? norm(builder, "norm", out.hidden, dtype) : out.hidden;
  out.out = last_linear(builder, "fc2", path("fc2"), normed, epilogue);
  return out;
}

}  // namespace vitrine

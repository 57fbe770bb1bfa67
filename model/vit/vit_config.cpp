#include "model/vit/vit_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "model/vit/parameters.h"
#include "model/vit/stem.h"
#include "runtime/util/nearest.h"
#include "runtime/util/split.h"

namespace vitrine {
namespace {

template <typename Enum>
struct EnumName {
  Enum value;
  std::string_view name;
};
constexpr std::array<EnumName<MlpKind>, 2> mlp_names{
    {{MlpKind::plain, "plain"}, {MlpKind::swiglu, "swiglu"}}};
constexpr std::array<EnumName<BlockKind>, 2> block_names{
    {{BlockKind::sequential, "sequential"}, {BlockKind::parallel, "parallel"}}};
constexpr std::array<EnumName<AttentionKind>, 3> attention_names{
    {{AttentionKind::plain, "plain"},
     {AttentionKind::differential, "differential"},
     {AttentionKind::talking_heads, "talking_heads"}}};
constexpr std::array<EnumName<Positions>, 4> position_names{{{Positions::none, "none"},
                                                             {Positions::learned, "learned"},
                                                             {Positions::sincos, "sincos"},
                                                             {Positions::sincos_grid, "sincos_grid"}}};
constexpr std::array<EnumName<Stem>, 4> stem_names{{{Stem::none, "none"},
                                                    {Stem::convolutions, "convolutions"},
                                                    {Stem::resnet, "resnet"},
                                                    {Stem::bit, "bit"}}};
constexpr std::array<EnumName<NormKind>, 2> norm_names{{{NormKind::layer, "layer"}, {NormKind::rms, "rms"}}};
constexpr std::array<EnumName<Rotary>, 3> rotary_names{
    {{Rotary::none, "none"}, {Rotary::neighbours, "neighbours"}, {Rotary::halves, "halves"}}};
constexpr std::array<EnumName<RelativeBias>, 4> relative_names{{{RelativeBias::none, "none"},
                                                                {RelativeBias::own, "own"},
                                                                {RelativeBias::shared, "shared"},
                                                                {RelativeBias::decomposed, "decomposed"}}};
constexpr std::array<EnumName<PositionSpan>, 3> span_names{
    {{PositionSpan::patches, "patches"},
     {PositionSpan::class_and_patches, "class_and_patches"},
     {PositionSpan::all, "all"}}};
constexpr std::array<EnumName<PositionResize>, 7> resize_names{
    {{PositionResize::bicubic, "bicubic"},
     {PositionResize::bicubic_antialias, "bicubic_antialias"},
     {PositionResize::bicubic_corners, "bicubic_corners"},
     {PositionResize::bilinear, "bilinear"},
     {PositionResize::bilinear_antialias, "bilinear_antialias"},
     {PositionResize::bilinear_corners, "bilinear_corners"},
     {PositionResize::nearest, "nearest"}}};
constexpr std::array<EnumName<Pool>, 6> pool_names{{{Pool::token, "token"},
                                                    {Pool::mean, "mean"},
                                                    {Pool::token_and_mean, "token_and_mean"},
                                                    {Pool::attention, "attention"},
                                                    {Pool::first, "first"},
                                                    {Pool::prefix, "prefix"}}};
constexpr std::array<EnumName<InitRule>, 2> init_names{{{InitRule::vit, "vit"}, {InitRule::torch, "torch"}}};
constexpr std::array<EnumName<Activation>, 7> activation_names{{{Activation::none, "none"},
                                                                {Activation::gelu, "gelu"},
                                                                {Activation::gelu_tanh, "gelu_tanh"},
                                                                {Activation::gelu_quick, "gelu_quick"},
                                                                {Activation::silu, "silu"},
                                                                {Activation::tanh, "tanh"},
                                                                {Activation::relu, "relu"}}};

const auto& names_of(MlpKind) { return mlp_names; }
const auto& names_of(BlockKind) { return block_names; }
const auto& names_of(AttentionKind) { return attention_names; }
const auto& names_of(Positions) { return position_names; }
const auto& names_of(Stem) { return stem_names; }
const auto& names_of(NormKind) { return norm_names; }
const auto& names_of(Rotary) { return rotary_names; }
const auto& names_of(RelativeBias) { return relative_names; }
const auto& names_of(PositionSpan) { return span_names; }
const auto& names_of(PositionResize) { return resize_names; }
const auto& names_of(Pool) { return pool_names; }
const auto& names_of(InitRule) { return init_names; }
const auto& names_of(Activation) { return activation_names; }

template <typename Enum>
std::string_view enum_text(Enum value) {
  for (const auto& [known, name] : names_of(value)) {
    if (known == value) return name;
  }
  return "?";
}

// The one list of the fields; reading, writing and comparing them all go through it.
template <typename Config, typename Visit>
void for_each_field(Config& c, Visit&& visit) {
  visit("image_height", c.image_height);
  visit("image_width", c.image_width);
  visit("patch_height", c.patch_height);
  visit("patch_width", c.patch_width);
  visit("patch_stride_height", c.patch_stride_height);
  visit("patch_stride_width", c.patch_stride_width);
  visit("channels", c.channels);
  visit("patch_bias", c.patch_bias);
  visit("patch_norm", c.patch_norm);
  visit("stem", c.stem);
  visit("stem_width", c.stem_width);
  visit("stem_blocks", c.stem_blocks);
  visit("class_token", c.class_token);
  visit("distillation_token", c.distillation_token);
  visit("registers", c.registers);
  visit("detection_tokens", c.detection_tokens);
  visit("positions", c.positions);
  visit("position_span", c.position_span);
  visit("position_resize", c.position_resize);
  visit("position_offset", c.position_offset);
  visit("position_square", c.position_square);
  visit("block_positions", c.block_positions);
  visit("pre_norm", c.pre_norm);
  visit("rotary", c.rotary);
  visit("rotary_base", c.rotary_base);
  visit("rotary_offset", c.rotary_offset);
  visit("rotary_reference", c.rotary_reference);
  visit("rotary_centered", c.rotary_centered);
  visit("rotary_columns_first", c.rotary_columns_first);
  visit("rotary_rounded", c.rotary_rounded);
  visit("rotary_learned", c.rotary_learned);
  visit("rotary_alternating", c.rotary_alternating);
  visit("rotary_class", c.rotary_class);
  visit("relative_bias", c.relative_bias);
  visit("relative_hidden", c.relative_hidden);
  visit("relative_swin", c.relative_swin);
  visit("window", c.window);
  visit("global_blocks", c.global_blocks);
  visit("dim", c.dim);
  visit("depth", c.depth);
  visit("block", c.block);
  visit("class_blocks", c.class_blocks);
  visit("branches", c.branches);
  visit("attention", c.attention);
  visit("heads", c.heads);
  visit("key_width", c.key_width);
  visit("value_width", c.value_width);
  visit("qkv_bias", c.qkv_bias);
  visit("key_bias", c.key_bias);
  visit("head_norm", c.head_norm);
  visit("qk_scale", c.qk_scale);
  visit("per_head_maps", c.per_head_maps);
  visit("attention_norm", c.attention_norm);
  visit("projection", c.projection);
  visit("projection_bias", c.projection_bias);
  visit("mlp", c.mlp);
  visit("mlp_hidden", c.mlp_hidden);
  visit("mlp_bias", c.mlp_bias);
  visit("mlp_norm", c.mlp_norm);
  visit("activation", c.activation);
  visit("layer_scale", c.layer_scale);
  visit("mlp_scale", c.mlp_scale);
  visit("layer_scale_init", c.layer_scale_init);
  visit("post_norm", c.post_norm);
  visit("norm", c.norm);
  visit("eps", c.eps);
  visit("final_eps", c.final_eps);
  visit("final_norm", c.final_norm);
  visit("neck", c.neck);
  visit("pool", c.pool);
  visit("pool_prefix", c.pool_prefix);
  visit("pool_heads", c.pool_heads);
  visit("pool_hidden", c.pool_hidden);
  visit("pool_query", c.pool_query);
  visit("pool_bias", c.pool_bias);
  visit("pool_mlp", c.pool_mlp);
  visit("fc_norm", c.fc_norm);
  visit("representation_size", c.representation_size);
  visit("embedding_size", c.embedding_size);
  visit("classes", c.classes);
  visit("distilled_head", c.distilled_head);
  visit("softmax_output", c.softmax_output);
  visit("dropout", c.dropout);
  visit("attention_dropout", c.attention_dropout);
  visit("stochastic_depth", c.stochastic_depth);
  visit("init", c.init);
}

template <typename Number>
bool parse_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Each returns what was expected when the text is no such value.
std::optional<std::string> parse(std::string_view text, uint64_t& value) {
  if (parse_number(text, value)) return std::nullopt;
  return "a whole number";
}
std::optional<std::string> parse(std::string_view text, double& value) {
  if (parse_number(text, value) && std::isfinite(value)) return std::nullopt;
  return "a number";
}
std::optional<std::string> parse(std::string_view text, bool& value) {
  if (text == "true" || text == "1" || text == "yes") {
    value = true;
  } else if (text == "false" || text == "0" || text == "no") {
    value = false;
  } else {
    return "true or false";
  }
  return std::nullopt;
}
// "3,4,9", of fewer the first.
std::optional<std::string> parse(std::string_view text, std::array<uint64_t, 4>& value) {
  std::array<uint64_t, 4> read{};
  const std::vector<std::string_view> parts = split(text, ',');
  bool all = parts.size() <= read.size();
  for (size_t i = 0; all && i < parts.size(); ++i) all = parse_number(parts[i], read[i]);
  if (!all) return "up to four whole numbers with commas between them";
  value = read;
  return std::nullopt;
}
// "2,5,8", or nothing.
std::optional<std::string> parse(std::string_view text, std::vector<uint64_t>& value) {
  std::vector<uint64_t> numbers;
  for (const std::string_view part : text.empty() ? std::vector<std::string_view>() : split(text, ',')) {
    if (!parse_number(part, numbers.emplace_back())) return "whole numbers with commas between them";
  }
  value = std::move(numbers);
  return std::nullopt;
}
template <typename Enum>
  requires std::is_enum_v<Enum>
std::optional<std::string> parse(std::string_view text, Enum& value) {
  std::string expected;
  for (const auto& [known, name] : names_of(value)) {
    if (name == text) {
      value = known;
      return std::nullopt;
    }
    expected += (expected.empty() ? "" : ", ") + std::string(name);
  }
  return "one of " + expected;
}

std::string text_of(uint64_t value) { return std::to_string(value); }
std::string text_of(const std::vector<uint64_t>& value) {
  std::string text;
  for (const uint64_t number : value) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(double value) {
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return std::string(buffer.data(), end);
}
std::string text_of(const std::array<uint64_t, 4>& values) {
  std::string text = std::to_string(values[0]);
  for (size_t i = 1; i < values.size() && values[i] != 0; ++i) text += "," + std::to_string(values[i]);
  return text;
}
template <typename Enum>
  requires std::is_enum_v<Enum>
std::string text_of(Enum value) {
  return std::string(enum_text(value));
}

}  // namespace

std::string_view name_of(MlpKind kind) { return enum_text(kind); }
std::string_view name_of(BlockKind kind) { return enum_text(kind); }
std::string_view name_of(AttentionKind kind) { return enum_text(kind); }
std::string_view name_of(Positions positions) { return enum_text(positions); }
std::string_view name_of(Stem stem) { return enum_text(stem); }
std::string_view name_of(NormKind kind) { return enum_text(kind); }
std::string_view name_of(Rotary rotary) { return enum_text(rotary); }
std::string_view name_of(RelativeBias bias) { return enum_text(bias); }
std::string_view name_of(PositionSpan span) { return enum_text(span); }
std::string_view name_of(PositionResize resize) { return enum_text(resize); }
std::string_view name_of(Pool pool) { return enum_text(pool); }
std::string_view name_of(InitRule rule) { return enum_text(rule); }

uint64_t ViTConfig::stem_stages() const {
  uint64_t stages = 0;
  while (stages < stem_blocks.size() && stem_blocks[stages] != 0) ++stages;
  return stages;
}

uint64_t ViTConfig::stem_stride() const {
  if (stem == Stem::none) return 1;
  if (stem == Stem::convolutions) return 8;
  return uint64_t{4} << (stem_stages() > 1 ? stem_stages() - 1 : 0);
}

uint64_t ViTConfig::stem_channels() const {
  if (stem == Stem::none) return channels;
  if (stem == Stem::convolutions || stem_stages() == 0) return stem_width;
  return (4 * stem_width) << (stem_stages() - 1);
}

bool ViTConfig::sees_all(uint64_t index) const {
  return window == 0 || std::ranges::find(global_blocks, index) != global_blocks.end();
}

uint64_t ViTConfig::position_rows() const {
  switch (position_span) {
    case PositionSpan::patches:
      return patches();
    case PositionSpan::class_and_patches:
      return class_token + distillation_token + patches();
    case PositionSpan::all:
      return tokens();
  }
  return 0;
}

double ViTConfig::attention_scale() const {
  return qk_scale != 0 ? qk_scale : 1.0 / std::sqrt(static_cast<double>(head_key_width()));
}

uint64_t ViTConfig::mlp_width() const {
  if (mlp_hidden) return mlp_hidden;
  if (mlp == MlpKind::plain) return 4 * dim;
  return (8 * dim / 3 + 7) / 8 * 8;
}

ViTConfig ViTConfig::resolved() const {
  ViTConfig config = *this;
  config.key_width = head_key_width();
  config.value_width = head_value_width();
  config.qk_scale = attention_scale();
  config.mlp_hidden = mlp_width();
  return config;
}

void set_field(ViTConfig& config, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw Error(ErrorCode::usage, "--set: found '" + std::string(assignment) + "', expected KEY=VALUE");
  }
  set_field(config, assignment.substr(0, equals), assignment.substr(equals + 1), "--set", ErrorCode::usage);
}

void set_field(ViTConfig& config, std::string_view key, std::string_view value, const std::string& origin,
               ErrorCode code) {
  bool found = false;
  const auto read = [&](auto& field) {
    found = true;
    if (const auto expected = parse(value, field)) {
      throw Error(
          code, origin + ": " + std::string(key) + " is '" + std::string(value) + "', expected " + *expected);
    }
  };
  if (key == "image_size") {
    read(config.image_height);
    config.image_width = config.image_height;
  } else if (key == "patch_size") {
    read(config.patch_height);
    config.patch_width = config.patch_height;
  }
  std::vector<std::string_view> all;
  for_each_field(config, [&](std::string_view name, auto& field) {
    all.push_back(name);
    if (name == key) read(field);
  });
  if (!found) {
    const std::string_view cut = key.substr(0, 80);
    throw Error(code, origin + ": found a field '" + std::string(cut) + "', expected one such as " +
                          nearest(all, cut) + " (vitrine inspect lists them)");
  }
}

std::vector<std::pair<std::string, std::string>> fields_of(const ViTConfig& config) {
  std::vector<std::pair<std::string, std::string>> fields;
  for_each_field(
      config, [&](std::string_view name, const auto& field) { fields.emplace_back(name, text_of(field)); });
  return fields;
}

std::string to_string(const ViTConfig& config) {
  const auto standard = fields_of(ViTConfig{}), fields = fields_of(config);
  std::string text;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i] == standard[i]) continue;
    text += (text.empty() ? "" : " ") + fields[i].first + "=" + fields[i].second;
  }
  return text;
}

uint64_t parameter_count(const ViTConfig& config) {
  uint64_t count = 0;
  for (const Parameter& parameter : parameters_of(config)) {
    if (parameter.learned()) count += parameter.shape.elements();
  }
  return count;
}

double flops(const ViTConfig& c, uint64_t batch) {
  const double n = static_cast<double>(c.tokens_in_blocks()), d = static_cast<double>(c.dim);
  const double keys = static_cast<double>(c.key_columns()), values = static_cast<double>(c.value_columns());
  // The values are summed by each softmax.
  const double summed = values * static_cast<double>(c.softmaxes() / c.heads);
  const double hidden = static_cast<double>(c.mlp_width());
  const uint64_t stride = c.stem_stride();
  const double patch =
      static_cast<double>(c.stem_channels() * (c.patch_height / stride) * (c.patch_width / stride));
  const double map_inputs = c.per_head_maps ? d / static_cast<double>(c.heads) : d;
  double block = 0;
  if (c.projection) block += n * values * d;                         // W_o
  block += n * d * hidden * (c.mlp == MlpKind::swiglu ? 3.0 : 2.0);  // both layers of the MLP
  const double branches = static_cast<double>(c.branches);
  double total =
      static_cast<double>(c.patches()) * patch * d + static_cast<double>(c.depth) * branches * block;
  total += stem_multiply_adds(c);
  for (uint64_t i = 0; i < c.depth; ++i) {
    const double side = static_cast<double>(c.window);
    const bool all = c.sees_all(i);
    const double seen = all ? n : side * side;
    const double rows = all ? n
                            : seen * std::ceil(static_cast<double>(c.grid_height()) / side) *
                                  std::ceil(static_cast<double>(c.grid_width()) / side);
    total += branches * rows * map_inputs * (2 * keys + values);  // q, k and v
    total += branches * rows * seen * (keys + summed);            // scores and weighted sum
  }
  if (c.attention == AttentionKind::talking_heads) {
    const double heads = static_cast<double>(c.heads);
    total += static_cast<double>(c.depth) * branches * 2 * n * n * heads * heads;
  }
  // The class token's query, everybody's keys and values, what it gathers, W_o and the MLP.
  const double seen_by_it = static_cast<double>(c.tokens());
  total += static_cast<double>(c.class_blocks) * (2 * seen_by_it * d * (d + 1) + 2 * d * d + 2 * d * hidden);
  const double neck = static_cast<double>(c.neck);
  total += n * neck * (d + 9 * neck);
  total += static_cast<double>(c.pooled_width() * (c.representation_size + c.embedding_size));
  double shared = 0;  // by all images of the batch
  if (c.pool == Pool::attention) {
    const double p = static_cast<double>(c.pooled_tokens());
    if (c.pool_query) shared = d * d;
    total += p * d * 2 * d + 2 * p * d + d * d;  // k and v, attention, W_o
    if (c.pool_mlp) total += 2 * d * static_cast<double>(c.pooling_hidden());
  }
  total += static_cast<double>(c.feature_width() * c.classes * (c.distilled_head ? 2 : 1));
  return 2 * (total * static_cast<double>(batch) + shared);
}

}  // namespace vitrine

#include "model/look/attention_maps.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "runtime/ops/attention/attention_rows.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/explain/attention_rollout.h"
#include "runtime/ops/moves/concat.h"
#include "runtime/ops/moves/reshape.h"
#include "runtime/ops/moves/slice.h"

namespace vitrine {
namespace {

constexpr std::string_view rollout_name = "rollout";

std::string output_name(std::optional<uint64_t> layer) {
  return layer ? "attention." + std::to_string(*layer) : std::string(rollout_name);
}

void require_below(std::string_view what, uint64_t found, uint64_t limit) {
  if (found < limit) return;
  throw Error(ErrorCode::usage, std::string(what) + " is " + std::to_string(found) + ", expected 0 to " +
                                    std::to_string(limit - 1));
}

// ", expected layer 2, 5, 8 or 11", or nothing where each block has windows.
std::string those_that_see_all(const ViTConfig& config) {
  std::string text;
  for (uint64_t layer = 0; layer < config.depth; ++layer) {
    if (config.sees_all(layer))
      text += (text.empty() ? ", expected one of layer " : ", ") + std::to_string(layer);
  }
  return text;
}

// Of two maps a head, one less a share of the other: [B, 2 heads, rows, N] as [B, heads, rows, N].
ValueId difference_of(Graph& graph, const std::string& name, ValueId all, ValueId lambda) {
  const Shape shape = graph.value(all).shape;
  const uint64_t heads = shape[1] / 2, weights = shape[2] * shape[3];
  const ValueId pairs = reshape(graph, name + ".pairs", all, {shape[0] * heads, 2, weights, 1});
  const ValueId second = slice(graph, name + ".second", pairs, 1, 1, 2);
  const ValueId share =
      multiply(graph, name + ".share", second, slice(graph, name + ".lambda", lambda, 0, 0, 1));
  const ValueId first = slice(graph, name + ".first", pairs, 1, 0, 1);
  return reshape(graph, name + ".difference", add(graph, name + ".less", first, share),
                 {shape[0], heads, shape[2], shape[3]});
}

ValueId rows_of(Graph& graph, const std::string& name, const AttentionValues& attention, const MapRows& rows,
                bool mean_heads) {
  const ValueId all = attention_rows(
      graph, name, attention.q, attention.k, attention.lse, attention.options,
      {.first_row = rows.first, .rows = rows.count, .mean_heads = mean_heads, .mean_rows = rows.mean});
  return attention.lambda ? difference_of(graph, name, all, attention.lambda) : all;
}

// Of all attentions of a block: their heads one behind the other, or the mean of all.
ValueId rows_of(Graph& graph, const std::string& name, const BlockValues& block, const MapRows& rows,
                bool mean_heads) {
  std::vector<ValueId> parts{rows_of(graph, name, block.attention, rows, mean_heads)};
  for (const BlockValues& other : block.beside) {
    const std::string part = name + "." + std::to_string(parts.size());
    parts.push_back(rows_of(graph, part, other.attention, rows, mean_heads));
  }
  if (parts.size() == 1) return parts.front();
  if (!mean_heads) return concat(graph, name + ".all", parts, 1);
  ValueId sum = parts.front();
  for (size_t i = 1; i < parts.size(); ++i)
    sum = add(graph, name + ".sum." + std::to_string(i), sum, parts[i]);
  return scale(graph, name + ".mean", sum, 1.0 / static_cast<double>(parts.size()));
}

}  // namespace

bool has_attention_pool(const ViTConfig& config) { return config.pool == Pool::attention; }

MapRows pooled_rows(const ViTConfig& config) {
  if (config.pool == Pool::prefix) return {.first = 0, .count = config.prefix_tokens(), .mean = true};
  const bool several = config.pool == Pool::mean || config.pool == Pool::attention;
  if (!several) return {};
  return {.first = config.first_pooled(), .count = config.pooled_tokens(), .mean = true};
}

std::string pooled_name(const ViTConfig& config) {
  if (config.pool == Pool::prefix) return "mean of the tokens in front of the patches";
  return config.pool_prefix ? "mean of all tokens" : "mean of the patches";
}

uint64_t heads_of_maps(const ViTConfig& config, std::optional<uint64_t> layer) {
  return layer == config.depth ? config.pooling_heads() : config.heads * config.branches;
}

uint64_t keys_of_maps(const ViTConfig& config, std::optional<uint64_t> layer) {
  return layer == config.depth ? config.pooled_tokens() : config.tokens();
}

MapRows all_rows(const ViTConfig& config) { return {.first = 0, .count = config.tokens()}; }

MapRegion map_region(const ViTConfig& config, const PictureGeometry& geometry, uint64_t picture_height,
                     uint64_t picture_width) {
  // Pixels of the picture to one of the resized picture.
  const double across = static_cast<double>(picture_width) / geometry.resized_width;
  const double down = static_cast<double>(picture_height) / geometry.resized_height;
  return {.left = static_cast<double>(geometry.left) * across,
          .top = static_cast<double>(geometry.top) * down,
          .width = static_cast<double>(config.seen_width()) * across,
          .height = static_cast<double>(config.seen_height()) * down};
}

AttentionMaps::AttentionMaps(const ViTConfig& config, AttentionMapOptions options)
    : config_(config), options_(std::move(options)), rows_(options_.rows.value_or(pooled_rows(config))) {
  if (options_.rollout && config.attention == AttentionKind::differential) {
    throw Error(ErrorCode::usage,
                "there is no rollout of differential attention, whose weights are differences that may be "
                "negative, expected a layer");
  }
  if (config.attention == AttentionKind::talking_heads || config.class_blocks > 0) {
    throw Error(
        ErrorCode::usage,
        "maps of attention with talking heads, and of blocks for the class token alone, are not there "
        "yet");
  }
  for (const uint64_t layer : options_.layers)
    require_below("the layer", layer, config.depth + has_attention_pool(config));
  for (uint64_t layer = 0; layer < config.depth; ++layer) {
    const bool asked = options_.rollout || std::ranges::find(options_.layers, layer) != options_.layers.end();
    if (!asked || config.sees_all(layer)) continue;
    throw Error(ErrorCode::usage,
                (options_.rollout ? "rollout goes through layer " : "the layer is ") + std::to_string(layer) +
                    ", whose patches see windows of " + std::to_string(config.window) +
                    " patches a side alone, of which there are no maps yet" + those_that_see_all(config));
  }
  require_below("the token", rows_.first, config.tokens());
  if (rows_.count == 0 || rows_.count > config.tokens() - rows_.first) {
    throw Error(ErrorCode::usage, std::to_string(rows_.count) + " tokens from " +
                                      std::to_string(rows_.first) + " on were asked for, the model has " +
                                      std::to_string(config.tokens()));
  }
}

BlockTaps AttentionMaps::taps() const {
  BlockTaps taps;
  // The mean maps of the layers so far: rollout starts at the last one.
  const auto mean_maps = std::make_shared<std::vector<ValueId>>();
  for (uint64_t layer = 0; layer < config_.depth; ++layer) {
    const bool wanted = std::ranges::find(options_.layers, layer) != options_.layers.end();
    if (!wanted && !options_.rollout) continue;
    BlockTap& tap = taps[layer];
    tap.keeps.lse = true;
    tap.look = [=, rows = rows_, depth = config_.depth, tokens = config_.tokens(),
                rollout = options_.rollout](GraphBuilder& builder, const BlockValues& block) {
      Graph& graph = builder.graph();
      const std::string name = "blocks." + std::to_string(layer) + ".attn.";
      if (wanted) graph.output(rows_of(graph, name + "rows", block, rows, false), output_name(layer));
      if (!rollout) return;
      if (layer == 0) mean_maps->clear();  // the taps may serve several graphs
      mean_maps->push_back(rows_of(graph, name + "mean", block, {.count = tokens}, true));
      if (layer + 1 < depth) return;
      ValueId joint =
          attention_rollout(graph, name + "rollout", mean_maps->back(),
                            RolloutRows{.first_row = rows.first, .rows = rows.count, .mean_rows = rows.mean});
      for (uint64_t above = depth - 1; above-- > 0;) {
        joint = attention_rollout(graph, "blocks." + std::to_string(above) + ".attn.rollout",
                                  (*mean_maps)[above], joint);
      }
      graph.output(joint, std::string(rollout_name));
    };
  }
  if (std::ranges::find(options_.layers, config_.depth) != options_.layers.end()) {
    BlockTap& tap = taps[config_.depth];
    tap.keeps.lse = true;
    tap.look = [name = output_name(config_.depth)](GraphBuilder& builder, const BlockValues& pool) {
      Graph& graph = builder.graph();
      graph.output(rows_of(graph, "attn_pool.rows", pool.attention, {}, false), name);
    };
  }
  return taps;
}

std::vector<float> AttentionMaps::weights(const Executable& executable, std::optional<uint64_t> layer,
                                          uint64_t image, uint32_t set) const {
  if (layer ? std::ranges::find(options_.layers, *layer) == options_.layers.end() : !options_.rollout) {
    throw Error(ErrorCode::usage, "the " + (layer ? "map of layer " + std::to_string(*layer) : "rollout") +
                                      " was not asked for when the graph was made");
  }
  const auto bytes = executable.output(executable.output_index(output_name(layer)), set);
  const uint64_t count = layer == config_.depth ? heads_of_maps(config_, layer) * keys_of_maps(config_, layer)
                                                : (layer ? heads_of_maps(config_, layer) : 1) *
                                                      rows_.stored() * config_.tokens();
  require_below("the image", image, bytes.size() / (count * sizeof(float)));
  std::vector<float> values(count);
  std::memcpy(values.data(), bytes.data() + image * count * sizeof(float), count * sizeof(float));
  return values;
}

std::vector<float> AttentionMaps::row(const Executable& executable, const MapChoice& choice, uint64_t image,
                                      uint32_t set) const {
  const uint64_t tokens = config_.tokens();
  if (choice.head) require_below("the head", *choice.head, heads_of_maps(config_, choice.layer));
  if (choice.token) require_below("the token", *choice.token, tokens);
  const bool pool = choice.layer == config_.depth;
  if (pool && choice.token) {
    throw Error(ErrorCode::usage, "token " + std::to_string(*choice.token) +
                                      " was asked for in attention pooling, where only the query looks");
  }
  // Stored rows that the one asked for is the mean of.
  const MapRows wanted = choice.token ? MapRows{.first = *choice.token} : pooled_rows(config_);
  uint64_t first = 0, rows = 1;
  if (!pool && wanted != rows_) {
    if (rows_.mean || wanted.first < rows_.first || wanted.first + wanted.count > rows_.first + rows_.count) {
      throw Error(ErrorCode::usage, "the rows of " +
                                        (choice.token ? "token " + std::to_string(*choice.token)
                                                      : std::string("the pooled tokens")) +
                                        " were not asked for when the graph was made");
    }
    first = wanted.first - rows_.first;
    rows = wanted.count;
  }
  const std::vector<float> all = weights(executable, choice.layer, image, set);
  const uint64_t heads = choice.layer ? heads_of_maps(config_, choice.layer) : 1;
  const uint64_t from_head = choice.layer && choice.head ? *choice.head : 0;
  const uint64_t to_head = choice.layer && choice.head ? from_head + 1 : heads;
  const uint64_t columns = keys_of_maps(config_, choice.layer), stored = pool ? 1 : rows_.stored();
  std::vector<float> result(tokens);
  for (uint64_t j = 0; j < columns; ++j) {
    double sum = 0;
    for (uint64_t head = from_head; head < to_head; ++head) {
      for (uint64_t r = first; r < first + rows; ++r)
        sum += static_cast<double>(all[(head * stored + r) * columns + j]);
    }
    result[tokens - columns + j] =
        static_cast<float>(sum / static_cast<double>((to_head - from_head) * rows));
  }
  return result;
}

PatchMap AttentionMaps::map(const Executable& executable, const MapChoice& choice, uint64_t image,
                            uint32_t set) const {
  const std::vector<float> all = row(executable, choice, image, set);
  const auto patches = all.begin() + static_cast<std::ptrdiff_t>(config_.prefix_tokens());
  const auto end = patches + static_cast<std::ptrdiff_t>(config_.patches());
  return {config_.grid_height(), config_.grid_width(), {patches, end}};
}

}  // namespace vitrine

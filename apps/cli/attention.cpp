// vitrine attention: which parts of a picture a model looks at, as a heat map and as numbers.
#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/cli/commands.h"
#include "apps/cli/look_input.h"
#include "apps/cli/model_options.h"
#include "apps/cli/open_device.h"
#include "images/png_writer.h"
#include "model/look/attention_maps.h"
#include "runtime/tune/choice_store.h"
#include "runtime/util/error.h"
#include "runtime/util/npy.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

struct AttentionFlags {
  LookFlags look;
  std::string layer, head, out, raw;
  std::optional<uint64_t> token;
  bool rollout = false, json = false;
};

// What was asked for, checked against the model.
struct Selection {
  std::vector<uint64_t> layers;  // one, or all; none with rollout
  std::optional<uint64_t> head;
  bool mean_heads = false;  // --head mean: the raw numbers are the mean of the heads
  std::optional<uint64_t> token;
  bool rollout = false;
  bool pool = false;  // the layer is attention pooling, where a learned query looks at the patches
};

uint64_t number_below(const char* option, const std::string& text, uint64_t limit, const char* or_else) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value < limit) return value;
  throw Error(ErrorCode::usage, std::string(option) + ": found '" + text + "', expected 0 to " +
                                    std::to_string(limit - 1) + or_else);
}

// What no model could make sense of.
void require_sensible(const AttentionFlags& flags) {
  if (flags.out.empty() && flags.raw.empty()) {
    throw Error(ErrorCode::usage, "attention: found neither --out nor --raw, expected one of them or both");
  }
  if (flags.rollout && !(flags.layer.empty() && flags.head.empty())) {
    throw Error(ErrorCode::usage, "--rollout: found together with " +
                                      std::string(flags.layer.empty() ? "--head" : "--layer") +
                                      ", expected alone, since it goes through all layers and heads");
  }
}

std::optional<uint64_t> layer_of(const Selection& s) {
  return s.layers.empty() ? std::nullopt : std::optional(s.layers[0]);
}

uint64_t heads_of(const Selection& s, const ViTConfig& c) { return heads_of_maps(c, layer_of(s)); }

Selection select(const AttentionFlags& flags, const ViTConfig& c) {
  Selection s{.token = flags.token, .rollout = flags.rollout};
  if (flags.layer == "all") {
    if (!flags.out.empty()) {
      throw Error(ErrorCode::usage, "--layer: found all, and --out shows one layer, expected 0 to " +
                                        std::to_string(c.depth - 1));
    }
    s.layers.resize(c.depth);
    std::iota(s.layers.begin(), s.layers.end(), uint64_t{0});
  } else if (!flags.rollout) {
    const bool pool = has_attention_pool(c);
    if (pool && (flags.layer == "pool" || (flags.layer.empty() && !flags.token))) {
      s.layers = {c.depth};
    } else if (flags.layer.empty()) {
      s.layers = {c.depth - 1};
    } else {
      s.layers = {number_below("--layer", flags.layer, c.depth, pool ? ", pool or all" : " or all")};
    }
    s.pool = s.layers[0] == c.depth;
    if (s.pool && s.token) {
      throw Error(ErrorCode::usage, "--token: found " + std::to_string(*s.token) +
                                        " in attention pooling, expected a --layer from 0 to " +
                                        std::to_string(c.depth - 1));
    }
  }
  s.mean_heads = flags.head == "mean";
  if (!flags.head.empty() && !s.mean_heads)
    s.head = number_below("--head", flags.head, heads_of(s, c), " or mean");
  if (s.token && *s.token >= c.tokens()) {
    throw Error(ErrorCode::usage, "--token: found " + std::to_string(*s.token) + ", expected 0 to " +
                                      std::to_string(c.tokens() - 1) + ", of which the patches begin at " +
                                      std::to_string(c.prefix_tokens()));
  }
  return s;
}

// The rows that have to be computed: all of them for the raw numbers, unless one token was named.
MapRows rows_for(const AttentionFlags& flags, const Selection& s, const ViTConfig& c) {
  if (s.token) return {.first = *s.token};
  return flags.raw.empty() ? pooled_rows(c) : all_rows(c);
}

// What --raw writes, as --help describes it.
struct RawNumbers {
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

void append_weights(RawNumbers& raw, std::vector<float> weights, const Selection& s, const ViTConfig& c) {
  const uint64_t heads = s.rollout ? 1 : heads_of(s, c), of_head = weights.size() / heads;
  if (s.head) {
    const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(*s.head * of_head);
    raw.values.insert(raw.values.end(), begin, begin + static_cast<std::ptrdiff_t>(of_head));
  } else if (s.mean_heads) {
    for (uint64_t i = 0; i < of_head; ++i) {
      double sum = 0;
      for (uint64_t head = 0; head < heads; ++head) sum += static_cast<double>(weights[head * of_head + i]);
      raw.values.push_back(static_cast<float>(sum / static_cast<double>(heads)));
    }
  } else {
    raw.values.insert(raw.values.end(), weights.begin(), weights.end());
  }
}

std::vector<uint64_t> raw_shape(const AttentionFlags& flags, const Selection& s, const ViTConfig& c) {
  std::vector<uint64_t> shape;
  if (flags.layer == "all") shape.push_back(c.depth);
  if (!s.rollout && !s.head && !s.mean_heads) shape.push_back(heads_of(s, c));
  if (!s.token && !s.pool) shape.push_back(c.tokens());
  shape.push_back(keys_of_maps(c, layer_of(s)));
  return shape;
}

// What came out of one or several runs.
struct Attention {
  RawNumbers raw;  // empty without --raw
  PatchMap map;    // of the selected layer or rollout; empty with several layers
};

Attention compute(const AttentionFlags& flags, const Selection& s, const LookInput& input,
                  PipelineStore& pipelines, DType dtype, const PlanOptions& plan) {
  const ViTConfig& c = input.model().config;
  WeightStore weights(pipelines, *input.model().constants);
  const MapRows rows = rows_for(flags, s, c);
  // All layers' full maps of a large model take gigabytes: a run gives as many layers as take so much.
  constexpr uint64_t bytes_a_run = 256 << 20;
  const uint64_t bytes_a_layer = heads_of_maps(c, 0) * rows.stored() * c.tokens() * sizeof(float);
  const uint64_t layers_a_run = std::max<uint64_t>(bytes_a_run / bytes_a_layer, 1);

  Attention result;
  const auto run = [&](std::vector<uint64_t> layers) {
    const AttentionMaps maps(c, {.layers = layers, .rollout = s.rollout, .rows = rows});
    const std::unique_ptr<Executable> executable = input.run(weights, pipelines, dtype, plan, maps.taps());
    if (!flags.raw.empty()) {
      if (s.rollout) append_weights(result.raw, maps.weights(*executable, {}), s, c);
      for (const uint64_t layer : layers) append_weights(result.raw, maps.weights(*executable, layer), s, c);
    }
    if (flags.layer == "all") return;
    MapChoice choice{.head = s.head, .token = s.token};
    if (!s.rollout) choice.layer = layers[0];
    result.map = maps.map(*executable, choice);
  };
  if (s.rollout) run({});
  for (uint64_t first = 0; first < s.layers.size(); first += layers_a_run) {
    const auto begin = s.layers.begin() + static_cast<std::ptrdiff_t>(first);
    run({begin, begin + static_cast<std::ptrdiff_t>(std::min(layers_a_run, s.layers.size() - first))});
  }
  result.raw.shape = raw_shape(flags, s, c);
  return result;
}

std::string token_name(const Selection& s, const ViTConfig& c) {
  if (s.pool) return "the pooling's query";
  const MapRows pooled = pooled_rows(c);
  if (!s.token && pooled.mean) return pooled_name(c);
  const uint64_t token = s.token.value_or(pooled.first);
  if (token >= c.prefix_tokens() + c.patches())
    return "detection token " + std::to_string(token - c.prefix_tokens() - c.patches());
  if (c.is_patch(token)) {
    const uint64_t patch = token - c.prefix_tokens();
    return "patch at row " + std::to_string(patch / c.grid_width()) + ", column " +
           std::to_string(patch % c.grid_width());
  }
  if (c.class_token && token == 0) return "class token";
  if (c.distillation_token && token == uint64_t{c.class_token}) return "distillation token";
  return "register " + std::to_string(token - c.class_token - c.distillation_token);
}

void print(const AttentionFlags& flags, const Selection& s, const ViTConfig& c, const Attention& a) {
  const auto highest = std::ranges::max_element(a.map.weights);
  const auto lowest = std::ranges::min_element(a.map.weights);
  const uint64_t at = static_cast<uint64_t>(highest - a.map.weights.begin());
  if (flags.json) {
    nlohmann::ordered_json line;
    line["image"] = flags.look.image;
    if (s.rollout) line["rollout"] = true;
    if (!s.rollout) {
      line["layer"] = flags.layer == "all" ? nlohmann::ordered_json("all")
                      : s.pool             ? nlohmann::ordered_json("pool")
                                           : nlohmann::ordered_json(s.layers[0]);
      line["head"] = s.head ? nlohmann::ordered_json(*s.head) : nlohmann::ordered_json("mean");
    }
    line["token"] = token_name(s, c);
    line["tokens"] = c.tokens();
    line["first_patch"] = c.prefix_tokens();
    line["grid"] = {c.grid_height(), c.grid_width()};
    if (!a.map.weights.empty()) {
      line["lowest"] = *lowest;
      line["highest"] = *highest;
      line["highest_at"] = {at / c.grid_width(), at % c.grid_width()};
    }
    if (!flags.out.empty()) line["out"] = flags.out;
    if (!flags.raw.empty()) {
      line["raw"] = flags.raw;
      line["raw_shape"] = a.raw.shape;
    }
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return;
  }
  if (!a.map.weights.empty()) {
    const std::string what =
        s.rollout
            ? "rollout through " + counted(c.depth, "layer")
            : (s.pool ? "attention pooling" : "layer " + std::to_string(s.layers[0])) + ", " +
                  (s.head ? "head " + std::to_string(*s.head) : "mean of " + counted(heads_of(s, c), "head"));
    std::printf("%s, %s: %" PRIu64 "x%" PRIu64 " patches, weights %.6f to %.6f, highest at row %" PRIu64
                ", column %" PRIu64 "\n",
                what.c_str(), token_name(s, c).c_str(), c.grid_height(), c.grid_width(),
                static_cast<double>(*lowest), static_cast<double>(*highest), at / c.grid_width(),
                at % c.grid_width());
  }
  if (!flags.out.empty()) std::printf("%s: the heat map\n", shown(flags.out).c_str());
  if (!flags.raw.empty()) {
    std::printf("%s: float32 %s\n", shown(flags.raw).c_str(), npy_shape(a.raw.shape).c_str());
  }
}

void attention(const AttentionFlags& flags, const CommonOptions& common) {
  require_sensible(flags);
  const PlanOptions plan = plan_options(flags.look.model);
  // Files first: what is wrong with them needs no device to be found.
  const LookInput input(flags.look, common, !flags.out.empty());
  const ViTConfig& config = input.model().config;
  const Selection selection = select(flags, config);

  const std::unique_ptr<Device> device = open_device(common);
  PipelineStore pipelines(*device);
  const Attention result =
      compute(flags, selection, input, pipelines, storage_type(common.dtype, device->capabilities()),
              with_stored_choices(plan, device->capabilities(), warn));
  if (!flags.out.empty()) {
    const Image picture = input.overlay(result.map);
    write_png(flags.out, picture.width, picture.height, 4, picture.pixels);
  }
  if (!flags.raw.empty()) write_npy(flags.raw, result.raw.shape, result.raw.values);
  print(flags, selection, config, result);
}

}  // namespace

void add_attention(CLI::App& app, const CommonOptions& common) {
  CLI::App* command =
      app.add_subcommand("attention", "Show which parts of a picture a model looks at: attention maps");
  auto flags = std::make_shared<AttentionFlags>();
  add_look_flags(*command, flags->look);
  command->add_option("--layer", flags->layer,
                      "Block, from 0 on, or 'pool', attention pooling; else what comes last; with --raw "
                      "alone also 'all' blocks");
  command->add_option("--head", flags->head,
                      "Head, from 0 on, or 'mean'; else the mean, and all heads in --raw");
  command->add_flag("--rollout", flags->rollout,
                    "Rollout (Abnar & Zuidema) through all layers and heads instead");
  command->add_option(
      "--token", flags->token,
      "Whose attention, from 0 on: class, distillation and register tokens, then patches row by "
      "row; else the class token's, or the mean of the patches' where those are pooled");
  command->add_option("--out", flags->out, "Where the heat map over the picture goes, as PNG");
  command->add_option("--raw", flags->raw,
                      "Where the weights go, as .npy: float32 [heads,N,N] of the layer; [N,N] with --head or "
                      "--rollout; without the first N, that token's row, with --token; 'all' layers put "
                      "[layers,...] in front");
  command->add_flag("--json", flags->json, "Say what was found as a JSON object");
  command->callback([&common, flags] { attention(*flags, common); });
}

}  // namespace vitrine::cli

#include "train/trained_parameters.h"

#include <algorithm>
#include <charconv>

#include "runtime/util/error.h"
#include "runtime/util/split.h"
#include "runtime/util/text.h"
#include "train/lora.h"

namespace vitrine {
namespace {

constexpr std::string_view last_prefix = "last:", lora_prefix = "lora:";

// Behind the last block.
bool is_behind_blocks(const Parameter& parameter) {
  switch (parameter.module) {
    case Module::neck_linear:
    case Module::neck_norm1:
    case Module::neck_convolution:
    case Module::neck_norm2:
    case Module::class_norm1:
    case Module::class_q:
    case Module::class_k:
    case Module::class_v:
    case Module::class_projection:
    case Module::class_scale1:
    case Module::class_norm2:
    case Module::class_fc1:
    case Module::class_fc2:
    case Module::class_scale2:
    case Module::norm:
    case Module::pool_latent:
    case Module::pool_q:
    case Module::pool_kv:
    case Module::pool_projection:
    case Module::pool_norm:
    case Module::pool_fc1:
    case Module::pool_fc2:
    case Module::fc_norm:
    case Module::pre_logits:
    case Module::embedding:
      return true;
    default:
      return is_head(parameter);
  }
}

bool is_of_a_block(const Parameter& parameter) { return parameter.name.starts_with("blocks."); }

}  // namespace

bool is_head(const Parameter& parameter) {
  return parameter.module == Module::head || parameter.module == Module::distillation_head;
}

TrainedSet trained_set_of(std::string_view text, const std::string& origin, ErrorCode code) {
  if (text == "all") return {};
  if (text == "head") return {.kind = Trained::head};
  if (text == "lora") return {.kind = Trained::lora};
  const auto number_behind = [&](std::string_view prefix, const char* expected) {
    const std::string_view digits = text.substr(prefix.size());
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || number == 0) {
      throw Error(code, origin + ": found " + in_quotes(text) + ", expected " + expected + ", at least 1");
    }
    return number;
  };
  if (text.starts_with(last_prefix)) {
    return {.kind = Trained::last, .blocks = number_behind(last_prefix, "last:N with a number N of blocks")};
  }
  if (text.starts_with(lora_prefix)) {
    return {.kind = Trained::lora, .rank = number_behind(lora_prefix, "lora:R with a rank R")};
  }
  const std::vector<std::string_view> parts = split(text, ',');
  TrainedSet set{.kind = Trained::pattern, .patterns = {parts.begin(), parts.end()}};
  if (std::ranges::any_of(set.patterns, &std::string::empty)) {
    throw Error(code,
                origin + ": found " + in_quotes(text) +
                    ", expected all, head, last:N, lora:R, or patterns of names with commas between them");
  }
  return set;
}

bool fits_pattern(std::string_view name, std::string_view pattern) {
  size_t at = 0, in_pattern = 0, star = std::string_view::npos, tried = 0;
  while (at < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      tried = at;
    } else if (in_pattern < pattern.size() &&
               (pattern[in_pattern] == '?' || pattern[in_pattern] == name[at])) {
      ++in_pattern;
      ++at;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;  // the star takes one more
      at = ++tried;
    } else {
      return false;
    }
  }
  return std::ranges::all_of(pattern.substr(in_pattern), [](char c) { return c == '*'; });
}

std::vector<Parameter> trained_parameters(const TrainConfig& config, const std::string& origin,
                                          ErrorCode code) {
  const TrainedSet set = trained_set_of(config.train, origin, code);
  const uint64_t depth = config.model.depth;
  if (set.blocks > depth) {
    throw Error(code,
                origin + ": found " + in_quotes(config.train) + ", the model has " + counted(depth, "block"));
  }
  std::vector<bool> fitted(set.patterns.size());
  const auto is_trained = [&](const Parameter& parameter) {
    switch (set.kind) {
      case Trained::all:
        return true;
      case Trained::head:
        return is_head(parameter);
      case Trained::lora:
        return is_head(parameter) && config.lora.head.value_or(true);
      case Trained::last:
        return is_behind_blocks(parameter) ||
               (is_of_a_block(parameter) && parameter.block >= depth - set.blocks);
      case Trained::pattern:
        break;
    }
    bool any = false;
    for (size_t i = 0; i < set.patterns.size(); ++i) {
      if (!fits_pattern(parameter.name, set.patterns[i])) continue;
      fitted[i] = any = true;
    }
    return any;
  };
  const std::vector<Parameter> parameters = parameters_of(config.model);
  const auto trains_aside = [&](Module module) {
    return std::ranges::any_of(parameters, [&](const Parameter& parameter) {
      return parameter.aside && parameter.module == module && is_trained(parameter);
    });
  };
  if (trains_aside(Module::stem) || trains_aside(Module::patch)) {
    throw Error(code,
                origin + ": found " + in_quotes(config.train) + ", but " +
                    (config.model.patches_adjoin() ? "the convolutions in front of the model's patches"
                                                   : "patches that overlap or lie apart") +
                    " can't be trained yet, expected head, last:N, lora:R or patterns of names behind them");
  }
  std::vector<Parameter> trained;
  for (const auto& [layer, pairs] : low_rank_of(config, origin, code).layers) {
    for (const LowRankPair& pair : pairs) trained.insert(trained.end(), {pair.down, pair.up});
  }
  for (const Parameter& parameter : parameters) {
    if (parameter.learned() && !parameter.aside && is_trained(parameter)) trained.push_back(parameter);
  }
  // What lies behind such blocks can be trained: nothing is asked of their derivatives.
  const auto require_behind = [&](bool there, const std::string& what) {
    if (!there || std::ranges::all_of(trained, is_behind_blocks)) return;
    throw Error(code, origin + ": found " + in_quotes(config.train) + ", but " + what +
                          " can't be trained yet, expected head or names of what lies behind the blocks");
  };
  const ViTConfig& model = config.model;
  require_behind(model.window != 0 || model.relative_bias == RelativeBias::decomposed,
                 "attention in windows and with relative positions of rows and columns");
  require_behind(model.attention == AttentionKind::differential, "differential attention");
  // A norm or linear layer in front of the neck's convolution would need that one's derivative.
  const auto in_neck = [](const Parameter& parameter) {
    return parameter.module == Module::neck_linear || parameter.module == Module::neck_norm1;
  };
  if (trains_aside(Module::neck_convolution) || std::ranges::any_of(trained, in_neck)) {
    throw Error(code,
                origin + ": found " + in_quotes(config.train) +
                    ", but the neck's convolution has no derivative yet, expected head or names behind it");
  }
  const auto none = std::ranges::find(fitted, false);
  if (none != fitted.end()) {
    const auto at = static_cast<size_t>(none - fitted.begin());
    throw Error(code, origin + ": found the pattern " + in_quotes(set.patterns[at]) +
                          ", which no parameter's name fits, expected all, head, last:N, or names such as "
                          "'blocks.11.*'");
  }
  return trained;
}

bool trains_on_fixed_features(const TrainConfig& config) {
  return trained_set_of(config.train, "train", ErrorCode::usage).kind == Trained::head && !config.flip &&
         config.crop_padding == 0 && !config.random_resized_crop && !config.augmentation.on() &&
         config.model.dropout == 0 && config.model.attention_dropout == 0 &&
         config.model.stochastic_depth == 0 && !config.recipe.mixup.on() &&
         !config.recipe.random_erasing.on() && !config.recipe.distillation.on() &&
         config.recipe.sampling == Sampling::all && config.recipe.repeats == 1;
}

}  // namespace vitrine

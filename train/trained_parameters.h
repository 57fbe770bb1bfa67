// Which of a model's parameters a training changes. What the others need for a derivative is never made: no
// gradients, no moments, and nothing of the way back below the first that is trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/vit/parameters.h"
#include "train/train_config.h"

namespace vitrine {

enum class Trained : uint8_t { all, head, last, pattern, lora };

// "all"; "head", what makes classes of features; "last:N", the last N blocks and what lies behind them;
// "lora" or "lora:RANK", pairs of narrow matrices beside the model's linear layers (lora.h), and a new head;
// else patterns of names with commas between them, in which * stands for any characters and ? for one.
struct TrainedSet {
  Trained kind = Trained::all;
  uint64_t blocks = 0;                // of `last`
  std::optional<uint64_t> rank = {};  // of `lora`, where it is named
  std::vector<std::string> patterns = {};
};
// `origin` says in messages where the text stands.
TrainedSet trained_set_of(std::string_view text, const std::string& origin, ErrorCode code);

// Whether it makes classes of features.
bool is_head(const Parameter& parameter);

// Whether all of the name is as the pattern says.
bool fits_pattern(std::string_view name, std::string_view pattern);

// The parameters that are trained, in the order of parameters_of(), and in front of them a LoRA's. Throws an
// Error that names a pattern which fits none, or the number of blocks where there are fewer.
std::vector<Parameter> trained_parameters(const TrainConfig& config, const std::string& origin = "train",
                                          ErrorCode code = ErrorCode::usage);

// Whether the head is all that is trained, and what it sees of a picture is the same in every epoch: nothing
// that is drawn by chance comes before it.
bool trains_on_fixed_features(const TrainConfig& config);

}  // namespace vitrine

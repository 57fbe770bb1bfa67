// Training with LoRA: the model stays as it is, and pairs of narrow matrices are trained beside its linear
// layers. What is saved is an adapter as PEFT has it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/files/adapter.h"
#include "model/files/json_object.h"
#include "model/vit/low_rank.h"
#include "train/lora_config.h"
#include "train/parameter_layout.h"
#include "train/train_config.h"

namespace vitrine {

class Trainer;

bool trains_low_rank(const TrainConfig& config);

// The pairs of such a training, none of another one; Error(code) beginning with `origin` for targets that
// fit no layer, and a rank that is 0 or no less than a layer's sides.
LowRankPairs low_rank_of(const TrainConfig& config, const std::string& origin = "lora",
                         ErrorCode code = ErrorCode::bad_file);

// "lora:4" becomes "lora" and a rank of 4.
void take_rank(TrainConfig& config, const std::string& origin, ErrorCode code);

// Nothing where the parameter is none of a pair: A evenly between -1 and 1 over the root of its inputs
// (PEFT's kaiming_uniform), B zeros, so that the model begins as it was.
bool init_low_rank(const Parameter& parameter, uint64_t seed, std::span<float> values);

// The model's constants, and rows of them (RowsName). `whole` has to outlive it.
std::unique_ptr<ConstantSource> with_rows(ConstantSource& whole, const ViTConfig& config);

// Of a base whose names the configuration knows.
uint64_t base_checksum_of(ConstantSource& base, const TrainConfig& config);

// What PEFT and open_model() read, but for config.json: `base` is what the base is called in it.
void write_adapter(const std::filesystem::path& folder, Trainer& trainer, const std::string& base);
// From such a folder into a buffer of the trainer's layout.
void read_adapter(const std::filesystem::path& folder, const TrainConfig& config,
                  const ParameterLayout& layout, std::span<float> values);

Lora read_lora(const JsonObject& object);
nlohmann::ordered_json to_json(const Lora& lora);

}  // namespace vitrine

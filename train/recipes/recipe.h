// What timm's and DeiT's recipes add to a training: the fields of a configuration, all off unless asked for.
// A field that is as here is not written to training.json, so trainings without a recipe stay as they are.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace vitrine {

class JsonObject;

enum class Loss : uint8_t { cross_entropy, bce };
enum class MixMode : uint8_t { batch, pair, elem };
enum class ErasingMode : uint8_t { constant, rand, pixel };
enum class DistillationKind : uint8_t { hard, soft };
enum class ScheduleBy : uint8_t { updates, epochs };
enum class Sampling : uint8_t { all, balanced };

// timm's Mixup, with the lambda of cutmix corrected to what its box covers.
struct Mixup {
  double mixup_alpha = 0, cutmix_alpha = 0;  // of the beta distributions; 0: off
  std::vector<double> cutmix_minmax;  // the least and the largest part of a side; empty: by cutmix_alpha
  double prob = 1;                    // that a batch, pair or sample is mixed
  double switch_prob = 0.5;           // that it is cutmix, where both are on
  MixMode mode = MixMode::batch;      // what draws anew
  bool on() const { return mixup_alpha > 0 || cuts(); }
  bool cuts() const { return cutmix_alpha > 0 || !cutmix_minmax.empty(); }
  bool operator==(const Mixup&) const = default;
};

// timm's RandomErasing.
struct RandomErasing {
  double probability = 0;
  ErasingMode mode = ErasingMode::constant;
  double min_area = 0.02, max_area = 1.0 / 3;  // of a sample, for all boxes together
  double min_aspect = 0.3, max_aspect = 0;     // of height by width; 0: 1 / min_aspect
  uint64_t min_count = 1, max_count = 0;       // boxes; 0: min_count
  bool on() const { return probability > 0; }
  uint64_t boxes() const { return max_count == 0 ? min_count : max_count; }
  bool operator==(const RandomErasing&) const = default;
};

// DeiT's: (1 - alpha) of the loss of the labels and alpha of that of a teacher's answers.
struct Distillation {
  std::string model;  // the teacher, as --model names models; empty: off
  DistillationKind kind = DistillationKind::hard;
  double alpha = 0.5, tau = 1;
  bool sum = false;  // soft: the sum over classes, as timm's, instead of DeiT's mean
  bool on() const { return !model.empty(); }
  bool operator==(const Distillation&) const = default;
};

struct Recipe {
  Loss loss = Loss::cross_entropy;
  std::optional<double> bce_target_threshold;
  bool bce_sum = false;
  Mixup mixup;
  RandomErasing random_erasing;
  Distillation distillation;

  double warmup_epochs = 0;  // instead of warmup_steps
  double warmup_lr = 0;      // where the learning rate's rise begins; 0: at one part of it
  ScheduleBy schedule_by = ScheduleBy::updates;
  uint64_t repeats = 1;  // how often a sample that an epoch takes comes, one time after the other
  Sampling sampling = Sampling::all;

  bool operator==(const Recipe&) const = default;
};

// The names of the fields, at the top of a configuration.
extern const std::vector<std::string_view> recipe_fields;
Recipe read_recipe(const JsonObject& object);
// Adds what isn't as it is in a recipe with nothing on.
void write_recipe(const Recipe& recipe, nlohmann::ordered_json& json);
// Throws an Error that names `origin` and the first field that makes no sense.
void validate_recipe(const Recipe& recipe, const std::string& origin);

}  // namespace vitrine

#include "train/start_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "model/vit/init_weights.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/trained_parameters.h"

namespace vitrine {
namespace {

// A model's weights, but for some that are new.
class StartWeights final : public ConstantSource {
 public:
  StartWeights(Model model, std::vector<Parameter> fresh, HeadInit init, uint64_t seed)
      : model_(std::move(model)), fresh_(std::move(fresh)), init_(init), seed_(seed) {}

  ConstantParts find(const std::string& name, const Shape& shape, DType dtype) override {
    const auto found = std::ranges::find(fresh_, name, &Parameter::name);
    if (found == fresh_.end()) return model_.constants->find(name, shape, dtype);
    values_.assign(shape.elements(), 0.0f);
    if (init_ == HeadInit::normal && found->leaf == Leaf::weight) {
      constexpr double sigma = 0.02;
      init_truncated_normal(name, seed_, sigma, values_);
    }
    return {{DType::f32, std::as_bytes(std::span<const float>(values_))}};
  }

 private:
  Model model_;
  std::vector<Parameter> fresh_;
  HeadInit init_;
  uint64_t seed_;
  std::vector<float> values_;  // what find() handed out last
};

std::string classes_text(uint64_t count) { return std::to_string(count) + " classes"; }

// Why the model's head can't stay; empty where it can.
std::string why_new_head(const Model& model, const WantedClasses& wanted) {
  const uint64_t classes = model.config.classes;
  if (classes == 0) return "the model has none";
  if (classes != wanted.count) {
    return "the model's is for " + classes_text(classes) + ", the data has " + std::to_string(wanted.count);
  }
  if (wanted.names.empty()) return {};
  if (model.labels.empty()) return "nothing says what its classes are called";
  for (uint64_t i = 0; i < classes; ++i) {
    if (model.labels[i] == wanted.names[i]) continue;
    return "its class " + std::to_string(i) + " is " + in_quotes(model.labels[i]) + ", the data's " +
           in_quotes(wanted.names[i]);
  }
  return {};
}

// So that it is found from everywhere.
std::string base_name(const Model& model) {
  std::error_code none;
  if (!std::filesystem::exists(model.name, none)) return model.name;
  return std::filesystem::absolute(model.path).lexically_normal().string();
}

std::string grid_text(const Grid& grid) {
  return std::to_string(grid.height) + "x" + std::to_string(grid.width);
}

}  // namespace

StartModel start_model(Model model, const WantedClasses& wanted, HeadInit init, uint64_t seed) {
  StartModel start{.config = model.config,
                   .weights = {},
                   .new_parameters = {},
                   .naming = model.naming,
                   .base = base_name(model),
                   .said = {}};
  const std::string reason = why_new_head(model, wanted);
  ViTConfig& config = start.config;
  std::string dropped;
  if (!reason.empty()) {
    if (model.config.classes) dropped = "the head of " + classes_text(model.config.classes);
    if (config.embedding_size) dropped += (dropped.empty() ? "" : " and ") + std::string("the projection");
    config.classes = wanted.count;
    config.embedding_size = 0;
  }
  config.validate(shown(model.name) + " with " + classes_text(wanted.count));

  std::vector<Parameter> fresh;
  uint64_t kept = 0;
  std::string named;
  for (Parameter& parameter : parameters_of(config)) {
    if (!parameter.learned()) continue;
    if (reason.empty() || !is_head(parameter)) {
      ++kept;
      continue;
    }
    named += (named.empty() ? "" : ", ") + parameter.name + " " + parameter.shape.to_string();
    start.new_parameters.push_back(parameter.name);
    fresh.push_back(std::move(parameter));
  }
  start.said =
      "begins with " + shown(model.name) + " (" + model.family + "): " + counted(kept, "tensor") + " kept";
  if (!fresh.empty())
    start.said +=
        "; new: " + named + ", because " + (model.config.classes ? reason : "the model has no head");
  if (!dropped.empty()) start.said += "; dropped: " + dropped;
  const Grid grid = grid_of(config);
  if (model.stored_grid && !(*model.stored_grid == grid)) {
    start.said +=
        "; positions resampled from " + grid_text(*model.stored_grid) + " to " + grid_text(grid) + " patches";
  }
  start.weights = std::make_unique<StartWeights>(std::move(model), std::move(fresh), init, seed);
  return start;
}

void require_same_model(const StartModel& start, const ViTConfig& wanted, const std::string& origin) {
  constexpr std::array<std::string_view, 4> may_differ{"dropout", "attention_dropout", "stochastic_depth",
                                                       "init"};
  const auto asked = fields_of(wanted.resolved()), given = fields_of(start.config.resolved());
  for (size_t i = 0; i < asked.size(); ++i) {
    const auto& [field, value] = asked[i];
    if (value == given[i].second || std::ranges::find(may_differ, field) != may_differ.end()) continue;
    throw Error(ErrorCode::bad_file, origin + ": " + field + " is " + value + ", expected " +
                                         given[i].second + " as the model has that the training begins with");
  }
}

TrainConfig fine_tuning_recipe(const std::string& train, uint64_t batch_size) {
  const Trained kind = trained_set_of(train, "--train", ErrorCode::usage).kind;
  // What a LoRA trains beside the model is new, too, but sees the pictures anew every time.
  const bool head_alone = kind == Trained::head, new_alone = head_alone || kind == Trained::lora;
  constexpr double images = 256;
  TrainConfig config;
  config.train = train;
  config.batch_size = batch_size;
  config.optimizer = Optimizer::adamw;
  config.lr = (new_alone ? 5e-3 : 5e-4) * std::sqrt(static_cast<double>(batch_size) / images);
  config.weight_decay = 0.05;
  config.label_smoothing = 0.1;
  config.epochs = 10;
  config.schedule = Schedule::cosine;
  config.recipe.warmup_epochs = 1;
  config.layer_decay = new_alone ? 1 : 0.75;
  // What the trunk makes of a picture is computed once where only the head is trained and nothing changes the
  // picture.
  config.flip = !head_alone;
  if (!head_alone) config.random_resized_crop.emplace();
  return config;
}

}  // namespace vitrine

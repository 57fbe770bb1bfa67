// How a model is trained: what `vitrine train --config FILE` reads. docs/training.md describes the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/pictures/preprocess.h"
#include "model/vit/vit_config.h"
#include "train/data/augmentation.h"
#include "train/data/picture_augmentation.h"
#include "train/lora_config.h"
#include "train/recipes/recipe.h"

namespace vitrine {

enum class Optimizer : uint8_t { sgd, adam, adamw };
enum class Schedule : uint8_t { constant, cosine };
// What the blocks' products multiply, forwards and backwards: f32, or what f16 keeps of it, where the device
// has units for that. Parameters, activations, gradients, sums and updates are f32 with both.
enum class Precision : uint8_t { f32, f16 };
// What is expected where somebody asks for bf16, which published recipes often have: its matrices need
// GL_EXT_bfloat16, which glslang 15.1 of the reference systems doesn't compile, and which no driver there
// runs.
constexpr std::string_view no_bf16 =
    "f32 or f16: matrix units are given f16 here, which keeps three more bits than bf16, and gradients are "
    "scaled into its range";
// A head that a training begins anew: zeros, or a normal distribution of sigma 0.02 (biases are 0 with both).
enum class HeadInit : uint8_t { zero, normal };
std::string_view name_of(Optimizer optimizer);
std::string_view name_of(Schedule schedule);
std::string_view name_of(Precision precision);
std::string_view name_of(HeadInit init);

struct TrainConfig {
  ViTConfig model;

  // Each channel c of a pixel becomes (byte / 255 - mean[c]) / std[c].
  std::vector<double> mean, std;  // one a channel; empty: the preprocessing's, else 0 and 1
  // How pictures get the model's size and become numbers; cover_and_crop() when left out.
  std::optional<Preprocess> preprocess;
  std::vector<std::string> class_names;  // where the data set has none; empty: there are none
  uint64_t crop_padding = 0;  // zeros around each training image, from which one of its size is cut at random
  bool flip = false;          // half of the training images are mirrored
  // What is seen of a training image, in place of the preprocessing's resize and crop.
  std::optional<RandomResizedCrop> random_resized_crop;
  PictureAugmentation augmentation;  // what is done to its bytes after that

  Optimizer optimizer = Optimizer::adamw;
  double lr = 1e-3;
  double momentum = 0.9;              // sgd
  double beta1 = 0.9, beta2 = 0.999;  // adam, adamw
  double eps = 1e-8;
  // Of weights alone: not of biases, norms, tokens, positions and layer scales. adamw shrinks the weights by
  // lr * weight_decay; the others add weight_decay times the weights to the gradients.
  double weight_decay = 0;
  double clip_norm = 0;  // largest norm of all gradients together; 0: any
  double label_smoothing = 0;

  uint64_t epochs = 1;
  uint64_t batch_size = 128;
  uint64_t accumulation = 1;  // batches whose gradients are averaged for one update
  // Each batch is cut into so many parts, whose gradients are added up (batch_parts.h); 0 where nobody has
  // said yet: what then decides is whether it fits the device.
  uint64_t parts = 0;
  Schedule schedule = Schedule::constant;
  uint64_t warmup_steps = 0;  // updates in which the learning rate rises to lr
  double min_lr = 0;          // where cosine ends
  uint64_t seed = 0;
  Precision precision = Precision::f32;
  Recipe recipe;  // mixing, erasing, other losses, distillation, sampling

  // What is trained, as trained_set_of() reads it; all else stays as it is.
  std::string train = "all";
  Lora lora;  // where that is lora
  HeadInit head_init = HeadInit::normal;
  double layer_decay = 1;  // each layer's learning rate is this times that of the one behind it: layer_of()
  // Where it isn't 0, an average of the weights is tested and saved: after every update it becomes ema_decay
  // times itself and 1 - ema_decay times the weights.
  double ema_decay = 0;

  // What follows changes no number of the training.
  // Updates in a row whose gradients are not finite, and which are left out; then the training ends.
  uint64_t max_skipped_steps = 10;
  // How often it is validated: after so many updates and at the end, after every epoch, or, 0, never.
  static constexpr uint64_t every_epoch = ~uint64_t{0};
  uint64_t validate_every = 0;
  uint64_t patience =
      0;  // validations in a row without a better one, after which the training ends; 0: any number
  bool tensorboard = false;  // writes its events, besides log.csv
  uint64_t keep = 1;         // checkpoints: the newest, and with more than one those of the last epochs' ends

  // Throws an Error that names `origin` and the first field that makes no sense.
  void validate(const std::string& origin) const;
  bool operator==(const TrainConfig&) const = default;
};

// What a training with this configuration does with pictures, and what the model is saved with.
Preprocess preprocessing_of(const TrainConfig& config);

// Throws Error(bad_file) that names the file and the field. `model` is the one where the file has none;
// without it the file must have one.
TrainConfig read_train_config(const std::filesystem::path& file);
TrainConfig train_config_of(const nlohmann::json& json, const std::string& origin,
                            const ViTConfig* model = nullptr);
// Fields that came later than a first version are left out where they are as by default: what is written of a
// training that asks for nothing new stays the same.
nlohmann::ordered_json to_json(const TrainConfig& config);
// All fields, as set_field() reads them.
nlohmann::ordered_json to_json(const ViTConfig& config);

// The learning rate of update `step` of `total`, both counted from 0.
double learning_rate(const TrainConfig& config, uint64_t step, uint64_t total);

}  // namespace vitrine

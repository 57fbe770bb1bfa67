#include "apps/cli/train_options.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/cli/model_options.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"
#include "train/data/augmentation_config.h"
#include "train/lora.h"
#include "train/parameter_layout.h"
#include "train/trained_parameters.h"
#include "train/training_run.h"

namespace vitrine::cli {
namespace {

constexpr uint64_t fine_tuning_batch = 32;

template <typename T>
void assign(T& field, const std::optional<T>& value) {
  if (value) field = *value;
}

uint64_t validate_every_of(const std::string& text) {
  if (text == "epoch") return TrainConfig::every_epoch;
  uint64_t updates = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), updates);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error(ErrorCode::usage,
                "--validate-every: found " + in_quotes(text) + ", expected epoch or a number of updates");
  }
  return updates;
}

// What the command line says goes before what a file says.
void apply_flags(TrainConfig& config, const TrainFlags& flags, const CommonOptions& common) {
  for (const std::string& assignment : flags.set) set_field(config.model, assignment);
  assign(config.epochs, flags.epochs);
  assign(config.batch_size, flags.batch_size);
  assign(config.lr, flags.lr);
  assign(config.seed, flags.seed);
  assign(config.weight_decay, flags.weight_decay);
  if (flags.warmup_epochs) {
    config.recipe.warmup_epochs = *flags.warmup_epochs;
    config.warmup_steps = 0;
  }
  assign(config.label_smoothing, flags.label_smoothing);
  assign(config.layer_decay, flags.layer_decay);
  assign(config.ema_decay, flags.ema_decay);
  assign(config.flip, flags.flip);
  if (flags.resized_crop && !*flags.resized_crop) config.random_resized_crop.reset();
  if (flags.resized_crop && *flags.resized_crop && !config.random_resized_crop)
    config.random_resized_crop.emplace();
  if (flags.rand_augment) {
    config.augmentation.rand_augment.reset();
    if (*flags.rand_augment != "none")
      config.augmentation.rand_augment =
          rand_augment_named(*flags.rand_augment, "--rand-augment", ErrorCode::usage);
  }
  assign(config.augmentation.trivial_augment, flags.trivial_augment);
  if (flags.color_jitter) {
    config.augmentation.color_jitter.reset();
    if (*flags.color_jitter > 0) config.augmentation.color_jitter = color_jitter_of(*flags.color_jitter);
  }
  assign(config.train, flags.train);
  take_rank(config, "--train", ErrorCode::usage);
  if (flags.head_init) config.head_init = *flags.head_init == "zero" ? HeadInit::zero : HeadInit::normal;
  const std::string precision = flags.precision.value_or(common.dtype);
  if (precision != "auto") config.precision = precision == "f16" ? Precision::f16 : Precision::f32;
  if (flags.validate_every) config.validate_every = validate_every_of(*flags.validate_every);
  assign(config.patience, flags.patience);
  assign(config.keep, flags.keep);
  assign(config.parts, flags.parts);
  if (flags.tensorboard) config.tensorboard = true;
  if (flags.train) trained_parameters(config, "--train", ErrorCode::usage);
}

// Before anything else is read: a folder that mustn't be written to.
void require_free(const TrainFlags& flags) {
  const std::filesystem::path out = flags.out;
  if (!flags.resume && path_exists(checkpoint_in(out), ErrorCode::failed)) {
    throw Error(ErrorCode::usage, shown(flags.out) +
                                      " holds a training already, expected another --out, or "
                                      "--resume to go on with it");
  }
  std::error_code none;
  const std::filesystem::path of_model =
      flags.model.empty() ? std::filesystem::path() : std::filesystem::path(flags.model) / "config.json";
  for (const std::filesystem::path& file : {std::filesystem::path(flags.config), of_model}) {
    if (std::filesystem::equivalent(file, out / "config.json", none)) {
      throw Error(ErrorCode::usage, shown(file) +
                                        " would be overwritten by the trained model's config.json, expected "
                                        "another --out");
    }
  }
}

// A training that begins with random weights.
TrainSetup from_nothing(const TrainFlags& flags, const CommonOptions& common) {
  TrainSetup setup{.config = read_train_config(flags.config)};
  TrainConfig& config = setup.config;
  const auto [height, width] = image_size_of("--image-size", flags.image_size);
  if (height) {
    config.model.image_height = height;
    config.model.image_width = width;
  }
  assign(config.model.classes, flags.classes);
  apply_flags(config, flags, common);
  if (trains_low_rank(config)) {
    throw Error(ErrorCode::usage,
                "--train: found lora without --model, expected a model to begin with: all of "
                "it stays as it is");
  }
  config.validate(flags.config);
  require_no_other_settings(config, flags.out);
  setup.data = open_dataset(flags.data, Split::train, dataset_options(config));
  return setup;
}

DatasetOptions pictures_for(const ViTConfig& model, const std::optional<Preprocess>& preprocess,
                            uint64_t classes) {
  TrainConfig config{.model = model, .preprocess = preprocess};
  config.model.classes = classes;
  return dataset_options(config);
}

// Whether a configuration may name layers as the model's own library does.
bool names_layers(const nlohmann::json& json) {
  return json.is_object() && json.contains("lora") && json["lora"].is_object() &&
         !json["lora"].contains("family");
}

// A training that begins with a model that was trained before.
TrainSetup from_model(const TrainFlags& flags, const CommonOptions& common) {
  TrainSetup setup;
  TrainConfig& config = setup.config;
  nlohmann::json json;
  bool names_model = false;
  if (!flags.config.empty()) {
    json = read_json(flags.config);
    names_model = json.is_object() && json.contains("model");
    if (names_model) {
      nlohmann::json first = json;
      // Names of layers are the model's own, which isn't open yet.
      if (names_layers(first)) first["lora"].erase("targets");
      config = train_config_of(first, flags.config);
    }
  }
  auto [height, width] = image_size_of("--image-size", flags.image_size);
  if (names_model && !height) {
    height = config.model.image_height;
    width = config.model.image_width;
  }
  Model model = vitrine::open_model({.model = flags.model,
                                     .seed = flags.seed.value_or(common.seed),
                                     .image_height = height,
                                     .image_width = width},
                                    warn);
  if (names_layers(json) && model.naming.family) {
    json["lora"].update({{"family", model.naming.family->name}, {"prefix", model.naming.prefix}});
    if (names_model) config = train_config_of(json, flags.config);
  }
  // What the configuration says of classes holds for the data too.
  const uint64_t said_classes = flags.classes.value_or(names_model ? config.model.classes : 0);
  std::optional<Preprocess> preprocess = config.preprocess;
  if (!preprocess && model.preprocess_error.empty()) preprocess = model.preprocess;
  setup.data = open_dataset(flags.data, Split::train, pictures_for(model.config, preprocess, said_classes));
  WantedClasses wanted{.count = said_classes ? said_classes : setup.data->classes(),
                       .names = setup.data->class_names()};

  ViTConfig fitted = model.config;
  fitted.classes = wanted.count;
  if (names_model) {
    fitted = config.model;
    fitted.classes = wanted.count;
    fitted.image_height = model.config.image_height;
    fitted.image_width = model.config.image_width;
    config.model = fitted;
  } else if (!flags.config.empty()) {
    config = train_config_of(json, flags.config, &fitted);
  } else {
    config = fine_tuning_recipe(flags.train.value_or("all"), flags.batch_size.value_or(fine_tuning_batch));
    config.model = fitted;
  }
  if (!config.preprocess) {
    config.preprocess = preprocess;
  } else if (config.preprocess != preprocess) {
    setup.data =
        open_dataset(flags.data, Split::train, pictures_for(model.config, config.preprocess, said_classes));
  }
  if (!config.class_names.empty()) wanted.names = config.class_names;
  if (!wanted.names.empty() && wanted.names.size() != wanted.count) {
    throw Error(ErrorCode::usage, "--classes: found " + std::to_string(wanted.count) +
                                      " classes and names for " + std::to_string(wanted.names.size()) +
                                      ", expected a name each or none");
  }
  std::ranges::for_each(model.untrained, warn);
  HeadInit head_init = config.head_init;
  if (flags.head_init) head_init = *flags.head_init == "zero" ? HeadInit::zero : HeadInit::normal;
  const std::string adapter_base = model.adapter_base;
  setup.start = start_model(std::move(model), wanted, head_init, flags.seed.value_or(config.seed));
  if (!names_model) config.model = setup.start->config;
  if (const Naming& naming = setup.start->naming; naming.family) {
    config.lora.family = naming.family->name;
    config.lora.prefix = naming.prefix;
  }
  if (!config.lora.head) config.lora.head = !setup.start->new_parameters.empty();
  apply_flags(config, flags, common);
  if (trains_low_rank(config) && !adapter_base.empty()) {
    throw Error(ErrorCode::usage,
                "--train: found lora, and " + shown(flags.model) +
                    " is an adapter itself, expected a model, which vitrine merge makes of it");
  }
  if (!trains_low_rank(config)) config.lora = {};
  const std::string origin = flags.config.empty() ? "--model " + shown(flags.model) : flags.config;
  require_same_model(*setup.start, config.model, origin);
  config.validate(origin);
  require_no_other_settings(config, flags.out);

  const std::vector<Parameter> trained = trained_parameters(config);
  for (const std::string& name : setup.start->new_parameters) {
    if (std::ranges::find(trained, name, &Parameter::name) != trained.end()) continue;
    if (trains_low_rank(config)) {
      throw Error(ErrorCode::usage, origin + ": lora.head is false, which leaves the new " + name +
                                        " as it is drawn, expected true");
    }
    throw Error(ErrorCode::usage, "--train: found " + in_quotes(config.train) + ", which leaves the new " +
                                      name + " as it is drawn, expected it among what is trained: " +
                                      in_quotes(config.train + ",head*"));
  }
  return setup;
}

}  // namespace

void add_train_options(CLI::App& command, TrainFlags& flags) {
  command
      .add_option(
          "--data", flags.data,
          "Folder with MNIST's or CIFAR-10's files, train/CLASS/picture.jpg, train-*.tar, train-*.parquet or "
          "train.csv")
      ->required();
  command.add_option(
      "--config", flags.config,
      "JSON: the model, the optimiser and how long. Without it what suits teaching --model other "
      "classes");
  command.add_option("--out", flags.out, "Folder for checkpoints and the trained model")->required();
  command.add_option(
      "--model", flags.model,
      "Begin with this model instead of random weights: a folder, a .safetensors file, or a name in "
      "Hugging Face's cache");
  command.add_option("--train", flags.train,
                     "What is trained: all, head, last:N (blocks), lora[:RANK] beside the model, or names "
                     "with * and ?, with "
                     "commas between them");
  command.add_option("--image-size", flags.image_size,
                     "Images of N or HxW pixels instead of the model's own; learned positions are resampled");
  command.add_option("--classes", flags.classes, "How many there are, where it is more than the data shows")
      ->check(CLI::Range(uint64_t{2}, uint64_t{4'000'000}));
  command.add_option("--head-init", flags.head_init, "What a new head begins with: zero or normal")
      ->check(CLI::IsMember({"zero", "normal"}));
  command.add_option("--set", flags.set, "Overrides a field of the configuration's model: KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--epochs", flags.epochs, "Instead of the configuration's");
  command.add_option("--batch-size", flags.batch_size, "Instead of the configuration's");
  command.add_option("--lr", flags.lr, "Learning rate, instead of the configuration's");
  command.add_option("--weight-decay", flags.weight_decay, "Instead of the configuration's");
  command.add_option("--warmup-epochs", flags.warmup_epochs,
                     "Epochs in which the learning rate rises, instead of the configuration's");
  command.add_option("--layer-decay", flags.layer_decay,
                     "Each layer's learning rate is this times that of the one behind it, instead of the "
                     "configuration's");
  command.add_option("--ema-decay", flags.ema_decay,
                     "Test and save an average of the weights that keeps this much of itself at each update");
  command.add_option("--label-smoothing", flags.label_smoothing, "Instead of the configuration's");
  command
      .add_option(
          "--precision", flags.precision,
          "Of the blocks' products: f32, or f16 with sums in f32; goes before --dtype, which says the same")
      ->check([](const std::string& text) {
        return text == "bf16" ? "found bf16, expected " + std::string(no_bf16) : std::string();
      })
      ->check(CLI::IsMember({"f32", "f16"}));
  command.add_flag("--flip,!--no-flip", flags.flip, "Mirror half of the training pictures, or none");
  command.add_flag(
      "--resized-crop,!--no-resized-crop", flags.resized_crop,
      "Train on random rectangles of the pictures, resized to the model's size, or on whole ones");
  command.add_option(
      "--rand-augment", flags.rand_augment,
      "Change the training pictures by timm's RandAugment, as rand-m9-mstd0.5-inc1 says, or none");
  command.add_flag("--trivial-augment,!--no-trivial-augment", flags.trivial_augment,
                   "Change each training picture by one of torchvision's TrivialAugmentWide, or not");
  command
      .add_option("--color-jitter", flags.color_jitter,
                  "Change brightness, contrast and saturation of the training pictures by up to this part")
      ->check(CLI::NonNegativeNumber);
  command.add_option(
      "--devices", flags.devices,
      "Share each batch among these, numbers or names with commas between them, as --device has "
      "them; their number changes nothing of what comes out");
  command
      .add_option(
          "--parts", flags.parts,
          "Cut each batch into so many parts, whose gradients are added up; left out: as many as a step "
          "needs to fit the device, and with --devices at least 4 an update")
      ->check(CLI::Range(uint64_t{1}, uint64_t{65'536}));
  command.add_flag("--resume", flags.resume, "Go on from the checkpoint in --out, if there is one");
  command.add_flag("--recompute", flags.recompute,
                   "Compute each block's values again instead of keeping them: less memory, more time");
  command
      .add_option("--checkpoint-seconds", flags.checkpoint_seconds,
                  "How often to save, besides at every epoch's end")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option(
      "--validate-every", flags.validate_every,
      "epoch, or a number of updates: how often it is tested on the validation part, and its best "
      "model kept; instead of the configuration's");
  command.add_option("--patience", flags.patience,
                     "Ends after so many validations without a better one; 0: never");
  command.add_flag("--tensorboard", flags.tensorboard, "Writes TensorBoard's events besides --out's log.csv");
  command.add_option("--keep", flags.keep,
                     "Checkpoints to keep: with more than 1 those of the last epochs' ends, too");
  command.add_option("--variant", flags.variants,
                     "Kernels to use: operator=kernel, with commas between them");
  command.add_option("--fuse", flags.fusions, "Rules of fusion: all, none, or some with commas between them")
      ->capture_default_str();
  add_layouts_flag(command, flags.layouts);
  command.add_flag("--json", "As it is anyway: a JSON object a line, for each epoch and for the test part");
}

TrainSetup read_train_setup(const TrainFlags& flags, const CommonOptions& common) {
  if (flags.config.empty() && flags.model.empty()) {
    throw Error(
        ErrorCode::usage,
        "found neither --config nor --model, expected a configuration to train by, a model to begin with, "
        "or both");
  }
  require_free(flags);
  TrainSetup setup = flags.model.empty() ? from_nothing(flags, common) : from_model(flags, common);
  DatasetOptions options = dataset_options(setup.config);
  if (setup.config.validate_every > 0) {
    setup.validation = open_dataset(flags.data, Split::validation, options);
  }
  options.kept_bytes = 0;  // it is read once
  setup.test = open_dataset(flags.data, Split::test, options);
  return setup;
}

std::string trained_text(const TrainConfig& config) {
  const std::vector<Parameter> trained = trained_parameters(config);
  uint64_t numbers = 0, others = 0;
  for (const Parameter& parameter : trained) numbers += parameter.shape.elements();
  for (const Parameter& parameter : parameters_of(config.model)) {
    const bool is_trained = std::ranges::find(trained, parameter.name, &Parameter::name) != trained.end();
    if (parameter.learned() && !is_trained) others += parameter.shape.elements();
  }
  std::string text =
      "trains " + counted(trained.size(), "tensor") + " of " + std::to_string(numbers) + " numbers";
  if (others > 0) text += "; the other " + std::to_string(others) + " stay as they are";
  return text;
}

}  // namespace vitrine::cli

#include "train/requests/train_request.h"

#include <algorithm>
#include <filesystem>

#include "model/files/model_pictures.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"
#include "train/data/augmentation_config.h"
#include "train/lora.h"
#include "train/parameter_layout.h"
#include "train/run/run_folder.h"
#include "train/run/run_settings.h"
#include "train/run/training_run.h"
#include "train/trained_parameters.h"

namespace vitrine {
namespace {

constexpr uint64_t fine_tuning_batch = 32;

template <typename T>
void assign(T& field, const std::optional<T>& value) {
  if (value) field = *value;
}

// What was asked for goes before what the configuration says.
void apply(TrainConfig& config, const TrainRequest& request) {
  for (const std::string& assignment : request.set) set_field(config.model, assignment);
  assign(config.epochs, request.epochs);
  assign(config.batch_size, request.batch_size);
  assign(config.lr, request.lr);
  assign(config.seed, request.seed);
  assign(config.weight_decay, request.weight_decay);
  if (request.warmup_epochs) {
    config.recipe.warmup_epochs = *request.warmup_epochs;
    config.warmup_steps = 0;
  }
  assign(config.label_smoothing, request.label_smoothing);
  assign(config.layer_decay, request.layer_decay);
  assign(config.ema_decay, request.ema_decay);
  assign(config.flip, request.flip);
  if (request.resized_crop && !*request.resized_crop) config.random_resized_crop.reset();
  if (request.resized_crop && *request.resized_crop && !config.random_resized_crop)
    config.random_resized_crop.emplace();
  if (request.rand_augment) {
    config.augmentation.rand_augment.reset();
    if (*request.rand_augment != "none")
      config.augmentation.rand_augment =
          rand_augment_named(*request.rand_augment, "--rand-augment", ErrorCode::usage);
  }
  assign(config.augmentation.trivial_augment, request.trivial_augment);
  if (request.color_jitter) {
    config.augmentation.color_jitter.reset();
    if (*request.color_jitter > 0) config.augmentation.color_jitter = color_jitter_of(*request.color_jitter);
  }
  assign(config.train, request.train);
  take_rank(config, "--train", ErrorCode::usage);
  if (request.head_init) config.head_init = *request.head_init == "zero" ? HeadInit::zero : HeadInit::normal;
  if (request.precision) config.precision = *request.precision == "f16" ? Precision::f16 : Precision::f32;
  assign(config.validate_every, request.validate_every);
  assign(config.patience, request.patience);
  assign(config.keep, request.keep);
  assign(config.parts, request.parts);
  if (request.tensorboard) config.tensorboard = true;
  if (request.train) trained_parameters(config, "--train", ErrorCode::usage);
}

// Before anything else is read: a folder that mustn't be written to.
void require_free(const TrainRequest& request) {
  const std::filesystem::path out = request.out;
  if (!request.resume && path_exists(checkpoint_in(out), ErrorCode::failed)) {
    throw Error(ErrorCode::usage, shown(request.out) +
                                      " holds a training already, expected another --out, or "
                                      "--resume to go on with it");
  }
  std::error_code none;
  const std::filesystem::path of_model =
      request.model.empty() ? std::filesystem::path() : std::filesystem::path(request.model) / "config.json";
  const std::filesystem::path of_training = request.settings ? "" : request.config;
  for (const std::filesystem::path& file : {of_training, of_model}) {
    if (std::filesystem::equivalent(file, out / "config.json", none)) {
      throw Error(ErrorCode::usage, shown(file) +
                                        " would be overwritten by the trained model's config.json, expected "
                                        "another --out");
    }
  }
}

nlohmann::json settings_of(const TrainRequest& request) {
  return request.settings ? *request.settings : read_json(request.config);
}

// A training that begins with random weights.
TrainSetup from_nothing(const TrainRequest& request) {
  TrainSetup setup{.config = train_config_of(settings_of(request), request.config)};
  TrainConfig& config = setup.config;
  if (request.image_height) {
    config.model.image_height = request.image_height;
    config.model.image_width = request.image_width;
  }
  assign(config.model.classes, request.classes);
  apply(config, request);
  if (trains_low_rank(config)) {
    throw Error(ErrorCode::usage,
                "--train: found lora without --model, expected a model to begin with: all of "
                "it stays as it is");
  }
  config.validate(request.config);
  require_no_other_settings(config, request.out);
  setup.data = open_dataset(request.data, Split::train, dataset_options(config));
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
TrainSetup from_model(const TrainRequest& request, const Warn& warn) {
  TrainSetup setup;
  TrainConfig& config = setup.config;
  nlohmann::json json;
  bool names_model = false;
  if (!request.config.empty()) {
    json = settings_of(request);
    names_model = json.is_object() && json.contains("model");
    if (names_model) {
      nlohmann::json first = json;
      // Names of layers are the model's own, which isn't open yet.
      if (names_layers(first)) first["lora"].erase("targets");
      config = train_config_of(first, request.config);
    }
  }
  uint64_t height = request.image_height, width = request.image_width;
  if (names_model && !height) {
    height = config.model.image_height;
    width = config.model.image_width;
  }
  Model model = open_model({.model = request.model,
                            .seed = request.seed.value_or(0),
                            .image_height = height,
                            .image_width = width},
                           warn);
  if (names_layers(json) && model.naming.family) {
    json["lora"].update({{"family", model.naming.family->name}, {"prefix", model.naming.prefix}});
    if (names_model) config = train_config_of(json, request.config);
  }
  // What the configuration says of classes holds for the data too.
  const uint64_t said_classes = request.classes.value_or(names_model ? config.model.classes : 0);
  std::optional<Preprocess> preprocess = config.preprocess;
  if (!preprocess && model.preprocess_error.empty()) preprocess = stretched_pictures(model, warn);
  setup.data = open_dataset(request.data, Split::train, pictures_for(model.config, preprocess, said_classes));
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
  } else if (!request.config.empty()) {
    config = train_config_of(json, request.config, &fitted);
  } else {
    config =
        fine_tuning_recipe(request.train.value_or("all"), request.batch_size.value_or(fine_tuning_batch));
    config.model = fitted;
  }
  if (!config.preprocess) {
    config.preprocess = preprocess;
  } else if (config.preprocess != preprocess) {
    setup.data =
        open_dataset(request.data, Split::train, pictures_for(model.config, config.preprocess, said_classes));
  }
  if (!config.class_names.empty()) wanted.names = config.class_names;
  if (!wanted.names.empty() && wanted.names.size() != wanted.count) {
    throw Error(ErrorCode::usage, "--classes: found " + std::to_string(wanted.count) +
                                      " classes and names for " + std::to_string(wanted.names.size()) +
                                      ", expected a name each or none");
  }
  std::ranges::for_each(model.untrained, warn);
  HeadInit head_init = config.head_init;
  if (request.head_init) head_init = *request.head_init == "zero" ? HeadInit::zero : HeadInit::normal;
  const std::string adapter_base = model.adapter_base;
  setup.start = start_model(std::move(model), wanted, head_init, request.seed.value_or(config.seed));
  if (!names_model) config.model = setup.start->config;
  if (const Naming& naming = setup.start->naming; naming.family) {
    config.lora.family = naming.family->name;
    config.lora.prefix = naming.prefix;
  }
  if (!config.lora.head) config.lora.head = !setup.start->new_parameters.empty();
  apply(config, request);
  if (trains_low_rank(config) && !adapter_base.empty()) {
    throw Error(ErrorCode::usage,
                "--train: found lora, and " + shown(request.model) +
                    " is an adapter itself, expected a model, which vitrine merge makes of it");
  }
  if (!trains_low_rank(config)) config.lora = {};
  const std::string origin = request.config.empty() ? "--model " + shown(request.model) : request.config;
  require_same_model(*setup.start, config.model, origin);
  config.validate(origin);
  require_no_other_settings(config, request.out);

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

TrainSetup read_train_setup(const TrainRequest& request, const Warn& warn) {
  if (request.config.empty() && request.model.empty()) {
    throw Error(
        ErrorCode::usage,
        "found neither --config nor --model, expected a configuration to train by, a model to begin with, "
        "or both");
  }
  require_free(request);
  TrainSetup setup = request.model.empty() ? from_nothing(request) : from_model(request, warn);
  DatasetOptions options = dataset_options(setup.config);
  if (setup.config.validate_every > 0) {
    setup.validation = open_dataset(request.data, Split::validation, options);
  }
  options.kept_bytes = 0;  // it is read once
  setup.test = open_dataset(request.data, Split::test, options);
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

}  // namespace vitrine

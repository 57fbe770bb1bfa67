#include "train/train_config.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <utility>

#include "model/files/json_names.h"
#include "model/files/json_object.h"
#include "model/files/preprocess_files.h"
#include "runtime/util/json.h"
#include "train/data/augmentation_config.h"
#include "train/lora.h"
#include "train/trained_parameters.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<Optimizer, std::string_view>, 3> optimizer_names{
    {{Optimizer::sgd, "sgd"}, {Optimizer::adam, "adam"}, {Optimizer::adamw, "adamw"}}};
constexpr std::array<std::pair<Schedule, std::string_view>, 2> schedule_names{
    {{Schedule::constant, "constant"}, {Schedule::cosine, "cosine"}}};
constexpr std::array<std::pair<Precision, std::string_view>, 2> precision_names{
    {{Precision::f32, "f32"}, {Precision::f16, "f16"}}};
constexpr std::array<std::pair<HeadInit, std::string_view>, 2> head_init_names{
    {{HeadInit::zero, "zero"}, {HeadInit::normal, "normal"}}};

void read_channels(const JsonObject& object, const char* key, std::vector<double>& values) {
  const Json* json = object.find(key);
  if (!json) return;
  values.clear();
  if (json->is_array()) {
    for (const Json& value : *json) {
      if (value.is_number()) values.push_back(value.get<double>());
    }
  }
  if (!json->is_array() || values.size() != json->size())
    object.fail(key, *json, "a list of numbers, one a channel");
}

void read_range(const JsonObject& object, const char* key, double& low, double& high) {
  const Json* range = object.find(key);
  if (!range) return;
  if (!range->is_array() || range->size() != 2 || !(*range)[0].is_number() || !(*range)[1].is_number())
    object.fail(key, *range, "two numbers, the lowest and the highest");
  low = (*range)[0].get<double>();
  high = (*range)[1].get<double>();
}

RandomResizedCrop read_resized_crop(const Json& json, const std::string& origin) {
  RandomResizedCrop crop;
  const JsonObject object(json, origin);
  check_keys(object, json, {"scale", "ratio", "interpolation"});
  read_range(object, "scale", crop.scale_low, crop.scale_high);
  read_range(object, "ratio", crop.ratio_low, crop.ratio_high);
  if (const auto name = object.text("interpolation")) {
    const auto filter = filter_named(*name);
    if (!filter)
      object.fail("interpolation", Json(*name), "nearest, box, bilinear, hamming, bicubic or lanczos");
    crop.filter = *filter;
  }
  return crop;
}

void read_class_names(const JsonObject& object, std::vector<std::string>& names) {
  const Json* json = object.find("class_names");
  if (!json) return;
  names.clear();
  if (json->is_array()) {
    for (const Json& name : *json) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
  }
  if (!json->is_array() || names.size() != json->size()) {
    object.fail("class_names", *json, "a list of names, one a class");
  }
}

void read_validate_every(const JsonObject& object, uint64_t& value) {
  const Json* json = object.find("validate_every");
  if (!json) return;
  if (json->is_number_unsigned()) {
    value = json->get<uint64_t>();
  } else if (json->is_string() && json->get<std::string>() == "epoch") {
    value = TrainConfig::every_epoch;
  } else {
    object.fail("validate_every", *json, "\"epoch\" or a number of updates");
  }
}

void read_model(const Json& fields, ViTConfig& model, const std::string& origin) {
  const JsonObject object(fields, origin + " (model)");
  for (const auto& [key, value] : fields.items()) {
    if (!value.is_primitive()) object.fail(key.c_str(), value, "a number, a word, true or false");
    set_field(model, key, value.is_string() ? value.get<std::string>() : value.dump(), origin,
              ErrorCode::bad_file);
  }
}

}  // namespace

std::string_view name_of(Optimizer optimizer) { return name_among(optimizer_names, optimizer); }
std::string_view name_of(Schedule schedule) { return name_among(schedule_names, schedule); }
std::string_view name_of(Precision precision) { return name_among(precision_names, precision); }
std::string_view name_of(HeadInit init) { return name_among(head_init_names, init); }

TrainConfig train_config_of(const Json& json, const std::string& origin, const ViTConfig* model) {
  const JsonObject object(json, origin);
  std::vector<std::string_view> known{"model",
                                      "data",
                                      "optimizer",
                                      "lr",
                                      "momentum",
                                      "beta1",
                                      "beta2",
                                      "eps",
                                      "weight_decay",
                                      "clip_norm",
                                      "label_smoothing",
                                      "epochs",
                                      "batch_size",
                                      "accumulation",
                                      "schedule",
                                      "warmup_steps",
                                      "min_lr",
                                      "seed",
                                      "precision",
                                      "train",
                                      "lora",
                                      "head_init",
                                      "layer_decay",
                                      "ema_decay",
                                      "max_skipped_steps",
                                      "validate_every",
                                      "patience",
                                      "keep",
                                      "tensorboard"};
  known.emplace_back("parts");
  known.insert(known.end(), recipe_fields.begin(), recipe_fields.end());
  check_keys(object, json, known);
  TrainConfig c;
  const Json* fields = object.find("model");
  if (fields) {
    read_model(*fields, c.model, origin);
  } else if (model) {
    c.model = *model;
  } else {
    throw Error(ErrorCode::bad_file, origin + ": there is no \"model\", expected an object of its fields");
  }
  if (const Json* json_data = object.find("data")) {
    const JsonObject data(*json_data, origin + " (data)");
    std::vector<std::string_view> known_data{"mean",         "std",  "preprocess",         "class_names",
                                             "crop_padding", "flip", "random_resized_crop"};
    known_data.insert(known_data.end(), picture_augmentation_fields.begin(),
                      picture_augmentation_fields.end());
    check_keys(data, *json_data, known_data);
    read_class_names(data, c.class_names);
    read_channels(data, "mean", c.mean);
    read_channels(data, "std", c.std);
    if (const Json* preprocess = data.find("preprocess"))
      c.preprocess = preprocess_of(*preprocess, {}, origin + " (data.preprocess)");
    assign(c.crop_padding, data.whole("crop_padding"));
    assign(c.flip, data.flag("flip"));
    if (const Json* crop = data.find("random_resized_crop"))
      c.random_resized_crop = read_resized_crop(*crop, origin + " (data.random_resized_crop)");
    c.augmentation = read_picture_augmentation(data);
  }
  read_name(object, "optimizer", optimizer_names, c.optimizer);
  assign(c.lr, object.number("lr"));
  assign(c.momentum, object.number("momentum"));
  assign(c.beta1, object.number("beta1"));
  assign(c.beta2, object.number("beta2"));
  assign(c.eps, object.number("eps"));
  assign(c.weight_decay, object.number("weight_decay"));
  assign(c.clip_norm, object.number("clip_norm"));
  assign(c.label_smoothing, object.number("label_smoothing"));
  assign(c.epochs, object.whole("epochs"));
  assign(c.batch_size, object.whole("batch_size"));
  assign(c.accumulation, object.whole("accumulation"));
  assign(c.parts, object.whole("parts"));
  read_name(object, "schedule", schedule_names, c.schedule);
  assign(c.warmup_steps, object.whole("warmup_steps"));
  assign(c.min_lr, object.number("min_lr"));
  assign(c.seed, object.whole("seed"));
  if (object.text("precision") == "bf16") object.fail("precision", Json("bf16"), std::string(no_bf16));
  read_name(object, "precision", precision_names, c.precision);
  assign(c.max_skipped_steps, object.whole("max_skipped_steps"));
  read_validate_every(object, c.validate_every);
  assign(c.patience, object.whole("patience"));
  assign(c.keep, object.whole("keep"));
  assign(c.tensorboard, object.flag("tensorboard"));
  assign(c.train, object.text("train"));
  c.lora = read_lora(object);
  take_rank(c, origin + ": train", ErrorCode::bad_file);
  read_name(object, "head_init", head_init_names, c.head_init);
  assign(c.layer_decay, object.number("layer_decay"));
  assign(c.ema_decay, object.number("ema_decay"));
  c.recipe = read_recipe(object);
  c.validate(origin);
  return c;
}

TrainConfig read_train_config(const std::filesystem::path& file) {
  return train_config_of(read_json(file), file.string());
}

nlohmann::ordered_json to_json(const ViTConfig& config) {
  nlohmann::ordered_json json;
  for (const auto& [key, value] : fields_of(config)) {
    // Numbers, true and false are JSON's as they are; the rest are words.
    const auto plain = nlohmann::ordered_json::parse(value, nullptr, false);
    json[key] = plain.is_discarded() ? nlohmann::ordered_json(value) : plain;
  }
  return json;
}

nlohmann::ordered_json to_json(const TrainConfig& c) {
  nlohmann::ordered_json json;
  json["model"] = to_json(c.model);
  json["data"] = {{"mean", c.mean},
                  {"std", c.std},
                  {"class_names", c.class_names},
                  {"crop_padding", c.crop_padding},
                  {"flip", c.flip}};
  if (c.preprocess) json["data"]["preprocess"] = to_json(*c.preprocess);
  if (const auto& crop = c.random_resized_crop) {
    json["data"]["random_resized_crop"] = {{"scale", {crop->scale_low, crop->scale_high}},
                                           {"ratio", {crop->ratio_low, crop->ratio_high}},
                                           {"interpolation", name_of(crop->filter)}};
  }
  write_picture_augmentation(c.augmentation, json["data"]);
  json["optimizer"] = name_of(c.optimizer);
  json["lr"] = c.lr;
  json["momentum"] = c.momentum;
  json["beta1"] = c.beta1;
  json["beta2"] = c.beta2;
  json["eps"] = c.eps;
  json["weight_decay"] = c.weight_decay;
  json["clip_norm"] = c.clip_norm;
  json["label_smoothing"] = c.label_smoothing;
  json["epochs"] = c.epochs;
  json["batch_size"] = c.batch_size;
  json["accumulation"] = c.accumulation;
  json["schedule"] = name_of(c.schedule);
  json["warmup_steps"] = c.warmup_steps;
  json["min_lr"] = c.min_lr;
  json["seed"] = c.seed;
  json["precision"] = name_of(c.precision);
  json["max_skipped_steps"] = c.max_skipped_steps;
  if (c.validate_every == TrainConfig::every_epoch) {
    json["validate_every"] = "epoch";
  } else {
    json["validate_every"] = c.validate_every;
  }
  json["patience"] = c.patience;
  json["keep"] = c.keep;
  json["tensorboard"] = c.tensorboard;
  const TrainConfig usual;
  const auto add_unless_usual = [&](const char* key, const auto& value, const auto& by_default) {
    if (value != by_default) json[key] = value;
  };
  // A batch that is whole is what there was before it could be cut.
  if (c.parts > 1) json["parts"] = c.parts;
  add_unless_usual("train", c.train, usual.train);
  if (trains_low_rank(c)) json["lora"] = to_json(c.lora);
  add_unless_usual("head_init", name_of(c.head_init), name_of(usual.head_init));
  add_unless_usual("layer_decay", c.layer_decay, usual.layer_decay);
  add_unless_usual("ema_decay", c.ema_decay, usual.ema_decay);
  write_recipe(c.recipe, json);
  return json;
}

void TrainConfig::validate(const std::string& origin) const {
  model.validate(origin);
  const auto require = [&](bool good, const char* field, const std::string& found, const char* expected) {
    if (!good)
      throw Error(ErrorCode::bad_file, origin + ": " + field + " is " + found + ", expected " + expected);
  };
  const auto number = [&](const char* field, double value, double least, double end, const char* expected) {
    require(value >= least && value < end, field, std::to_string(value), expected);
  };
  const auto channels = [&](const char* field, const std::vector<double>& values) {
    require(values.empty() || values.size() == model.channels, field,
            std::to_string(values.size()) + " numbers", "one a channel");
    for (const double value : values) require(std::isfinite(value), field, "not finite", "numbers");
  };
  channels("mean", mean);
  channels("std", std);
  for (const double value : std) require(value > 0, "std", std::to_string(value), "numbers above 0");
  if (const auto& crop = random_resized_crop) {
    const auto ordered = [&](const char* field, double low, double high, double most) {
      require(low > 0 && low <= high && high <= most, field,
              std::to_string(low) + " to " + std::to_string(high), "numbers above 0 that rise");
    };
    ordered("data.random_resized_crop.scale", crop->scale_low, crop->scale_high, 1);
    ordered("data.random_resized_crop.ratio", crop->ratio_low, crop->ratio_high, 100);
    require(crop_padding == 0, "crop_padding", std::to_string(crop_padding),
            "0 beside random_resized_crop, as there is one crop");
  }
  validate_picture_augmentation(augmentation, model.channels, model.image_height, model.image_width, origin);
  if (preprocess) {
    preprocess->validate(origin + " (data.preprocess)");
    require(!preprocess->kept_shape, "data.preprocess", "for pictures that keep their shape",
            "one size for all");
    require(preprocess->height() == model.image_height && preprocess->width() == model.image_width,
            "data.preprocess", "for pictures of other sides", "the model's");
  }
  require(class_names.empty() || class_names.size() == model.classes, "class_names",
          std::to_string(class_names.size()) + " names", "one a class");
  constexpr double much = 1e30;
  number("lr", lr, 0, much, "0 or more");
  number("momentum", momentum, 0, 1, "a number from 0 to 1");
  number("beta1", beta1, 0, 1, "a number from 0 to 1");
  number("beta2", beta2, 0, 1, "a number from 0 to 1");
  number("eps", eps, 0, much, "0 or more");
  number("weight_decay", weight_decay, 0, much, "0 or more");
  number("clip_norm", clip_norm, 0, much, "0 or more");
  number("label_smoothing", label_smoothing, 0, 1, "a number from 0 to 1");
  number("min_lr", min_lr, 0, much, "0 or more");
  const auto count = [&](const char* field, uint64_t value, uint64_t most) {
    require(value >= 1 && value <= most, field, std::to_string(value), "at least 1, and a sensible number");
  };
  count("epochs", epochs, 1'000'000);
  count("batch_size", batch_size, 65'536);
  count("accumulation", accumulation, 65'536);
  require(parts <= batch_size, "parts", std::to_string(parts), "at most as many as a batch has samples");
  count("max_skipped_steps", max_skipped_steps, 1'000'000'000);
  count("keep", keep, 1'000'000);
  require(patience == 0 || validate_every != 0, "patience", std::to_string(patience),
          "0 where validate_every is 0: nothing says whether it gets better");
  number("ema_decay", ema_decay, 0, 1, "at least 0 and less than 1");
  require(layer_decay > 0 && layer_decay <= 1, "layer_decay", std::to_string(layer_decay),
          "more than 0, and at most 1");
  require(crop_padding < std::min(model.image_height, model.image_width), "crop_padding",
          std::to_string(crop_padding), "less than the image's sides");
  validate_recipe(recipe, origin);
  require(recipe.warmup_epochs == 0 || warmup_steps == 0, "warmup_epochs",
          std::to_string(recipe.warmup_epochs) + " and warmup_steps " + std::to_string(warmup_steps),
          "one of the two");
  const bool logits = recipe.loss == Loss::bce || recipe.distillation.on();
  require(!logits || !model.softmax_output, "softmax_output", "true",
          "false: bce and distillation are of logits");
  require(model.classes >= 2, "classes", std::to_string(model.classes), "2 or more, to train a classifier");
  trained_parameters(*this, origin + ": train", ErrorCode::bad_file);
}

Preprocess preprocessing_of(const TrainConfig& config) {
  const auto or_else = [](const std::vector<double>& given, const std::vector<double>& otherwise) {
    return given.empty() ? otherwise : given;
  };
  Preprocess p = config.preprocess
                     ? *config.preprocess
                     : cover_and_crop(config.model.image_height, config.model.image_width, {0}, {1});
  if (config.mean.empty() && config.std.empty()) return p;
  p.mean = or_else(config.mean, p.normalize ? p.mean : std::vector<double>{0});
  p.std = or_else(config.std, p.normalize ? p.std : std::vector<double>{1});
  p.normalize = true;
  return p;
}

double learning_rate(const TrainConfig& config, uint64_t step, uint64_t total) {
  const Recipe& recipe = config.recipe;
  const bool by_epochs = recipe.schedule_by == ScheduleBy::epochs;
  // How many updates make an epoch, and what is counted: updates, or whole epochs.
  const double epoch = static_cast<double>(total) / static_cast<double>(config.epochs);
  const double unit = by_epochs ? epoch : 1, all = static_cast<double>(total) / unit;
  const double at =
      by_epochs ? std::floor((static_cast<double>(step) + 0.5) / epoch) : static_cast<double>(step);
  const double warmup = recipe.warmup_epochs > 0 ? std::round(recipe.warmup_epochs * epoch / unit)
                                                 : static_cast<double>(config.warmup_steps) / unit;
  if (at < warmup) {
    // Without a rate to begin at, the first update is one part of the way up already.
    if (recipe.warmup_lr == 0) return config.lr * std::min(at + 1, warmup) / warmup;
    return recipe.warmup_lr + (config.lr - recipe.warmup_lr) * at / warmup;
  }
  if (config.schedule == Schedule::constant || all <= warmup) return config.lr;
  const double done = (at - warmup) / (all - warmup);
  return config.min_lr + (config.lr - config.min_lr) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace vitrine

#include "train/recipes/recipe.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/files/json_names.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;
template <typename Enum, size_t n>
using Names = std::array<std::pair<Enum, std::string_view>, n>;

constexpr Names<Loss, 2> loss_names{{{Loss::cross_entropy, "cross_entropy"}, {Loss::bce, "bce"}}};
constexpr Names<MixMode, 3> mix_mode_names{
    {{MixMode::batch, "batch"}, {MixMode::pair, "pair"}, {MixMode::elem, "elem"}}};
constexpr Names<ErasingMode, 3> erasing_mode_names{
    {{ErasingMode::constant, "const"}, {ErasingMode::rand, "rand"}, {ErasingMode::pixel, "pixel"}}};
constexpr Names<DistillationKind, 2> distillation_names{
    {{DistillationKind::hard, "hard"}, {DistillationKind::soft, "soft"}}};
constexpr Names<ScheduleBy, 2> schedule_by_names{
    {{ScheduleBy::updates, "updates"}, {ScheduleBy::epochs, "epochs"}}};
constexpr Names<Sampling, 2> sampling_names{{{Sampling::all, "all"}, {Sampling::balanced, "balanced"}}};

using Keys = std::initializer_list<std::string_view>;

// A member that is an object with these keys; nothing where it isn't there.
std::optional<JsonObject> part_of(const JsonObject& object, const char* key, Keys keys) {
  auto part = object.object(key);
  if (part) check_keys(*part, *object.find(key), keys);
  return part;
}

Mixup read_mixup(const JsonObject& object) {
  Mixup m;
  const auto part = part_of(object, "mixup",
                            {"mixup_alpha", "cutmix_alpha", "cutmix_minmax", "prob", "switch_prob", "mode"});
  if (!part) return m;
  assign(m.mixup_alpha, part->number("mixup_alpha"));
  assign(m.cutmix_alpha, part->number("cutmix_alpha"));
  if (const Json* minmax = part->find("cutmix_minmax")) {
    if (!minmax->is_array() || minmax->size() != 2 || !(*minmax)[0].is_number() || !(*minmax)[1].is_number())
      part->fail("cutmix_minmax", *minmax, "two numbers");
    m.cutmix_minmax = {(*minmax)[0].get<double>(), (*minmax)[1].get<double>()};
  }
  assign(m.prob, part->number("prob"));
  assign(m.switch_prob, part->number("switch_prob"));
  read_name(*part, "mode", mix_mode_names, m.mode);
  return m;
}

RandomErasing read_erasing(const JsonObject& object) {
  RandomErasing e;
  const auto part = part_of(
      object, "random_erasing",
      {"probability", "mode", "min_area", "max_area", "min_aspect", "max_aspect", "min_count", "max_count"});
  if (!part) return e;
  assign(e.probability, part->number("probability"));
  read_name(*part, "mode", erasing_mode_names, e.mode);
  assign(e.min_area, part->number("min_area"));
  assign(e.max_area, part->number("max_area"));
  assign(e.min_aspect, part->number("min_aspect"));
  assign(e.max_aspect, part->number("max_aspect"));
  assign(e.min_count, part->whole("min_count"));
  assign(e.max_count, part->whole("max_count"));
  return e;
}

Distillation read_distillation(const JsonObject& object) {
  Distillation d;
  const auto part = part_of(object, "distillation", {"model", "kind", "alpha", "tau", "sum"});
  if (!part) return d;
  assign(d.model, part->text("model"));
  if (!d.on()) part->fail("model", Json(d.model), "a teacher's folder, file or name");
  read_name(*part, "kind", distillation_names, d.kind);
  assign(d.alpha, part->number("alpha"));
  assign(d.tau, part->number("tau"));
  assign(d.sum, part->flag("sum"));
  return d;
}

OrderedJson to_json(const Mixup& m) {
  OrderedJson json{{"mixup_alpha", m.mixup_alpha}, {"cutmix_alpha", m.cutmix_alpha}};
  if (!m.cutmix_minmax.empty()) json["cutmix_minmax"] = m.cutmix_minmax;
  json["prob"] = m.prob;
  json["switch_prob"] = m.switch_prob;
  json["mode"] = name_among(mix_mode_names, m.mode);
  return json;
}

OrderedJson to_json(const RandomErasing& e) {
  return {{"probability", e.probability}, {"mode", name_among(erasing_mode_names, e.mode)},
          {"min_area", e.min_area},       {"max_area", e.max_area},
          {"min_aspect", e.min_aspect},   {"max_aspect", e.max_aspect},
          {"min_count", e.min_count},     {"max_count", e.max_count}};
}

OrderedJson to_json(const Distillation& d) {
  return {{"model", d.model},
          {"kind", name_among(distillation_names, d.kind)},
          {"alpha", d.alpha},
          {"tau", d.tau},
          {"sum", d.sum}};
}

}  // namespace

const std::vector<std::string_view> recipe_fields{
    "loss",         "bce_target_threshold", "bce_sum",   "mixup",       "random_erasing",
    "distillation", "warmup_epochs",        "warmup_lr", "schedule_by", "repeats",
    "sampling"};

Recipe read_recipe(const JsonObject& object) {
  Recipe r;
  read_name(object, "loss", loss_names, r.loss);
  r.bce_target_threshold = object.number("bce_target_threshold");
  assign(r.bce_sum, object.flag("bce_sum"));
  r.mixup = read_mixup(object);
  r.random_erasing = read_erasing(object);
  r.distillation = read_distillation(object);
  assign(r.warmup_epochs, object.number("warmup_epochs"));
  assign(r.warmup_lr, object.number("warmup_lr"));
  read_name(object, "schedule_by", schedule_by_names, r.schedule_by);
  assign(r.repeats, object.whole("repeats"));
  read_name(object, "sampling", sampling_names, r.sampling);
  return r;
}

void write_recipe(const Recipe& r, OrderedJson& json) {
  const Recipe none;
  const auto add = [&](const char* key, const auto& value, const auto& usual, const auto& text) {
    if (!(value == usual)) json[key] = text;
  };
  add("loss", r.loss, none.loss, name_among(loss_names, r.loss));
  if (r.bce_target_threshold) json["bce_target_threshold"] = *r.bce_target_threshold;
  add("bce_sum", r.bce_sum, none.bce_sum, r.bce_sum);
  add("mixup", r.mixup, none.mixup, to_json(r.mixup));
  add("random_erasing", r.random_erasing, none.random_erasing, to_json(r.random_erasing));
  add("distillation", r.distillation, none.distillation, to_json(r.distillation));
  add("warmup_epochs", r.warmup_epochs, none.warmup_epochs, r.warmup_epochs);
  add("warmup_lr", r.warmup_lr, none.warmup_lr, r.warmup_lr);
  add("schedule_by", r.schedule_by, none.schedule_by, name_among(schedule_by_names, r.schedule_by));
  add("repeats", r.repeats, none.repeats, r.repeats);
  add("sampling", r.sampling, none.sampling, name_among(sampling_names, r.sampling));
}

void validate_recipe(const Recipe& r, const std::string& origin) {
  const auto require = [&](bool good, const char* field, const std::string& found, const char* expected) {
    if (!good)
      throw Error(ErrorCode::bad_file, origin + ": " + field + " is " + found + ", expected " + expected);
  };
  const auto number = [&](const char* field, double value, double least, double most, const char* expected) {
    require(value >= least && value <= most, field, std::to_string(value), expected);
  };
  const auto share = [&](const char* field, double value) {
    number(field, value, 0, 1, "a number from 0 to 1");
  };
  constexpr double much = 1e30;

  const Mixup& m = r.mixup;
  // Below 0.001 a draw is 0 or 1 but for one time in a thousand.
  const auto alpha = [&](const char* field, double value) {
    require(value == 0 || (value >= 1e-3 && value <= 1e6), field, std::to_string(value),
            "0, or a number from 0.001 to 1000000");
  };
  alpha("mixup_alpha", m.mixup_alpha);
  alpha("cutmix_alpha", m.cutmix_alpha);
  require(m.cutmix_minmax.empty() || (m.cutmix_minmax.size() == 2 && m.cutmix_minmax[0] >= 0 &&
                                      m.cutmix_minmax[0] < m.cutmix_minmax[1] && m.cutmix_minmax[1] <= 1),
          "cutmix_minmax", "something else", "two rising numbers from 0 to 1");
  share("prob", m.prob);
  share("switch_prob", m.switch_prob);

  const RandomErasing& e = r.random_erasing;
  share("probability", e.probability);
  number("min_area", e.min_area, 0, 1, "a number from 0 to 1");
  number("max_area", e.max_area, e.min_area, 1, "a number from min_area to 1");
  number("min_aspect", e.min_aspect, 1e-3, 1e3, "a number from 0.001 to 1000");
  require(e.max_aspect == 0 || (e.max_aspect >= e.min_aspect && e.max_aspect <= 1e3), "max_aspect",
          std::to_string(e.max_aspect), "0, or a number from min_aspect to 1000");
  require(e.max_aspect != 0 || e.min_aspect <= 1, "min_aspect", std::to_string(e.min_aspect),
          "1 or less where there is no max_aspect");
  require(e.min_count >= 1 && e.min_count <= 64, "min_count", std::to_string(e.min_count), "1 to 64");
  require(e.max_count == 0 || (e.max_count >= e.min_count && e.max_count <= 64), "max_count",
          std::to_string(e.max_count), "0, or min_count to 64");

  const Distillation& d = r.distillation;
  share("alpha", d.alpha);
  number("tau", d.tau, 1e-3, 1e6, "a number from 0.001 to 1000000");

  const bool bce = r.loss == Loss::bce;
  require(bce || !r.bce_target_threshold, "loss", "cross_entropy",
          "bce where there is a bce_target_threshold");
  require(bce || !r.bce_sum, "loss", "cross_entropy", "bce where there is a bce_sum");
  if (r.bce_target_threshold) share("bce_target_threshold", *r.bce_target_threshold);
  number("warmup_epochs", r.warmup_epochs, 0, 1e6, "a number of epochs");
  number("warmup_lr", r.warmup_lr, 0, much, "0 or more");
  require(r.repeats >= 1 && r.repeats <= 1000, "repeats", std::to_string(r.repeats), "1 to 1000");
}

}  // namespace vitrine

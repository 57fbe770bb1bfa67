#include "train/data/augmentation_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/files/json_names.h"
#include "model/files/json_object.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<MoveFilter, std::string_view>, 3> move_filter_names{
    {{MoveFilter::random, "random"}, {MoveFilter::bilinear, "bilinear"}, {MoveFilter::bicubic, "bicubic"}}};
constexpr std::array<std::pair<bool, std::string_view>, 2> transforms_names{
    {{false, "all"}, {true, "weights"}}};

template <typename Number>
Number number_in(const std::string& text, const std::string& section, const std::string& origin,
                 ErrorCode code) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error(code, origin + ": found the part " + in_quotes(section) + ", expected " +
                          (std::is_integral_v<Number> ? "a whole number" : "a number") + " at its end");
  }
  return value;
}

void read_section(RandAugment& rand, const std::string& section, const std::string& origin, ErrorCode code) {
  const size_t digits = section.find_first_of("0123456789");
  const std::string key = section.substr(0, digits),
                    value = digits == std::string::npos ? "" : section.substr(digits);
  if (section == "tweights") {
    rand.weighted = true;
  } else if (key == "m") {
    rand.magnitude = static_cast<double>(number_in<uint64_t>(value, section, origin, code));
  } else if (key == "n") {
    rand.num_layers = number_in<uint64_t>(value, section, origin, code);
  } else if (key == "p") {
    rand.prob = number_in<double>(value, section, origin, code);
  } else if (key == "mstd") {
    rand.magnitude_std = number_in<double>(value, section, origin, code);
  } else if (key == "mmax") {
    rand.magnitude_max = number_in<uint64_t>(value, section, origin, code);
  } else if (key == "inc") {
    rand.increasing = number_in<uint64_t>(value, section, origin, code) != 0;
  } else {
    throw Error(code, origin + ": found the part " + in_quotes(section) +
                          ", expected m, n, p, mstd, mmax or inc with a number behind it, or tweights");
  }
}

RandAugment read_rand_augment(const Json& json, const std::string& origin) {
  if (json.is_string()) return rand_augment_named(json.get<std::string>(), origin, ErrorCode::bad_file);
  RandAugment rand;
  const JsonObject object(json, origin);
  check_keys(object, json,
             {"magnitude", "num_layers", "prob", "magnitude_std", "magnitude_max", "increasing", "transforms",
              "interpolation"});
  assign(rand.magnitude, object.number("magnitude"));
  assign(rand.num_layers, object.whole("num_layers"));
  assign(rand.prob, object.number("prob"));
  assign(rand.magnitude_std, object.number("magnitude_std"));
  assign(rand.magnitude_max, object.whole("magnitude_max"));
  assign(rand.increasing, object.flag("increasing"));
  read_name(object, "transforms", transforms_names, rand.weighted);
  read_name(object, "interpolation", move_filter_names, rand.interpolation);
  return rand;
}

JitterRange factor_range(double strength) { return {std::max(0.0, 1 - strength), 1 + strength}; }
JitterRange hue_range(double strength) { return {-strength, strength}; }

// A strength, or the two ends of a range.
void read_range(const JsonObject& object, const char* key, JitterRange (*range_of)(double),
                JitterRange& range) {
  const Json* json = object.find(key);
  if (!json) return;
  const auto fail = [&] {
    object.fail(key, *json, "a number that isn't negative, or two, the lowest and the highest");
  };
  if (json->is_number()) {
    if (json->get<double>() < 0) fail();
    range = range_of(json->get<double>());
  } else if (json->is_array() && json->size() == 2 && (*json)[0].is_number() && (*json)[1].is_number()) {
    range = {(*json)[0].get<double>(), (*json)[1].get<double>()};
  } else {
    fail();
  }
}

ColorJitter read_color_jitter(const JsonObject& data, const Json& json) {
  const auto strength = [&](const Json& value) {
    if (!value.is_number() || value.get<double>() < 0)
      data.fail("color_jitter", json,
                "a number that isn't negative, three or four of them, or an object of brightness, contrast, "
                "saturation and hue");
    return value.get<double>();
  };
  if (json.is_array() && (json.size() == 3 || json.size() == 4)) {
    ColorJitter jitter{.brightness = factor_range(strength(json[0])),
                       .contrast = factor_range(strength(json[1])),
                       .saturation = factor_range(strength(json[2]))};
    if (json.size() == 4) jitter.hue = hue_range(strength(json[3]));
    return jitter;
  }
  if (!json.is_object()) return color_jitter_of(strength(json));
  ColorJitter jitter;
  const JsonObject object(json, data.file() + ".color_jitter");
  check_keys(object, json, {"brightness", "contrast", "saturation", "hue"});
  read_range(object, "brightness", factor_range, jitter.brightness);
  read_range(object, "contrast", factor_range, jitter.contrast);
  read_range(object, "saturation", factor_range, jitter.saturation);
  read_range(object, "hue", hue_range, jitter.hue);
  return jitter;
}

void validate_rand_augment(const RandAugment& rand, const auto& require) {
  constexpr uint64_t most_layers = 16, most_magnitude = 30;
  require(rand.num_layers >= 1 && rand.num_layers <= most_layers, "rand_augment.num_layers",
          std::to_string(rand.num_layers), "1 to 16");
  require(!rand.weighted || rand.num_layers <= 15, "rand_augment.num_layers", std::to_string(rand.num_layers),
          "at most the 15 operations that there are, as weights take none twice");
  require(rand.magnitude_max >= 1 && rand.magnitude_max <= most_magnitude, "rand_augment.magnitude_max",
          std::to_string(rand.magnitude_max), "1 to 30");
  require(rand.magnitude >= 0 && rand.magnitude <= static_cast<double>(rand.magnitude_max),
          "rand_augment.magnitude", std::to_string(rand.magnitude),
          "0 to magnitude_max (mmax), which is " + std::to_string(rand.magnitude_max));
  require(rand.prob >= 0 && rand.prob <= 1, "rand_augment.prob", std::to_string(rand.prob), "0 to 1");
  require(rand.magnitude_std >= 0 && std::isfinite(rand.magnitude_std), "rand_augment.magnitude_std",
          std::to_string(rand.magnitude_std), "0 or more; above 100 for uniform magnitudes");
}

}  // namespace

const std::vector<std::string_view> picture_augmentation_fields{"rand_augment", "trivial_augment",
                                                                "color_jitter"};

RandAugment rand_augment_named(const std::string& text, const std::string& origin, ErrorCode code) {
  std::vector<std::string> sections;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('-', at), text.size());
    sections.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (sections[0] != "rand") {
    throw Error(code, origin + ": found " + in_quotes(text) + ", expected one as rand-m9-mstd0.5-inc1");
  }
  RandAugment rand;
  for (size_t i = 1; i < sections.size(); ++i) read_section(rand, sections[i], origin, code);
  return rand;
}

ColorJitter color_jitter_of(double strength) {
  const JitterRange range = factor_range(strength);
  return {.brightness = range, .contrast = range, .saturation = range};
}

PictureAugmentation read_picture_augmentation(const JsonObject& data) {
  PictureAugmentation augmentation;
  if (const Json* json = data.find("rand_augment"))
    augmentation.rand_augment = read_rand_augment(*json, data.file() + ".rand_augment");
  assign(augmentation.trivial_augment, data.flag("trivial_augment"));
  if (const Json* json = data.find("color_jitter")) {
    const ColorJitter jitter = read_color_jitter(data, *json);
    if (jitter != ColorJitter{}) augmentation.color_jitter = jitter;
  }
  return augmentation;
}

void write_picture_augmentation(const PictureAugmentation& augmentation, nlohmann::ordered_json& data) {
  if (const auto& rand = augmentation.rand_augment) {
    data["rand_augment"] = {{"magnitude", rand->magnitude},
                            {"num_layers", rand->num_layers},
                            {"prob", rand->prob},
                            {"magnitude_std", rand->magnitude_std},
                            {"magnitude_max", rand->magnitude_max},
                            {"increasing", rand->increasing},
                            {"transforms", name_among(transforms_names, rand->weighted)},
                            {"interpolation", name_among(move_filter_names, rand->interpolation)}};
  }
  if (augmentation.trivial_augment) data["trivial_augment"] = true;
  if (const auto& jitter = augmentation.color_jitter) {
    const auto ends = [](const JitterRange& range) {
      return nlohmann::ordered_json::array({range.low, range.high});
    };
    data["color_jitter"] = {{"brightness", ends(jitter->brightness)},
                            {"contrast", ends(jitter->contrast)},
                            {"saturation", ends(jitter->saturation)},
                            {"hue", ends(jitter->hue)}};
  }
}

void validate_picture_augmentation(const PictureAugmentation& augmentation, uint64_t channels,
                                   uint64_t height, uint64_t width, const std::string& origin) {
  const auto require = [&](bool good, const std::string& field, const std::string& found,
                           const std::string& expected) {
    if (!good)
      throw Error(ErrorCode::bad_file,
                  origin + ": data." + field + " is " + found + ", expected " + expected);
  };
  if (!augmentation.on() && !augmentation.rand_augment) return;
  const std::string field = augmentation.rand_augment      ? "rand_augment"
                            : augmentation.trivial_augment ? "trivial_augment"
                                                           : "color_jitter";
  require(channels == 1 || channels == 3, field, "for pictures of " + std::to_string(channels) + " channels",
          "1 or 3");
  constexpr uint64_t most_side = 4096;
  require(height <= most_side && width <= most_side, field,
          "for pictures of " + std::to_string(width) + " x " + std::to_string(height) + " pixels",
          "sides of at most 4096");
  if (augmentation.rand_augment) validate_rand_augment(*augmentation.rand_augment, require);
  require(!augmentation.rand_augment || !augmentation.trivial_augment, "trivial_augment", "true",
          "false beside rand_augment, as it is one of the two");
  if (const auto& jitter = augmentation.color_jitter) {
    const auto check = [&](const char* name, const JitterRange& range, double least, double most,
                           const char* expected) {
      require(range.low >= least && range.low <= range.high && range.high <= most,
              std::string("color_jitter.") + name,
              std::to_string(range.low) + " to " + std::to_string(range.high), expected);
    };
    constexpr double much = 1e6;
    check("brightness", jitter->brightness, 0, much, "numbers from 0 on that rise");
    check("contrast", jitter->contrast, 0, much, "numbers from 0 on that rise");
    check("saturation", jitter->saturation, 0, much, "numbers from 0 on that rise");
    check("hue", jitter->hue, -0.5, 0.5, "numbers from -0.5 to 0.5 that rise");
  }
}

}  // namespace vitrine

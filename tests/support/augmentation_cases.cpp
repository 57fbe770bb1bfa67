#include "tests/support/augmentation_cases.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/files/json_object.h"
#include "runtime/util/json.h"
#include "tests/support/noise_picture.h"
#include "train/data/augmentation_config.h"

namespace vitrine::test {
namespace {

using nlohmann::json;

PictureAugmentation augmentation_of(const json& entry) {
  if (entry.at("kind") == "trivial_augment") return {.trivial_augment = true};
  if (entry.at("kind") == "color_jitter") return read_picture_augmentation(JsonObject(entry, "case"));
  PictureAugmentation augmentation;
  augmentation.rand_augment = rand_augment_named(entry.at("spec"), "spec", ErrorCode::usage);
  if (entry.contains("interpolation")) {
    augmentation.rand_augment->interpolation =
        entry.at("interpolation") == "bicubic" ? MoveFilter::bicubic : MoveFilter::bilinear;
  }
  return augmentation;
}

AugmentationCase case_of(const json& entry, uint32_t fill) {
  AugmentationCase result{.label = entry.dump(),
                          .augmentation = augmentation_of(entry),
                          .width = entry.at("size")[0],
                          .height = entry.at("size")[1],
                          .grey = entry.at("grey"),
                          .expected = entry.at("fnv")};
  result.pixels = noise_picture(entry.at("seed"), result.width, result.height);
  for (uint32_t& pixel : result.pixels) {
    if (result.grey) pixel = 0xff000000 | (pixel & 255) * 0x010101;
  }
  const auto uniforms = entry.at("uniform").get<std::vector<double>>(),
             normals = entry.at("normal").get<std::vector<double>>();
  size_t uniform = 0, normal = 0;
  result.operations = picture_operations(
      result.augmentation, result.width, result.height, fill,
      {.uniform = [&] { return uniforms.at(uniform++); }, .normal = [&] { return normals.at(normal++); }});
  result.numbers_left = uniforms.size() - uniform + normals.size() - normal;
  return result;
}

}  // namespace

std::string AugmentationCase::hash_of(std::vector<uint32_t> result) const {
  std::vector<uint8_t> bytes = rgb_of(result);
  if (grey) {
    bytes.clear();
    for (const uint32_t pixel : result) bytes.push_back(static_cast<uint8_t>(pixel));
  }
  return fnv(std::as_bytes(std::span(bytes)));
}

std::vector<AugmentationCase> augmentation_cases() {
  const json file =
      read_json(std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "preprocessing" / "augmentations.json");
  const uint32_t fill = fill_of_mean(file.at("mean").get<std::vector<double>>());
  std::vector<AugmentationCase> cases;
  for (const json& entry : file.at("cases")) cases.push_back(case_of(entry, fill));
  return cases;
}

}  // namespace vitrine::test

// Feature maps of whole models against timm's forward_intermediates and transformers' Dinov2Backbone
// (tests/parity/features).
#include "model/look/dense_features.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "model/files/weights.h"
#include "model/vit/vit_graph.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"

using namespace vitrine;

namespace {

const std::filesystem::path parity = std::filesystem::path(VITRINE_TEST_DATA) / "parity";

Model open_fixture(const std::string& name) {
  const std::filesystem::path folder = parity / "fixtures" / name;
  const nlohmann::json meta = read_json(folder / "meta.json");
  const std::string file = meta.at("model");
  return open_model(
      {.model = file == "." ? folder : folder / file, .set = meta.at("set").get<std::vector<std::string>>()},
      [](const std::string&) {});
}

// What the library gives of all layers, of the last image; nothing where it has none.
std::optional<std::vector<float>> reference(const std::string& name, const std::string& what) {
  const std::filesystem::path file = parity / "features" / name / (what + ".npy");
  if (!std::filesystem::exists(file)) return std::nullopt;
  return NpyFile(file).values<float>();
}

// Relative to the largest number that there is, as a model's outputs are judged.
double error_of(std::span<const float> found, std::span<const float> expected) {
  REQUIRE(found.size() == expected.size());
  double largest = 0, difference = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    const double d = std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
    if (!(d <= difference)) difference = d;  // a NaN as well
  }
  return difference / largest;
}

void check_layers(const std::string& name, bool norm, DType dtype) {
  test::TestDevice& device = test::test_device();
  const std::string kind = norm ? "normed" : "map";
  const std::optional<std::vector<float>> maps = reference(name, kind);
  if (!maps) return;
  const std::optional<std::vector<float>> prefixes = reference(name, kind + "_prefix");
  INFO(name << " " << kind << " " << name_of(dtype));
  const Model model = open_fixture(name);
  const ViTConfig& c = model.config;
  const std::vector<float> images = NpyFile(parity / "fixtures" / name / "input.npy").values<float>();
  const uint64_t batch = images.size() / (c.channels * c.image_height * c.image_width);

  DenseFeatureOptions options{.layers = std::vector<uint64_t>(c.depth), .norm = norm};
  std::iota(options.layers.begin(), options.layers.end(), uint64_t{0});
  const DenseFeatures dense(c, options);
  WeightStore weights(*device.pipelines, *model.constants);
  const auto graph = make_vit_graph(c, {.batch = batch, .dtype = dtype, .taps = dense.taps()});
  Executable executable(weights, make_plan(graph, device.device->capabilities(), {}));
  std::memcpy(executable.input(0).data(), images.data(), executable.input(0).size());
  executable.run();

  const double limit = dtype == DType::f32 ? 2e-5 : 5e-3;
  const uint64_t map_size = c.dim * c.patches(), prefix_size = c.dim * c.prefix_tokens();
  REQUIRE(maps->size() == c.depth * map_size);
  for (uint64_t layer = 0; layer < c.depth; ++layer) {
    INFO("layer " << layer);
    CHECK(error_of(dense.map(executable, layer, batch - 1),
                   std::span(*maps).subspan(layer * map_size, map_size)) <= limit);
    if (!prefixes) continue;
    CHECK(error_of(dense.prefix(executable, layer, batch - 1),
                   std::span(*prefixes).subspan(layer * prefix_size, prefix_size)) <= limit);
  }
  CHECK_THROWS_AS(dense.map(executable, 0, batch), Error);

  // The same numbers, a row for each patch.
  options.rows = true;
  const DenseFeatures turned(c, options);
  const auto graph_of_rows = make_vit_graph(c, {.batch = batch, .dtype = dtype, .taps = turned.taps()});
  Executable of_rows(weights, make_plan(graph_of_rows, device.device->capabilities(), {}));
  std::memcpy(of_rows.input(0).data(), images.data(), of_rows.input(0).size());
  of_rows.run();
  for (uint64_t layer = 0; layer < c.depth; ++layer) {
    const std::vector<float> map = dense.map(executable, layer, batch - 1),
                             rows = turned.map(of_rows, layer, batch - 1);
    size_t wrong = 0;
    for (uint64_t i = 0; i < map_size; ++i)
      wrong += rows[i % c.patches() * c.dim + i / c.patches()] != map[i];
    CHECK(wrong == 0);
  }
  test::require_no_validation_messages();
}

}  // namespace

TEST_CASE("every block's feature maps are timm's and transformers'") {
  std::vector<std::string> fixtures;
  for (const auto& entry : std::filesystem::directory_iterator(parity / "features"))
    fixtures.push_back(entry.path().filename().string());
  std::ranges::sort(fixtures);
  CHECK(fixtures.size() >= 5);
  for (const std::string& fixture : test::of_turn(fixtures)) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      if (!test::stores(dtype)) continue;
      for (const bool norm : {false, true}) check_layers(fixture, norm, dtype);
    }
  }
}

TEST_CASE("feature maps that a model doesn't have are refused") {
  const ViTConfig with_norm{.depth = 3};
  CHECK_THROWS_AS(DenseFeatures(with_norm, {.layers = {3}}), Error);
  ViTConfig without_norm = with_norm;
  without_norm.final_norm = false;
  CHECK_NOTHROW(DenseFeatures(without_norm, {.layers = {2}}));
  CHECK_THROWS_AS(DenseFeatures(without_norm, {.layers = {2}, .norm = true}), Error);
}

// Attention maps of whole models against the weights that PyTorch used in float64 (tests/parity/maps).
#include "model/look/attention_maps.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "model/files/weights.h"
#include "model/vit/vit_graph.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"

using namespace vitrine;

namespace {

const std::filesystem::path parity = std::filesystem::path(VITRINE_TEST_DATA) / "parity";

// A fixture's model, its images, and PyTorch's weights for the last one of them.
struct Fixture {
  explicit Fixture(const std::filesystem::path& maps)
      : name(maps.filename().string()),
        model(open(parity / "fixtures" / name)),
        images(NpyFile(parity / "fixtures" / name / "input.npy").values<float>()),
        attention(NpyFile(maps / "attention.npy").values<float>()),
        rolls(std::filesystem::exists(maps / "rollout.npy")),
        rollout(rolls ? NpyFile(maps / "rollout.npy").values<float>() : std::vector<float>()) {
    const ViTConfig& c = model.config;
    batch = images.size() / (c.channels * c.image_height * c.image_width);
    REQUIRE(attention.size() == c.depth * heads_of_maps(c, 0) * c.tokens() * c.tokens());
    REQUIRE(rolls == (c.attention == AttentionKind::plain));
    REQUIRE(rollout.size() == (rolls ? c.tokens() * c.tokens() : 0));
  }

  static Model open(const std::filesystem::path& folder) {
    const nlohmann::json meta = read_json(folder / "meta.json");
    const std::string file = meta.at("model");
    return open_model({.model = file == "." ? folder : folder / file,
                       .set = meta.at("set").get<std::vector<std::string>>()},
                      [](const std::string&) {});
  }

  // Row `token` of a layer's head, or of rollout.
  std::span<const float> row(uint64_t layer, uint64_t head, uint64_t token) const {
    const uint64_t n = model.config.tokens();
    return std::span(attention).subspan(((layer * heads_of_maps(model.config, layer) + head) * n + token) * n,
                                        n);
  }

  std::string name;
  Model model;
  std::vector<float> images, attention;
  bool rolls;
  std::vector<float> rollout;
  uint64_t batch = 0;
};

std::vector<std::filesystem::path> all_maps() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(parity / "maps"))
    found.push_back(entry.path());
  std::ranges::sort(found);
  REQUIRE(found.size() >= 10);
  return found;
}

std::vector<uint64_t> all_layers(const ViTConfig& config) {
  std::vector<uint64_t> layers(config.depth);
  std::iota(layers.begin(), layers.end(), uint64_t{0});
  return layers;
}

// The graph with its taps on the device, run once over the fixture's images.
std::unique_ptr<Executable> run(WeightStore& weights, const Fixture& fixture, DType dtype, BlockTaps taps) {
  const auto graph =
      make_vit_graph(fixture.model.config, {.batch = fixture.batch, .dtype = dtype, .taps = std::move(taps)});
  auto executable =
      std::make_unique<Executable>(weights, make_plan(graph, test::test_device().device->capabilities(), {}));
  std::memcpy(executable->input(0).data(), fixture.images.data(), executable->input(0).size());
  executable->run();
  return executable;
}

std::span<const std::byte> result_of(const Executable& executable, const ViTConfig& config) {
  return executable.output(executable.output_index(name_of(natural_result(config))));
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = difference;  // a NaN as well
  }
  return largest;
}

std::vector<float> mean_of(const std::vector<std::span<const float>>& rows) {
  std::vector<float> mean(rows[0].size());
  for (size_t j = 0; j < mean.size(); ++j) {
    double sum = 0;
    for (const auto& row : rows) sum += static_cast<double>(row[j]);
    mean[j] = static_cast<float>(sum / static_cast<double>(rows.size()));
  }
  return mean;
}

}  // namespace

TEST_CASE("every layer's and head's attention weights, and rollout, are PyTorch's") {
  test::TestDevice& device = test::test_device();
  for (const auto& folder : test::of_turn(all_maps())) {
    const Fixture fixture(folder);
    const ViTConfig& c = fixture.model.config;
    const uint64_t n = c.tokens(), of_layer = heads_of_maps(c, 0) * n * n;
    WeightStore weights(*device.pipelines, *fixture.model.constants);
    const AttentionMaps maps(c, {.layers = all_layers(c), .rollout = fixture.rolls, .rows = all_rows(c)});
    const auto plain = run(weights, fixture, DType::f32, {});
    for (const DType dtype : {DType::f32, DType::f16}) {
      if (!test::stores(dtype)) continue;
      INFO(fixture.name << " " << name_of(dtype));
      const auto executable = run(weights, fixture, dtype, maps.taps());
      const double limit = dtype == DType::f32 ? 1e-5 : 2e-2;
      for (uint64_t layer = 0; layer < c.depth; ++layer) {
        INFO("layer " << layer);
        CHECK(largest_difference(maps.weights(*executable, layer, fixture.batch - 1),
                                 std::span(fixture.attention).subspan(layer * of_layer, of_layer)) <= limit);
      }
      if (fixture.rolls)
        CHECK(largest_difference(maps.weights(*executable, {}, fixture.batch - 1), fixture.rollout) <= limit);
      // Looking changes nothing.
      if (dtype == DType::f32) CHECK(std::ranges::equal(result_of(*executable, c), result_of(*plain, c)));
    }
    test::require_no_validation_messages();
  }
}

TEST_CASE("the pooled tokens' rows alone are the same as among all rows") {
  test::TestDevice& device = test::test_device();
  for (const auto& folder : test::of_turn(all_maps())) {
    INFO(folder.filename().string());
    const Fixture fixture(folder);
    const ViTConfig& c = fixture.model.config;
    WeightStore weights(*device.pipelines, *fixture.model.constants);
    const AttentionMaps pooled(c, {.layers = all_layers(c), .rollout = fixture.rolls});
    const AttentionMaps all(c, {.layers = all_layers(c), .rollout = fixture.rolls, .rows = all_rows(c)});
    const auto few = run(weights, fixture, DType::f32, pooled.taps());
    const auto many = run(weights, fixture, DType::f32, all.taps());
    const uint64_t image = fixture.batch - 1;
    for (uint64_t layer = 0; layer < c.depth; ++layer) {
      for (uint64_t head = 0; head < heads_of_maps(c, layer); ++head) {
        const MapChoice choice{.layer = layer, .head = head};
        std::vector<std::span<const float>> rows;
        if (c.pool == Pool::token || c.pool == Pool::token_and_mean) {
          rows.push_back(fixture.row(layer, head, 0));
        } else {
          for (uint64_t t = c.first_pooled(); t < c.tokens(); ++t)
            rows.push_back(fixture.row(layer, head, t));
        }
        const std::vector<float> expected = mean_of(rows);
        CHECK(largest_difference(pooled.row(*few, choice, image), expected) <= 1e-5);
        CHECK(largest_difference(all.row(*many, choice, image), expected) <= 1e-5);
        const PatchMap map = pooled.map(*few, choice, image);
        CHECK(map.height == c.grid_height());
        CHECK(map.width == c.grid_width());
        CHECK(largest_difference(map.weights, std::span(expected).subspan(c.prefix_tokens())) <= 1e-5);
      }
      // A token of its own, and the mean of the heads.
      const uint64_t token = c.tokens() - 1;
      std::vector<std::span<const float>> heads;
      for (uint64_t head = 0; head < heads_of_maps(c, layer); ++head)
        heads.push_back(fixture.row(layer, head, token));
      CHECK(largest_difference(all.row(*many, {.layer = layer, .token = token}, image), mean_of(heads)) <=
            1e-5);
    }
    if (fixture.rolls)
      CHECK(largest_difference(pooled.row(*few, {}, image), all.row(*many, {}, image)) <= 1e-6);
  }
}

TEST_CASE("attention pooling shows what its query looks at") {
  test::TestDevice& device = test::test_device();
  uint64_t found = 0;
  for (const auto& folder : all_maps()) {
    if (!std::filesystem::exists(folder / "pool.npy")) continue;
    ++found;
    INFO(folder.filename().string());
    const Fixture fixture(folder);
    const ViTConfig& c = fixture.model.config;
    const std::vector<float> reference = NpyFile(folder / "pool.npy").values<float>();
    WeightStore weights(*device.pipelines, *fixture.model.constants);
    const AttentionMaps maps(c, {.layers = {0, c.depth}});
    const auto executable = run(weights, fixture, DType::f32, maps.taps());
    const auto plain = run(weights, fixture, DType::f32, {});
    CHECK(std::ranges::equal(result_of(*executable, c), result_of(*plain, c)));
    const uint64_t image = fixture.batch - 1;
    CHECK(largest_difference(maps.weights(*executable, c.depth, image), reference) <= 1e-5);
    std::vector<std::span<const float>> heads;
    const uint64_t keys = keys_of_maps(c, c.depth);
    REQUIRE(reference.size() == heads_of_maps(c, c.depth) * keys);
    for (uint64_t head = 0; head < heads_of_maps(c, c.depth); ++head) {
      heads.push_back(std::span(reference).subspan((head + 1) * keys - c.patches(), c.patches()));
      CHECK(largest_difference(maps.map(*executable, {.layer = c.depth, .head = head}, image).weights,
                               heads.back()) <= 1e-5);
    }
    CHECK(largest_difference(maps.map(*executable, {.layer = c.depth}, image).weights, mean_of(heads)) <=
          1e-5);
    CHECK(maps.row(*executable, {.layer = c.depth}, image).size() == c.tokens());
    CHECK_THROWS(maps.row(*executable, {.layer = c.depth, .token = 0}, image));
  }
  CHECK(found >= 2);
}

TEST_CASE("maps that a model has not, or that were not computed, are refused by name") {
  using Catch::Matchers::ContainsSubstring;
  const ViTConfig c{.dim = 192, .depth = 3, .heads = 3};
  CHECK_THROWS_WITH(AttentionMaps(c, {.layers = {3}}), ContainsSubstring("layer is 3, expected 0 to 2"));
  CHECK_THROWS_WITH(AttentionMaps(c, {.rows = MapRows{.first = 197}}),
                    ContainsSubstring("token is 197, expected 0 to 196"));
  CHECK_THROWS(AttentionMaps(c, {.rows = MapRows{.first = 1, .count = 197}}));
  CHECK_THROWS(AttentionMaps(c, {.rows = MapRows{.count = 0}}));
  ViTConfig other = c;
  other.attention = AttentionKind::differential;
  CHECK_NOTHROW(AttentionMaps(other, {.layers = {2}}));
  CHECK_THROWS_WITH(AttentionMaps(other, {.rollout = true}), ContainsSubstring("differential"));
  other.attention = AttentionKind::talking_heads;
  CHECK_THROWS_WITH(AttentionMaps(other, {.layers = {2}}), ContainsSubstring("talking heads"));

  test::TestDevice& device = test::test_device();
  const Fixture fixture(parity / "maps" / "timm_vit");
  WeightStore weights(*device.pipelines, *fixture.model.constants);
  const AttentionMaps maps(fixture.model.config, {.layers = {1}});
  const auto executable = run(weights, fixture, DType::f32, maps.taps());
  CHECK_NOTHROW(maps.row(*executable, {.layer = 1}));
  CHECK_THROWS_WITH(maps.row(*executable, {.layer = 0}), ContainsSubstring("layer 0"));
  CHECK_THROWS_WITH(maps.row(*executable, {}), ContainsSubstring("rollout"));
  CHECK_THROWS_WITH(maps.row(*executable, {.layer = 1, .head = 3}), ContainsSubstring("expected 0 to 2"));
  CHECK_THROWS_WITH(maps.row(*executable, {.layer = 1, .token = 1}), ContainsSubstring("token 1"));
  CHECK_THROWS_WITH(maps.row(*executable, {.layer = 1}, fixture.batch), ContainsSubstring("image"));
}

TEST_CASE("only the layers that are looked at store their log-sum-exp") {
  const ViTConfig c{.dim = 192, .depth = 3, .heads = 3};
  const auto stores = [&](const AttentionMapOptions& options) {
    std::vector<bool> found;
    const auto graph = make_vit_graph(c, {.taps = AttentionMaps(c, options).taps()});
    for (const Node& node : graph->nodes()) {
      if (node.op == &op_attention) found.push_back(node.attributes.flag("store_lse"));
    }
    return found;
  };
  CHECK(stores({}) == std::vector{false, false, false});
  CHECK(stores({.layers = {1}}) == std::vector{false, true, false});
  CHECK(stores({.rollout = true}) == std::vector{true, true, true});
}

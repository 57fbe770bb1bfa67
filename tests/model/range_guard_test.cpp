// Numbers that f16 can't hold are found, and what holds them runs in f32.
#include "model/run/range_guard.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "model/files/weights.h"
#include "model/run/runner.h"
#include "runtime/util/philox.h"
#include "tests/support/op_test.h"
#include "tests/support/test_device.h"

using namespace vitrine;
using Catch::Matchers::ContainsSubstring;

namespace {

// Random weights, some of them multiplied.
class Enlarged : public ConstantSource {
 public:
  Enlarged(const ViTConfig& config, std::map<std::string, float> factors)
      : weights_(random_weights(config, 11)), factors_(std::move(factors)) {}

  ConstantParts find(const std::string& name, const Shape& shape, DType dtype) override {
    const ConstantParts parts = weights_->find(name, shape, dtype);
    const auto factor = factors_.find(name);
    if (factor == factors_.end()) return parts;
    const auto* values = reinterpret_cast<const float*>(parts.front().bytes.data());
    values_.assign(values, values + shape.elements());
    for (float& value : values_) value *= factor->second;
    return {{DType::f32, std::as_bytes(std::span(values_))}};
  }

 private:
  std::unique_ptr<ConstantSource> weights_;
  std::map<std::string, float> factors_;
  std::vector<float> values_;
};

ViTConfig tiny() {
  ViTConfig c;
  c.image_height = c.image_width = 16;
  c.patch_height = c.patch_width = 4;
  c.dim = 24;
  c.depth = 2;
  c.heads = 2;
  c.classes = 5;
  return c;
}

struct Fixture {
  Model model;
  std::vector<std::string> said;

  Fixture(const ViTConfig& config, std::map<std::string, float> factors) {
    // Weights of a trained model's size; random ones are so small that nothing would show.
    std::map<std::string, float> all;
    for (const Parameter& parameter : parameters_of(config)) {
      if (parameter.is_matrix()) all[parameter.name] = parameter.module == Module::patch ? 5.0f : 20.0f;
    }
    for (const auto& [name, factor] : factors)
      all.insert_or_assign(name, factor * (all.contains(name) ? all[name] : 1));
    model = {.name = "made up",
             .family = "test",
             .config = config,
             .constants = std::make_unique<Enlarged>(config, all)};
  }
  std::vector<float> images(uint64_t count) const {
    std::vector<float> values(count * model.config.channels * model.config.image_height *
                              model.config.image_width);
    const RandomStream stream(3, 4);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(normal_quantile(uniform_from(stream.block(i / 4)[i % 4])));
    return values;
  }
  Runner runner(DType dtype, bool check_range = false) {
    return Runner(*test::test_device().pipelines, model,
                  {.dtype = dtype,
                   .warn = [this](const std::string& sentence) { said.push_back(sentence); },
                   .check_range = check_range});
  }
};

double difference(std::span<const float> found, std::span<const float> expected) {
  return test::relative_error(std::vector<double>(found.begin(), found.end()),
                              std::vector<double>(expected.begin(), expected.end()));
}

// Runs in f16 and f32; the answers must agree, and one sentence must hold all the words.
void check_promoted(Fixture& fixture, const std::vector<std::string>& words) {
  const std::vector<float> images = fixture.images(5);
  const std::vector<float> expected = fixture.runner(DType::f32).run(images, 2);
  REQUIRE(fixture.said.empty());
  REQUIRE(all_finite(expected));
  Runner runner = fixture.runner(DType::f16);
  CHECK(difference(runner.run(images, 2), expected) <= 5e-3);
  REQUIRE(fixture.said.size() == 1);
  for (const std::string& word : words) CHECK_THAT(fixture.said[0], ContainsSubstring(word));
  // Said once, and not looked for again.
  CHECK(difference(runner.run(images, 3), expected) <= 5e-3);
  CHECK(fixture.said.size() == 1);
  test::require_no_validation_messages();
}

}  // namespace

TEST_CASE("what measures ranges can be stopped while it is made ready, and made later") {
  test::skip_without_f16();
  const Fixture fixture(tiny(), {});
  RangeGuard guard(*test::test_device().pipelines, fixture.model,
                   [](uint64_t batch) { return ViTGraphOptions{.batch = batch, .dtype = DType::f16}; });
  const std::vector<float> images = fixture.images(1);
  bool filled = false;
  const auto fill = [&](Executable& probe) {
    std::ranges::copy(std::as_bytes(std::span(images)), probe.input(0).begin());
    filled = true;
  };
  CHECK_THROWS_AS(guard.check(1, fill, [](double) { return false; }), Interrupted);
  CHECK_FALSE(filled);
  const auto measured = [](const LayerRange& range) { return range.largest > 0; };
  CHECK(std::ranges::none_of(guard.ranges(), measured));
  CHECK_FALSE(guard.check(1, fill));
  CHECK(filled);
  CHECK_FALSE(guard.saw_nonfinite());
  CHECK(std::ranges::any_of(guard.ranges(), measured));
  test::require_no_validation_messages();
}

TEST_CASE("a model whose numbers f16 holds runs in f16 and says nothing") {
  test::skip_without_f16();
  Fixture fixture(tiny(), {});
  const std::vector<float> images = fixture.images(3);
  Runner runner = fixture.runner(DType::f16);
  CHECK(all_finite(runner.run(images, 2)));
  CHECK(runner.guard().layers().empty());
  CHECK(fixture.said.empty());
}

TEST_CASE("a hidden layer that f16 can't hold runs in f32") {
  test::skip_without_f16();
  Fixture fixture(tiny(), {{"blocks.0.mlp.fc1.weight", 8e4f}, {"blocks.0.mlp.fc2.weight", 1e-5f}});
  check_promoted(fixture, {"blocks.0.mlp runs in f32 (", "65504", "blocks.0.mlp.fc1)"});
}

TEST_CASE("two layers that f16 can't hold are named together") {
  test::skip_without_f16();
  ViTConfig config = tiny();
  config.mlp = MlpKind::swiglu;
  config.activation = Activation::silu;
  // Each half of the gate fits, their product doesn't.
  Fixture fixture(config, {{"blocks.0.mlp.fc1.weight", 3e3f},
                           {"blocks.0.mlp.fc2.weight", 1e-7f},
                           {"blocks.1.mlp.fc1.weight", 3e3f},
                           {"blocks.1.mlp.fc2.weight", 1e-7f}});
  check_promoted(fixture, {": blocks.0.mlp, blocks.1.mlp run in f32 (", ".mlp.gate"});
}

TEST_CASE("attention whose values f16 can't hold runs in f32") {
  test::skip_without_f16();
  // Values alone cannot be scaled; queries and keys beyond f16 are known from the weights.
  Fixture fixture(tiny(), {{"blocks.0.attn.qkv.weight", 1e5f}, {"blocks.0.attn.proj.weight", 1e-5f}});
  check_promoted(fixture, {"blocks.0.attn runs in f32 (", "blocks.0.attn.qk"});
}

TEST_CASE("a norm that f16 can't hold makes the layer behind it run in f32") {
  test::skip_without_f16();
  Fixture fixture(tiny(), {{"blocks.1.norm2.weight", 1e5f}, {"blocks.1.mlp.fc1.weight", 1e-5f}});
  check_promoted(fixture, {"blocks.1.mlp runs in f32 (", "possible in blocks.1.norm2"});
}

TEST_CASE("a weight that f16 can't hold is found before anything runs") {
  test::skip_without_f16();
  Fixture fixture(tiny(), {{"head.weight", 1e7f}});
  Runner runner = fixture.runner(DType::f16);
  (void)runner.plan(1);
  REQUIRE(fixture.said.size() == 1);
  fixture.said.clear();
  check_promoted(fixture, {"head runs in f32 (", "head.weight"});
}

TEST_CASE("heads with maps of their own are looked at as well") {
  test::skip_without_f16();
  ViTConfig config = tiny();
  config.per_head_maps = true;
  config.projection = false;
  config.pool = Pool::mean;
  Fixture fixture(config, {{"blocks.0.attn.q.weight", 1e7f}, {"blocks.0.attn.k.weight", 1e-7f}});
  check_promoted(fixture, {"blocks.0.attn runs in f32 (", "blocks.0.attn.q"});
}

TEST_CASE("an overflow in the third batch is found there, and what went before stays") {
  test::skip_without_f16();
  // How large each image makes the hidden layer, then a factor that only the last one of the order overflows.
  const auto factors = [](float by) {
    return std::map<std::string, float>{{"blocks.0.mlp.fc1.weight", by}, {"blocks.0.mlp.fc2.weight", 1 / by}};
  };
  Fixture probe(tiny(), factors(1e3f));
  const uint64_t each = 3 * 16 * 16;
  const std::vector<float> images = probe.images(24);
  const auto image = [&](size_t i) { return std::span(images).subspan(i * each, each); };
  std::vector<std::pair<float, size_t>> order;
  for (size_t i = 0; i < 24; ++i) {
    Runner runner = probe.runner(DType::f32, true);
    (void)runner.run(image(i), 1);
    const auto ranges = runner.guard().ranges();
    order.emplace_back(std::ranges::find(ranges, "blocks.0.mlp", &LayerRange::layer)->largest, i);
  }
  std::ranges::sort(order);
  const float low = order[3].first, high = order.back().first;
  REQUIRE(high > 1.15f * low);
  std::vector<float> batches;
  for (const size_t i :
       {order[0].second, order[1].second, order.back().second, order[2].second, order[3].second}) {
    batches.insert(batches.end(), image(i).begin(), image(i).end());
  }
  Fixture fixture(tiny(), factors(1e3f * 65504 / std::sqrt(low * high)));
  const std::vector<float> expected = fixture.runner(DType::f32).run(batches, 1);
  {
    Runner early = fixture.runner(DType::f16);
    (void)early.run(std::span(batches).first(2 * each), 1);
    CHECK(fixture.said.empty());
  }
  Runner runner = fixture.runner(DType::f16);
  const std::vector<float> found = runner.run(batches, 1);
  CHECK(fixture.said.size() == 1);
  CHECK(difference(found, expected) <= 5e-3);
}

TEST_CASE("what isn't finite in f32 either stays so, and nothing is promoted for it") {
  test::skip_without_f16();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  SECTION("a NaN among the pixels") {
    Fixture fixture(tiny(), {});
    std::vector<float> images = fixture.images(2);
    images[800] = nan;
    const std::vector<float> found = fixture.runner(DType::f16).run(images, 2);
    CHECK(all_finite(std::span(found).first(5)));
    CHECK(std::ranges::all_of(std::span(found).last(5), [](float v) { return std::isnan(v); }));
    CHECK(fixture.said.empty());
  }
  SECTION("a NaN among the weights") {
    Fixture fixture(tiny(), {{"blocks.0.mlp.fc1.weight", nan}});
    CHECK_FALSE(all_finite(fixture.runner(DType::f16).run(fixture.images(2), 2)));
    CHECK(fixture.said.empty());
  }
  SECTION("an infinite picture beside one that overflows f16") {
    Fixture fixture(tiny(), {{"blocks.0.mlp.fc1.weight", 8e4f}, {"blocks.0.mlp.fc2.weight", 1e-5f}});
    std::vector<float> images = fixture.images(3);
    const std::vector<float> expected = fixture.runner(DType::f32).run(images, 3);
    images[800] = std::numeric_limits<float>::infinity();
    const std::vector<float> found = fixture.runner(DType::f16).run(images, 3);
    CHECK(fixture.said.size() == 1);
    CHECK(difference(std::span(found).first(5), std::span(expected).first(5)) <= 5e-3);
    CHECK_FALSE(all_finite(std::span(found).subspan(5, 5)));
    CHECK(difference(std::span(found).last(5), std::span(expected).last(5)) <= 5e-3);
  }
}

TEST_CASE("check_range finds the same before anything runs, and how large all layers get") {
  test::skip_without_f16();
  Fixture fixture(tiny(), {{"blocks.0.mlp.fc1.weight", 8e4f}, {"blocks.0.mlp.fc2.weight", 1e-5f}});
  Runner runner = fixture.runner(DType::f16, true);
  const std::vector<float> images = fixture.images(3);
  CHECK(difference(runner.run(images, 2), fixture.runner(DType::f32).run(images, 2)) <= 5e-3);
  CHECK(fixture.said.size() == 1);
  size_t beyond = 0;
  for (const LayerRange& range : runner.guard().ranges()) {
    INFO(range.layer);
    beyond += !range.fits_f16();
    CHECK(range.fits_f16() == (range.layer != "blocks.0.mlp"));
    if (range.layer != "patch_embed") CHECK(range.largest > 0);
    CHECK(range.largest_constant > 0);
  }
  CHECK(beyond == 1);
}

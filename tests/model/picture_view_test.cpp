// What can be seen of a model that looked at a picture, against AttentionMaps and PictureRunner.
#include "model/look/picture_view.h"

#include <volk.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "images/color_map.h"
#include "model/run/picture_runner.h"
#include "runtime/check/reference_heat.h"
#include "runtime/graph/bound_dispatch.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "tests/support/noise_picture.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"

namespace vitrine {
namespace {

const std::filesystem::path fixtures = std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "fixtures";

// One with a class token, one whose patches are averaged, two with attention pooling (the second one with
// registers in front of the patches).
const std::vector<const char*> all_fixtures{"timm_vit",           "timm_mean_pooled", "hf_siglip",
                                            "timm_map_registers", "timm_pe_core",     "timm_relative",
                                            "timm_parallel",      "hf_dinov3"};

Picture noise(uint64_t seed, uint32_t width, uint32_t height) {
  const std::vector<uint32_t> pixels = test::noise_picture(seed, width, height);
  Picture picture{width, height, std::vector<uint8_t>(pixels.size() * 4)};
  std::memcpy(picture.pixels.data(), pixels.data(), picture.pixels.size());
  return picture;
}

Model open(const std::filesystem::path& folder) {
  const nlohmann::json meta = read_json(folder / "meta.json");
  const std::string file = meta.at("model");
  return open_model(
      {.model = file == "." ? folder : folder / file, .set = meta.at("set").get<std::vector<std::string>>()},
      [](const std::string&) {});
}

struct Looking {
  explicit Looking(const std::string& fixture, PictureViewOptions options = {})
      : model(open(fixtures / fixture)),
        preprocess(profile_named("timm", model.config.image_height, model.config.image_width)),
        view(*test::test_device().pipelines, model, preprocess, std::move(options)) {}
  const ViTConfig& config() const { return model.config; }
  Model model;
  Preprocess preprocess;
  PictureView view;
};

std::vector<uint32_t> read(const PictureView::Pixels& pixels) {
  Device& device = *test::test_device().device;
  const uint64_t bytes = uint64_t{4} * pixels.maps * pixels.width * pixels.height;
  const Buffer readback(device, BufferKind::readback, bytes, "pixels");
  run_once(device, [&](VkCommandBuffer commands) {
    const VkBufferCopy region{pixels.offset, 0, bytes};
    device.vk().vkCmdCopyBuffer(commands, pixels.buffer->handle(), readback.handle(), 1, &region);
  });
  readback.invalidate();
  std::vector<uint32_t> words(bytes / 4);
  std::memcpy(words.data(), readback.mapped().data(), bytes);
  return words;
}

// The picture's maps by AttentionMaps, in a graph of its own.
struct Maps {
  Maps(Looking& looking, const Picture& picture, const std::vector<uint64_t>& layers)
      : maps(looking.config(), {.layers = layers, .rollout = true, .rows = all_rows(looking.config())}),
        weights(*test::test_device().pipelines, *looking.model.constants) {
    const ViTConfig& c = looking.config();
    const Capabilities& device = test::test_device().device->capabilities();
    const PictureCapacity largest = PictureCapacity::largest(device, looking.preprocess.width());
    const PicturePart part = prepare_part(looking.preprocess, picture, largest, "picture");
    const PictureCapacity capacity =
        PictureCapacity::covering(resample_needs(part.prepared.resample), largest);
    ViTGraphOptions options;
    options.taps = maps.taps();
    options.image = [&](Graph& graph) {
      return add_picture_input(graph, looking.preprocess, c.channels, 1, capacity).image;
    };
    executable = std::make_unique<Executable>(weights, make_plan(make_vit_graph(c, options), device));
    write_picture_input(*executable, 0, {&part, 1}, looking.preprocess.values(c.channels));
    executable->run();
  }
  // As PictureView::weights orders them.
  std::vector<float> of(const ViTConfig& c, std::optional<uint64_t> layer,
                        std::optional<uint64_t> token) const {
    std::vector<float> all;
    const uint64_t heads = heads_of_maps(c, layer);
    for (uint64_t head = 0; head < (layer ? heads + 1 : 1); ++head) {
      MapChoice choice{.layer = layer, .token = token};
      if (layer && head < heads) choice.head = head;
      const auto map = maps.map(*executable, choice).weights;
      all.insert(all.end(), map.begin(), map.end());
    }
    return all;
  }
  AttentionMaps maps;
  WeightStore weights;
  std::unique_ptr<Executable> executable;
};

// At every patch's center the color is that of the weight among the map's.
void check_centers(const std::vector<uint32_t>& pixels, const std::vector<float>& weights, const ViTConfig& c,
                   ColorMap map) {
  const uint64_t width = c.grid_width() * heat_pixels, of_map = c.patches() * heat_pixels * heat_pixels;
  REQUIRE(pixels.size() == weights.size() / c.patches() * of_map);
  size_t wrong = 0;
  for (size_t m = 0; m < weights.size() / c.patches(); ++m) {
    const auto numbers = std::span(weights).subspan(m * c.patches(), c.patches());
    const auto [low, high] = std::ranges::minmax(numbers);
    for (uint64_t i = 0; i < c.patches(); ++i) {
      const double warmth = high > low ? (static_cast<double>(numbers[i]) - static_cast<double>(low)) /
                                             (static_cast<double>(high) - static_cast<double>(low))
                                       : 0;
      const Rgb color = color_of(map, warmth);
      const double expected[4] = {double(color[0]), double(color[1]), double(color[2]),
                                  255 * (0.55 + 0.45 * warmth)};
      const uint64_t x = i % c.grid_width() * heat_pixels + heat_pixels / 2,
                     y = i / c.grid_width() * heat_pixels + heat_pixels / 2;
      const uint32_t pixel = pixels[m * of_map + y * width + x];
      for (uint32_t b = 0; b < 4; ++b)
        wrong += std::abs(static_cast<double>(pixel >> (8 * b) & 255) - expected[b]) > 1.01;
    }
  }
  CHECK(wrong == 0);
}

void check_close(const std::vector<float>& found, const std::vector<float>& expected) {
  REQUIRE(found.size() == expected.size());
  double largest = 0;
  for (size_t i = 0; i < found.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])));
  CHECK(largest <= 1e-5);
}

std::vector<float> runner_result(const Looking& looking, const Picture& picture, DType dtype = DType::f32) {
  std::vector<float> result;
  PictureRunnerOptions options;
  options.batch = 1;
  options.dtype = dtype;
  PictureRunner runner(*test::test_device().pipelines, looking.model, looking.preprocess, options,
                       [&](uint64_t, std::span<const float> r) { result.assign(r.begin(), r.end()); });
  runner.add(picture, "picture");
  runner.finish();
  return result;
}

}  // namespace

TEST_CASE("a view shows every layer's, head's and token's weights, and rollout") {
  for (const char* fixture : test::of_turn(all_fixtures)) {
    INFO(fixture);
    Looking looking(fixture);
    const ViTConfig& c = looking.config();
    const Picture picture = noise(3, 50, 33);
    REQUIRE(looking.view.look(picture, "picture"));
    std::vector<uint64_t> layers(c.depth + has_attention_pool(c));
    for (uint64_t i = 0; i < layers.size(); ++i) layers[i] = i;
    const Maps maps(looking, picture, layers);

    std::vector<std::optional<uint64_t>> tokens{std::nullopt, c.prefix_tokens(), c.tokens() - 1};
    std::vector<std::optional<uint64_t>> choices(layers.begin(), layers.end());
    choices.push_back(std::nullopt);
    for (const auto& layer : choices) {
      for (const auto& token : tokens) {
        if (layer == c.depth && token) continue;
        INFO("layer " << (layer ? int(*layer) : -1) << ", token " << (token ? int(*token) : -1));
        const ColorMap map = token ? ColorMap::viridis : ColorMap::inferno;
        const PictureView::HeatChoice choice{.layer = layer, .token = token, .colors = color_table(map)};
        const std::vector<float> expected = maps.of(c, layer, token);
        check_close(looking.view.weights(choice), expected);
        const PictureView::Pixels pixels = looking.view.heat(choice);
        CHECK(looking.view.last_dispatches() == 1);
        CHECK(pixels.maps == (layer ? heads_of_maps(c, layer) + 1 : 1));
        check_centers(read(pixels), expected, c, map);
      }
    }
    test::require_no_validation_messages();
  }
}

TEST_CASE("a view's result has the bits of PictureRunner's, in f32 and in f16") {
  for (const char* fixture : test::of_turn(all_fixtures)) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      if (!test::stores(dtype)) continue;
      INFO(fixture << " " << name_of(dtype));
      Looking looking(fixture, {.dtype = dtype});
      for (const auto& [width, height] : {std::pair<uint32_t, uint32_t>{50, 33}, {640, 480}, {7, 90}}) {
        const Picture picture = noise(width, width, height);
        REQUIRE(looking.view.look(picture, "picture"));
        const std::vector<float> expected = runner_result(looking, picture, dtype);
        CHECK(std::ranges::equal(looking.view.result(), expected));
        CHECK(looking.view.seconds() > 0);
        CHECK(looking.view.region().width > 0);
      }
      if (dtype == DType::f16) {
        // The weights are those of queries and keys in 16 bits.
        const auto sums = looking.view.weights({.layer = 0, .token = 0});
        CHECK(std::ranges::all_of(sums, [](float weight) { return weight >= 0 && weight <= 1; }));
      }
    }
  }
  test::require_no_validation_messages();
}

TEST_CASE("a view's features are the principal components of the patches' tokens") {
  for (const char* fixture : test::of_turn(all_fixtures)) {
    INFO(fixture);
    Looking looking(fixture);
    const ViTConfig& c = looking.config();
    const Picture picture = noise(5, 61, 40);
    REQUIRE(looking.view.look(picture, "picture"));
    const PictureView::Pixels pixels = *looking.view.principal_colors();
    CHECK(looking.view.last_dispatches() > 0);
    CHECK(pixels.width == c.grid_width());
    CHECK(pixels.height == c.grid_height());
    const std::vector<uint32_t> found = read(pixels);
    looking.view.principal_colors();
    CHECK(looking.view.last_dispatches() == 0);

    std::vector<double> tokens;
    PictureRunnerOptions options;
    options.result = Result::tokens;
    PictureRunner runner(*test::test_device().pipelines, looking.model, looking.preprocess, options,
                         [&](uint64_t, std::span<const float> r) { tokens.assign(r.begin(), r.end()); });
    runner.add(picture, "picture");
    runner.finish();
    const auto expected = reference::principal_colors(tokens, c.dim, c.prefix_tokens(), c.patches());
    REQUIRE(found.size() == expected.size());
    size_t wrong = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      for (uint32_t bit = 0; bit < 32; bit += 8)
        wrong +=
            std::abs(int(found[i] >> bit & 255) - int(static_cast<uint32_t>(expected[i]) >> bit & 255)) > 1;
    }
    CHECK(wrong == 0);
    test::require_no_validation_messages();
  }
}

TEST_CASE("a view that was stopped shows nothing, and looks again") {
  Looking looking("timm_vit", {.plan = {.slice_seconds = 1e-5}});
  PictureView& view = looking.view;
  const Picture first = noise(1, 40, 40), second = noise(2, 80, 30);
  CHECK_FALSE(view.has_picture());
  CHECK_THROWS_WITH(view.heat({.layer = 0}), Catch::Matchers::ContainsSubstring("not looked"));
  CHECK_THROWS_AS(view.principal_colors(), Error);
  // While weights are loaded, and shaders compiled where nobody needed them before.
  int asked = 0;
  CHECK_FALSE(view.look(first, "first", {}, [&](double) { return ++asked < 3; }));
  CHECK(asked == 3);
  CHECK_FALSE(view.has_picture());
  REQUIRE(view.look(first, "first", {}, [](double) { return true; }));
  CHECK(std::ranges::equal(view.result(), runner_result(looking, first)));
  // There is nothing to prepare any more.
  REQUIRE(view.look(first, "first", {}, [](double) { return false; }));
  const std::vector<float> before = view.weights({.layer = 1});
  double reached = 0;
  CHECK_FALSE(view.look(second, "second", [&](double share) {
    reached = share;
    return share < 0.5;
  }));
  CHECK(reached >= 0.5);
  CHECK(reached < 1);
  CHECK_FALSE(view.has_picture());
  CHECK_THROWS_AS(view.result(), Error);
  REQUIRE(view.look(second, "second", [](double) { return true; }));
  CHECK(view.weights({.layer = 1}) != before);
  CHECK(std::ranges::equal(view.result(), runner_result(looking, second)));
  // Rollout and components can be stopped, too, and leave what is seen.
  const std::vector<float> now = view.weights({.layer = 1});
  CHECK_FALSE(view.roll_out([](double) { return false; }));
  CHECK_FALSE(view.principal_colors([](double) { return false; }).has_value());
  CHECK(view.principal_colors()->width == looking.config().grid_width());
  CHECK(view.has_picture());
  CHECK(view.weights({.layer = 1, .colors = color_table(ColorMap::grey)}) == now);
  REQUIRE(view.look(first, "first"));
  CHECK(view.weights({.layer = 1}) == before);
  test::require_no_validation_messages();
}

TEST_CASE("a profile can be stopped, and leaves what is seen") {
  test::skip_without_timestamps();
  Looking looking("timm_vit", {.plan = {.slice_seconds = 1e-5}});
  PictureView& view = looking.view;
  REQUIRE(view.look(noise(1, 40, 40), "picture"));
  const std::vector<float> before = view.weights({.layer = 1});
  CHECK_FALSE(view.profile([](double) { return false; }).has_value());
  CHECK(view.has_picture());
  CHECK(view.weights({.layer = 1, .colors = color_table(ColorMap::grey)}) == before);
  const std::optional<Profile> profile = view.profile([](double) { return true; });
  REQUIRE(profile.has_value());
  CHECK(profile->step_seconds.size() == view.executable().plan().steps.size());
  REQUIRE(view.look(noise(2, 40, 40), "another"));
  CHECK(view.weights({.layer = 1}) != before);
  test::require_no_validation_messages();
}

TEST_CASE("pixels stay for their owner when a larger picture makes the view anew") {
  Looking looking("timm_vit");
  REQUIRE(looking.view.look(noise(1, 40, 40), "small"));
  const PictureView::Pixels map = looking.view.heat({.layer = 0, .colors = color_table(ColorMap::viridis)});
  const PictureView::Pixels features = *looking.view.principal_colors();
  const std::vector<uint32_t> painted = read(map), found = read(features);
  REQUIRE(looking.view.look(noise(2, 900, 700), "large"));
  CHECK(looking.view.heat({.layer = 1, .colors = color_table(ColorMap::grey)}).buffer != map.buffer);
  CHECK(looking.view.principal_colors()->buffer != features.buffer);
  CHECK(read(map) == painted);
  CHECK(read(features) == found);
  test::require_no_validation_messages();
}

TEST_CASE("models whose maps can't be drawn are refused by why") {
  test::test_device();
  for (const auto& [name, why] :
       {std::pair("timm_branches", "attentions side by side"), std::pair("timm_differential", "differential"),
        std::pair("timm_cait", "heads talk")})
    CHECK_THROWS_WITH(Looking(name), Catch::Matchers::ContainsSubstring(why));
}

TEST_CASE("a picture that is refused leaves what is seen") {
  Looking looking("timm_vit");
  REQUIRE(looking.view.look(noise(1, 40, 40), "first"));
  CHECK_THROWS_WITH(looking.view.look(Picture{300'000'000, 1, {}}, "thin.png"),
                    Catch::Matchers::ContainsSubstring("thin.png"));
  CHECK(looking.view.has_picture());
  CHECK_THROWS_WITH(looking.view.heat({.layer = 99}), Catch::Matchers::ContainsSubstring("the layer is 99"));
  CHECK_THROWS_WITH(looking.view.heat({.layer = 0, .token = 999}),
                    Catch::Matchers::ContainsSubstring("the token is 999"));
  CHECK_THROWS_WITH(PictureView(*test::test_device().pipelines, looking.model, profile_named("timm", 48, 48)),
                    Catch::Matchers::ContainsSubstring("48 x 48"));
  Looking pooled("hf_siglip");
  REQUIRE(pooled.view.look(noise(1, 40, 40), "first"));
  CHECK_THROWS_WITH(pooled.view.heat({.layer = pooled.config().depth, .token = 0}),
                    Catch::Matchers::ContainsSubstring("only the query"));
}

TEST_CASE("a picture that overflows f16 is looked at again with what overflows in f32") {
  test::skip_without_f16();
  const Model model = open_model(
      {.model = fixtures / "timm_large_hidden" / "model.safetensors", .arch = {}, .set = {"heads=2"}});
  std::vector<std::string> said;
  PictureView view(
      *test::test_device().pipelines, model, profile_named("timm", 16, 16),
      {.dtype = DType::f16, .warn = [&](const std::string& sentence) { said.push_back(sentence); }});
  // Told to stop at every question until the first recording is there, and then at those that are left.
  int most = 0, asked = 0;
  const auto go_on = [&](double) { return ++asked <= most; };
  for (; !view.look(noise(0, 60, 90), "picture", {}, go_on); ++most, asked = 0) {
    CHECK(asked == most + 1);
    CHECK_FALSE(view.has_picture());
    REQUIRE(most < 10'000);
  }
  CHECK(most > 2);
  for (uint32_t i = 0; i < 2; ++i) {
    REQUIRE(view.look(noise(i, 60, 90), "picture"));
    CHECK(all_finite(view.result()));
    CHECK(view.weights({.layer = 0}).size() == 3 * model.config.patches());
  }
  REQUIRE(said.size() == 1);
  test::require_no_validation_messages();
}

}  // namespace vitrine

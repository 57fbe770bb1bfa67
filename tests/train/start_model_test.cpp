// What a training keeps of the model that it begins with.
#include "train/start_model.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>

#include "model/files/parameter_values.h"
#include "runtime/util/error.h"
#include "train/run/feature_cache.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

ViTConfig tiny(uint64_t classes) {
  return {.image_height = 8,
          .image_width = 8,
          .patch_height = 4,
          .patch_width = 4,
          .dim = 48,
          .depth = 1,
          .heads = 2,
          .classes = classes};
}

Model model_of(const ViTConfig& config, std::vector<std::string> names = {}) {
  Model model{"M", "timm", config, random_weights(config, 3)};
  if (!names.empty()) model.labels = Labels(std::move(names));
  return model;
}

std::vector<float> values_of(ConstantSource& source, const Parameter& parameter) {
  std::vector<float> values(parameter.shape.elements());
  read_floats(source, parameter, values);
  return values;
}

const Parameter& named(const std::vector<Parameter>& parameters, const std::string& name) {
  return *std::ranges::find(parameters, name, &Parameter::name);
}

TEST_CASE("a head stays where its classes are those of the data, and only there") {
  const std::vector<std::string> pets{"cat", "dog", "eel"}, other{"cat", "dog", "emu"};
  struct Case {
    Model model;
    WantedClasses wanted;
    const char* why;  // there is a new head; null: it is kept
  };
  std::vector<Case> cases;
  cases.push_back({model_of(tiny(3), pets), {3, pets}, nullptr});
  cases.push_back({model_of(tiny(3), pets), {3, {}}, nullptr});
  cases.push_back({model_of(tiny(3)), {3, {}}, nullptr});
  cases.push_back({model_of(tiny(3), pets), {3, other}, "\"eel\", the data's \"emu\""});
  cases.push_back({model_of(tiny(3)), {3, pets}, "nothing says"});
  cases.push_back({model_of(tiny(3), pets), {4, {}}, "is for 3 classes, the data has 4"});
  cases.push_back({model_of(tiny(0)), {3, pets}, "has no head"});
  for (auto& [model, wanted, why] : cases) {
    const uint64_t before = model.config.classes;
    const StartModel start = start_model(std::move(model), wanted, HeadInit::normal, 5);
    INFO(start.said);
    CHECK(start.config.classes == wanted.count);
    CHECK(start.new_parameters.empty() == (why == nullptr));
    CHECK_THAT(start.said, ContainsSubstring("kept"));
    if (why)
      CHECK_THAT(start.said, ContainsSubstring(why) &&
                                 ContainsSubstring("head.weight [" + std::to_string(wanted.count) + ", 48]"));
    CHECK((start.said.find("dropped") != std::string::npos) == (why && before > 0));
    const auto parameters = parameters_of(start.config);
    const auto drawn = random_weights(tiny(3), 3);
    for (const Parameter& parameter : parameters) {
      const bool fresh = why && parameter.name.starts_with("head");
      if (!fresh) CHECK(values_of(*start.weights, parameter) == values_of(*drawn, parameter));
    }
    if (!why) continue;
    double square = 0;
    const auto weight = values_of(*start.weights, named(parameters, "head.weight"));
    for (const float value : weight) square += double{value} * value;
    CHECK_THAT(std::sqrt(square / static_cast<double>(weight.size())), WithinRel(0.02, 0.15));
    for (const float value : values_of(*start.weights, named(parameters, "head.bias"))) CHECK(value == 0);
  }
}

TEST_CASE("a new head may begin with zeros, and else is its seed's") {
  const auto head = [](HeadInit init, uint64_t seed) {
    const StartModel start = start_model(model_of(tiny(2)), {3, {}}, init, seed);
    return values_of(*start.weights, named(parameters_of(start.config), "head.weight"));
  };
  CHECK(std::ranges::all_of(head(HeadInit::zero, 1), [](float value) { return value == 0; }));
  CHECK(head(HeadInit::normal, 1) == head(HeadInit::normal, 1));
  CHECK(head(HeadInit::normal, 1) != head(HeadInit::normal, 2));
}

TEST_CASE("both heads of a distilled model are new, and a projection in front of a head goes with it") {
  ViTConfig distilled = tiny(2);
  distilled.distillation_token = distilled.distilled_head = true;
  const StartModel two = start_model(model_of(distilled), {3, {}}, HeadInit::normal, 0);
  CHECK(two.new_parameters ==
        std::vector<std::string>{"head.weight", "head.bias", "head_dist.weight", "head_dist.bias"});
  CHECK(two.config.distilled_head);
  ViTConfig clip = tiny(0);
  clip.embedding_size = 16;
  const StartModel tower = start_model(model_of(clip), {3, {}}, HeadInit::normal, 0);
  CHECK(tower.config.embedding_size == 0);
  CHECK(tower.config.feature_width() == 48);
  CHECK_THAT(tower.said, ContainsSubstring("dropped: the projection"));
}

TEST_CASE("the first field that isn't the model's is named") {
  const StartModel start = start_model(model_of(tiny(3)), {3, {}}, HeadInit::normal, 0);
  ViTConfig wanted = start.config;
  wanted.dropout = wanted.attention_dropout = wanted.stochastic_depth = 0.1;
  wanted.init = InitRule::torch;
  wanted.mlp_hidden = 192;  // what 0 stands for
  CHECK_NOTHROW(require_same_model(start, wanted, "c.json"));
  wanted.heads = 4;
  wanted.eps = 1e-5;
  try {
    require_same_model(start, wanted, "c.json");
    FAIL("nothing was said");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    CHECK_THAT(error.what(), ContainsSubstring("c.json: heads is 4, expected 2"));
  }
}

TEST_CASE("weights of 16 bits become floats") {
  class Halves : public ConstantSource {
   public:
    ConstantParts find(const std::string&, const Shape&, DType) override {
      return {{DType::f16, std::as_bytes(std::span(f16_))}, {DType::bf16, std::as_bytes(std::span(bf16_))}};
    }

   private:
    uint16_t f16_[2]{0x3C00, 0xC100}, bf16_[1]{0x3F40};
  } source;
  const Parameter parameter{.name = "w", .shape = {3}};
  CHECK(values_of(source, parameter) == std::vector<float>{1.0f, -2.5f, 0.75f});
  const Parameter narrow{.name = "w", .shape = {2}};
  CHECK_THROWS_AS(values_of(source, narrow), Error);
}

// Twelve samples, of which each pixel is the sample's number.
class Numbered : public Dataset {
 public:
  Numbered() {
    name_ = "numbered";
    shape_ = {1, 1, 2};
    classes_ = 4;
    for (uint32_t i = 0; i < 13; ++i) labels_.push_back(i % 4);
  }
  void read(uint64_t i, std::span<uint8_t> pixels) const override {
    std::ranges::fill(pixels, static_cast<uint8_t>(i));
  }
};

TEST_CASE("features come in the order in which the pictures would") {
  const Numbered data;
  FeatureCache cache(data, 2, {.batch = 5, .part = 5}, 77);
  for (int i = 0; i < 13; ++i) {
    CHECK_FALSE(cache.complete());
    const std::vector<float> row(2, static_cast<float>(i));
    cache.add(row);
  }
  CHECK(cache.complete());
  CHECK_THROWS_AS(cache.add(std::vector<float>(2)), Error);
  BatchLoader loader(data, {.batch_size = 5, .seed = 77, .end_epoch = 3});
  std::vector<uint8_t> images(10);
  std::vector<float> features(10);
  std::vector<uint32_t> labels(5), cached(5);
  int batches = 0;
  while (const auto made = loader.next(images, labels)) {
    const Batch batch = cache.fill(made->epoch, made->index, features, cached);
    REQUIRE(batch.size == made->size);
    for (size_t i = 0; i < batch.size; ++i) {
      CHECK(features[2 * i] == static_cast<float>(images[2 * i]));
      CHECK(cached[i] == labels[i]);
    }
    ++batches;
  }
  CHECK(batches == 9);
}

TEST_CASE("the recipe's rate grows with the root of the batch, and what is new learns faster") {
  CHECK_THAT(fine_tuning_recipe("all", 256).lr, WithinRel(5e-4, 1e-9));
  CHECK_THAT(fine_tuning_recipe("last:2", 64).lr, WithinRel(2.5e-4, 1e-9));
  CHECK_THAT(fine_tuning_recipe("head", 64).lr, WithinRel(2.5e-3, 1e-9));
  CHECK(fine_tuning_recipe("all", 32).flip);
  CHECK_FALSE(fine_tuning_recipe("head", 32).flip);
  CHECK(fine_tuning_recipe("last:2", 32).random_resized_crop.has_value());
  CHECK_FALSE(fine_tuning_recipe("head", 32).random_resized_crop.has_value());
}

}  // namespace
}  // namespace vitrine

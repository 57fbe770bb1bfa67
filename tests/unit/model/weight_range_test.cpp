#include "model/run/weight_range.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <map>

#include "model/vit/parameters.h"
#include "runtime/util/half.h"

using namespace vitrine;

namespace {

class Given : public ConstantSource {
 public:
  std::map<std::string, std::vector<float>> values;
  DType dtype = DType::f32;

  ConstantParts find(const std::string& name, const Shape& shape, DType) override {
    std::vector<float>& found = values[name];
    if (found.empty()) found.assign(shape.elements(), 0.25f);
    if (dtype == DType::f32) return {{DType::f32, std::as_bytes(std::span(found))}};
    bits_.resize(found.size());
    f32_to_bf16(found, bits_);
    return {{DType::bf16, std::as_bytes(std::span(bits_))}};
  }

 private:
  std::vector<uint16_t> bits_;
};

ViTConfig config(bool per_head) {
  ViTConfig c;
  c.image_height = c.image_width = 8;
  c.patch_height = c.patch_width = 4;
  c.dim = 6;
  c.depth = 1;
  c.heads = 2;
  c.classes = 3;
  c.per_head_maps = per_head;
  return c;
}

float range_of(const Model& model, const std::string& name) {
  const auto ranges = weight_ranges(model);
  const auto found = std::ranges::find(ranges, name, &WeightRange::constant);
  REQUIRE(found != ranges.end());
  return found->largest;
}

}  // namespace

TEST_CASE("the largest of each matrix is found in every type, infinities left out") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Model model{.config = config(false), .constants = std::make_unique<Given>()};
    Given& given = static_cast<Given&>(*model.constants);
    given.dtype = dtype;
    given.values["head.weight"] = std::vector<float>(18, 1);
    given.values["head.weight"][17] = -131072;
    given.values["head.weight"][3] = INFINITY;
    given.values["head.weight"][4] = std::nanf("");
    CHECK(range_of(model, "head.weight") == 131072);
    CHECK(range_of(model, "blocks.0.mlp.fc1.weight") == 0.25f);
  }
}

TEST_CASE("an attention pool's query is a constant and its keys are bounded by the final norm") {
  ViTConfig c = config(false);
  c.pool = Pool::attention;
  Model model{.config = c, .constants = std::make_unique<Given>()};
  Given& given = static_cast<Given&>(*model.constants);
  given.values["attn_pool.latent"] = {1, 2, 3, -4, 5, 6};
  given.values["attn_pool.q.weight"] = std::vector<float>(36, 2);
  given.values["attn_pool.q.bias"] = std::vector<float>(6, 3);
  given.values["attn_pool.kv.weight"] = std::vector<float>(72, 1);
  for (size_t i = 36; i < 72; ++i) given.values["attn_pool.kv.weight"][i] = 1000;
  given.values["attn_pool.kv.bias"] = std::vector<float>(12, -1);
  given.values["norm.weight"] = std::vector<float>(6, 10);
  given.values["norm.bias"] = std::vector<float>(6, -2);
  CHECK(range_of(model, "attn_pool.latent") == 6);
  CHECK(range_of(model, "attn_pool.q") == 2 * 13 + 3);
  CHECK(std::abs(range_of(model, "attn_pool.k") - (60 + 12 + 1)) <= 1e-4);
}

TEST_CASE("queries and keys are bounded by what the norm in front of them can give, and no more") {
  for (const bool per_head : {false, true}) {
    Model model{.config = config(per_head), .constants = std::make_unique<Given>()};
    Given& given = static_cast<Given&>(*model.constants);
    given.values["blocks.0.norm1.weight"] = {1, -2, 3, 0.5, 1, 2};
    given.values["blocks.0.norm1.bias"] = {0.1f, 0, -0.2f, 0, 0.3f, 0};
    const std::string at = per_head ? "blocks.0.attn.q" : "blocks.0.attn.qkv";
    const size_t width = per_head ? 3 : 6, rows = per_head ? 6 : 12;
    std::vector<float>& weight = given.values[at + ".weight"];
    weight.assign(width * (per_head ? 6 : 18), 0);
    std::vector<float>& bias = given.values[at + ".bias"];
    bias.assign(per_head ? 6 : 18, 0.5f);
    for (size_t i = 0; i < width * rows; ++i) weight[i] = std::sin(static_cast<float>(7 * i + 1));
    // What follows in a fused projection are the values, which have no part in it.
    for (size_t i = width * rows; i < weight.size(); ++i) weight[i] = 1000;
    const auto& gamma = given.values["blocks.0.norm1.weight"];
    const auto& beta = given.values["blocks.0.norm1.bias"];
    // The vectors of length sqrt(6) that make each row the largest and the smallest it can be.
    double largest = 0;
    for (size_t row = 0; row < rows; ++row) {
      const size_t first = per_head ? row / 3 * 3 : 0;
      double length = 0, constant = 0.5;
      for (size_t j = 0; j < width; ++j) {
        const double w = weight[row * width + j];
        length += w * gamma[first + j] * w * gamma[first + j];
        constant += w * beta[first + j];
      }
      largest = std::max(
          {largest, std::abs(constant + std::sqrt(6 * length)), std::abs(constant - std::sqrt(6 * length))});
    }
    const float found = range_of(model, per_head ? at : "blocks.0.attn.qk");
    CHECK(std::abs(found - largest) <= 1e-5 * largest);
    CHECK(std::abs(range_of(model, "blocks.0.norm1") - (3 * std::sqrt(6.0) + 0.2)) <= 1e-5);
  }
}

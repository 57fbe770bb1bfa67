#include "model/vit/init_weights.h"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>

#include "model/vit/presets.h"
#include "runtime/util/philox.h"

using namespace vitrine;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

std::vector<float> values_of(const ViTConfig& config, std::string_view name, uint64_t seed) {
  for (const Parameter& parameter : parameters_of(config)) {
    if (parameter.name != name) continue;
    std::vector<float> values(parameter.shape.elements());
    init_parameter(parameter, config, seed, values);
    return values;
  }
  FAIL("no parameter " << name);
  return {};
}

struct Moments {
  double mean = 0, sigma = 0, excess_kurtosis = 0;
};
Moments moments_of(const std::vector<float>& values) {
  const double n = static_cast<double>(values.size());
  Moments m;
  for (const float v : values) m.mean += v / n;
  double second = 0, fourth = 0;
  for (const float v : values) {
    const double d = v - m.mean;
    second += d * d / n;
    fourth += d * d * d * d / n;
  }
  m.sigma = std::sqrt(second);
  m.excess_kurtosis = fourth / (second * second) - 3;
  return m;
}

}  // namespace

TEST_CASE("Philox gives the published test vectors") {
  using Block = Philox::Block;
  CHECK(Philox::block({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox::block({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
        Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox::block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the normal quantile inverts the normal distribution") {
  CHECK(normal_quantile(0.5) == 0);
  for (const double p : {1e-10, 1e-5, 0.01, 0.074, 0.3, 0.6, 0.9, 0.99999}) {
    INFO(p);
    CHECK_THAT(0.5 * std::erfc(-normal_quantile(p) / std::sqrt(2.0)), WithinRel(p, 1e-13));
  }
  CHECK_THAT(normal_quantile(0.975), WithinAbs(1.9599639845400545, 1e-14));
}

TEST_CASE("weights are drawn as the paper's model draws them") {
  const ViTConfig config = preset("vit_tiny_patch16_224");
  // A mean of n numbers strays by σ/sqrt(n), a σ by σ/sqrt(2n): four of those are allowed.
  const auto check_normal = [&](const char* name, double sigma) {
    INFO(name);
    const std::vector<float> values = values_of(config, name, 7);
    const Moments m = moments_of(values);
    const double n = static_cast<double>(values.size());
    CHECK_THAT(m.mean, WithinAbs(0, 4 * sigma / std::sqrt(n)));
    CHECK_THAT(m.sigma, WithinAbs(sigma, 4 * sigma / std::sqrt(2 * n)));
    CHECK_THAT(m.excess_kurtosis, WithinAbs(0, 4 * std::sqrt(24 / n)));
  };
  check_normal("blocks.3.attn.qkv.weight", 0.01);
  check_normal("head.weight", 0.01);
  check_normal("pos_embed", 0.02);
  check_normal("cls_token", 0.02);
  check_normal("patch_embed.proj.weight", std::sqrt(2.0 / (192 * 16 * 16)));
  for (const float v : values_of(config, "blocks.3.attn.qkv.bias", 7)) REQUIRE(v == 0);
  for (const float v : values_of(config, "norm.weight", 7)) REQUIRE(v == 1);
  for (const float v : values_of(config, "norm.bias", 7)) REQUIRE(v == 0);
  for (const float v : values_of(preset("deit3_small_patch16_224"), "blocks.0.ls1.gamma", 7))
    REQUIRE(v == 1e-6f);
}

TEST_CASE("PyTorch's rule draws uniform numbers bounded by the fan-in") {
  const ViTConfig config = preset("myvit_mnist");
  float low = 0, high = 0;
  for (const char* name : {"blocks.0.attn.q.weight", "blocks.0.attn.k.weight", "blocks.1.attn.v.bias"}) {
    for (const float v : values_of(config, name, 1)) low = std::min(low, v), high = std::max(high, v);
  }
  CHECK(low >= -0.5f);
  CHECK(high <= 0.5f);
  CHECK(high - low > 0.8f);
  for (const float v : values_of(config, "cls_token", 1)) CHECK((v >= 0 && v < 1));
  CHECK(values_of(config, "pos_embed", 1) == sincos_positions(50, 8));
}

TEST_CASE("weights depend on seed and name alone") {
  ViTConfig config = preset("vit_tiny_patch16_224");
  const auto first = values_of(config, "blocks.1.mlp.fc1.weight", 3);
  CHECK(first == values_of(config, "blocks.1.mlp.fc1.weight", 3));
  CHECK(first != values_of(config, "blocks.1.mlp.fc1.weight", 4));
  CHECK(first != values_of(config, "blocks.2.mlp.fc1.weight", 3));
  config.depth = 2;
  config.distillation_token = true;
  CHECK(first == values_of(config, "blocks.1.mlp.fc1.weight", 3));
  const RandomStream stream(0x123456789abcdef0ull, 42);
  CHECK(stream.block(5) == Philox::block({5, 0, 42, 0}, {0x9abcdef0u, 0x12345678u}));
}

TEST_CASE("the first and last numbers of some parameters never change") {
  const auto check_ends = [](const char* arch, const char* name, uint32_t first, uint32_t last) {
    const std::vector<float> values = values_of(preset(arch), name, 42);
    INFO(name << " " << std::hex << std::bit_cast<uint32_t>(values.front()) << " "
              << std::bit_cast<uint32_t>(values.back()));
    CHECK(std::bit_cast<uint32_t>(values.front()) == first);
    CHECK(std::bit_cast<uint32_t>(values.back()) == last);
  };
  check_ends("vit_tiny_patch16_224", "cls_token", 0xbc9b9a40, 0x3c681424);
  check_ends("vit_tiny_patch16_224", "patch_embed.proj.weight", 0xbbd17f51, 0x3ae8248e);
  check_ends("vit_base_patch16_224", "blocks.11.mlp.fc2.weight", 0x3b48ac06,
             0xbc212b13);  // made by several threads
  check_ends("myvit_mnist", "blocks.1.attn.v.weight", 0xbddb3a86, 0x3c699bce);
}

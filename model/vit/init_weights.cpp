#include "model/vit/init_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <thread>
#include <vector>

#include "model/vit/fixed_values.h"
#include "runtime/util/philox.h"

namespace vitrine {
namespace {

// FNV-1a: which stream of random numbers belongs to a name.
uint64_t hash_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

// Gives each element the value that `draw` makes of its random word, on as many threads as pay.
template <typename Draw>
void fill_random(std::span<float> values, const RandomStream& stream, Draw draw) {
  const auto fill = [&](uint64_t begin, uint64_t end) {  // begin is a multiple of 4
    for (uint64_t i = begin; i < end; i += 4) {
      const Philox::Block words = stream.block(i / 4);
      for (uint64_t j = i; j < std::min(i + 4, end); ++j) values[j] = draw(words[j - i]);
    }
  };
  constexpr uint64_t worth_a_thread = 1 << 18;
  const uint64_t threads =
      std::min<uint64_t>(std::max(1u, std::thread::hardware_concurrency()), values.size() / worth_a_thread);
  if (threads < 2) return fill(0, values.size());
  const uint64_t share = (values.size() / threads + 3) / 4 * 4;
  std::vector<std::jthread> workers;
  for (uint64_t begin = 0; begin < values.size(); begin += share) {
    workers.emplace_back(fill, begin, std::min<uint64_t>(begin + share, values.size()));
  }
}

void fill_normal(std::span<float> values, const RandomStream& stream, double sigma) {
  fill_random(values, stream,
              [&](uint32_t word) { return static_cast<float>(sigma * normal_quantile(uniform_from(word))); });
}

// Normal with σ `sigma`, cut off at ±2 (not ±2σ) as PyTorch's trunc_normal_ does by default. 32-bit
// uniform numbers reach 6.4 σ, so for the σ in use here the cut is never reached.
void fill_truncated_normal(std::span<float> values, const RandomStream& stream, double sigma) {
  fill_random(values, stream, [&](uint32_t word) {
    return static_cast<float>(std::clamp(sigma * normal_quantile(uniform_from(word)), -2.0, 2.0));
  });
}

void fill_uniform(std::span<float> values, const RandomStream& stream, double low, double high) {
  fill_random(values, stream,
              [&](uint32_t word) { return static_cast<float>(low + (high - low) * uniform_from(word)); });
}

bool is_token(Module module) {
  return module == Module::class_token || module == Module::distillation_token ||
         module == Module::registers || module == Module::detection_tokens || module == Module::pool_latent;
}

bool is_scale(Module module) {
  return module == Module::scale1 || module == Module::scale2 || module == Module::class_scale1 ||
         module == Module::class_scale2;
}

bool is_lambda(Module module) {
  return module == Module::lambda_q1 || module == Module::lambda_k1 || module == Module::lambda_q2 ||
         module == Module::lambda_k2;
}

// How many numbers one output of the module that owns the parameter is made of.
uint64_t fan_in(const Parameter& parameter, const ViTConfig& c) {
  switch (parameter.module) {
    case Module::patch:
      return c.stem_channels() * (c.patch_height / c.stem_stride()) * (c.patch_width / c.stem_stride());
    case Module::talking_before:
    case Module::talking_after:
      return c.heads;
    case Module::q:
    case Module::k:
    case Module::v:
      return c.dim / c.heads;
    case Module::projection:
      return c.value_columns();
    case Module::fc2:
    case Module::class_fc2:
    case Module::pool_fc2:
      return c.mlp_width();
    case Module::neck_convolution:
      return parameter.shape.elements() / c.neck;
    case Module::pre_logits:
    case Module::embedding:
      return c.pooled_width();
    case Module::head:
      return c.feature_width();
    default:
      return c.dim;
  }
}

// As the paper on mixed axes draws them: of each head a direction at random and the one at a right angle to
// it.
void fill_frequencies(const ViTConfig& c, const RandomStream& stream, std::span<float> values) {
  const uint64_t pairs = c.head_key_width() / 2, half = pairs / 2, axis = values.size() / 2;
  std::vector<float> turns(axis / pairs);
  fill_random(turns, stream,
              [](uint32_t word) { return static_cast<float>(2 * std::numbers::pi * uniform_from(word)); });
  for (uint64_t i = 0; i < axis; ++i) {
    const uint64_t pair = i % pairs;
    const double size =
        std::pow(c.rotary_base, -static_cast<double>(pair % half) / static_cast<double>(half));
    const double turn = static_cast<double>(turns[i / pairs]) + (pair < half ? 0 : std::numbers::pi / 2);
    values[i] = static_cast<float>(size * std::cos(turn));
    values[axis + i] = static_cast<float>(size * std::sin(turn));
  }
}

// Convolutions as ResNet's, norms that change nothing.
void fill_stem(const Parameter& parameter, const RandomStream& stream, std::span<float> values) {
  if (parameter.shape.rank() == 4) {
    const auto fan_out = static_cast<double>(parameter.shape.elements() / parameter.shape[1]);
    fill_normal(values, stream, std::sqrt(2 / fan_out));
  } else {
    const bool ones = parameter.leaf == Leaf::weight || parameter.name.ends_with(".running_var");
    std::ranges::fill(values, ones ? 1.0f : 0.0f);
  }
}

}  // namespace

void init_parameter(const Parameter& parameter, const ViTConfig& c, uint64_t seed, std::span<float> values) {
  const RandomStream stream(seed, hash_of(parameter.name));
  if (parameter.fixed) {
    std::ranges::copy(fixed_values(parameter, c, {}), values.begin());
  } else if (parameter.module == Module::stem) {
    fill_stem(parameter, stream, values);
  } else if (parameter.module == Module::rotary_frequencies) {
    fill_frequencies(c, stream, values);
  } else if (parameter.module == Module::rotary_class) {
    fill_normal(values, stream, 1);
  } else if (parameter.is_norm()) {
    std::ranges::fill(values, parameter.leaf == Leaf::weight ? 1.0f : 0.0f);
  } else if (is_scale(parameter.module)) {
    std::ranges::fill(values, static_cast<float>(c.layer_scale_init));
  } else if (is_lambda(parameter.module)) {
    fill_normal(values, stream, 0.1);
  } else if (parameter.module == Module::positions || parameter.module == Module::block_positions) {
    fill_truncated_normal(values, stream, 0.02);
  } else if (is_token(parameter.module)) {
    if (c.init == InitRule::torch) {
      fill_uniform(values, stream, 0, 1);
    } else {
      fill_truncated_normal(values, stream, 0.02);
    }
  } else if (c.init == InitRule::torch) {
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in(parameter, c)));
    fill_uniform(values, stream, -bound, bound);
  } else if (parameter.leaf == Leaf::bias) {
    std::ranges::fill(values, 0.0f);
  } else if (parameter.module == Module::patch) {
    const double fan_out = static_cast<double>(c.dim * c.patch_height * c.patch_width);
    fill_normal(values, stream, std::sqrt(2 / fan_out));
  } else {
    fill_truncated_normal(values, stream, 0.01);
  }
}

void init_truncated_normal(std::string_view name, uint64_t seed, double sigma, std::span<float> values) {
  fill_truncated_normal(values, RandomStream(seed, hash_of(name)), sigma);
}

void init_uniform(std::string_view name, uint64_t seed, double bound, std::span<float> values) {
  fill_uniform(values, RandomStream(seed, hash_of(name)), -bound, bound);
}

}  // namespace vitrine

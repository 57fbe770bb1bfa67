#include "model/run/weight_range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numbers>
#include <span>

#include "model/vit/parameters.h"
#include "runtime/util/half.h"

namespace vitrine {
namespace {

// Calls `look` with the part's values, some thousands at a time.
template <typename Look>
void for_each_chunk(const ConstantPart& part, Look&& look) {
  constexpr size_t chunk = 4096;
  std::array<float, chunk> values;
  std::array<uint16_t, chunk> bits;
  const uint64_t element = size_of(part.dtype), count = part.bytes.size() / element;
  for (uint64_t at = 0; at < count; at += chunk) {
    const size_t length = std::min<uint64_t>(chunk, count - at);
    const std::byte* source = part.bytes.data() + at * element;
    const auto floats = std::span(values).first(length);
    if (part.dtype == DType::f32) {
      std::memcpy(values.data(), source, length * sizeof(float));
    } else {
      std::memcpy(bits.data(), source, length * sizeof(uint16_t));
      const auto halves = std::span(bits).first(length);
      part.dtype == DType::f16 ? f16_to_f32(halves, floats) : bf16_to_f32(halves, floats);
    }
    look(std::span<const float>(floats));
  }
}

float largest_of(const ConstantParts& parts) {
  float largest = 0;
  for (const ConstantPart& part : parts) {
    for_each_chunk(part, [&](std::span<const float> values) {
      for (const float value : values) {
        const float magnitude = std::abs(value);
        if (magnitude > largest && magnitude <= std::numeric_limits<float>::max()) largest = magnitude;
      }
    });
  }
  return largest;
}

class Bounds {
 public:
  explicit Bounds(const Model& model)
      : model_(model), root_(std::sqrt(static_cast<double>(model.config.dim))) {
    for (Parameter& parameter : parameters_of(model.config)) {
      std::string name = parameter.name;
      parameters_.emplace(std::move(name), std::move(parameter));
    }
  }

  std::vector<WeightRange> all() {
    std::vector<WeightRange> ranges;
    for (const auto& [name, parameter] : parameters_) {
      if (parameter.is_matrix() && parameter.learned() && !parameter.aside)
        ranges.push_back({name, largest_of(find(parameter))});
    }
    const ViTConfig& c = model_.config;
    for (uint64_t i = 0; i < c.depth; ++i) {
      const std::string at = "blocks." + std::to_string(i) + ".";
      if (c.block == BlockKind::parallel) {
        add_branch(ranges, at + "norm1", at + "attn", at + "norm1", at + "mlp");
      } else if (c.branches == 1) {
        add_branch(ranges, at + "norm1", at + "attn", at + "norm2", at + "mlp");
      }
      for (uint64_t branch = 0; c.branches > 1 && branch < c.branches; ++branch) {
        const std::string attention = at + "attns." + std::to_string(branch);
        const std::string mlp = at + "ffns." + std::to_string(branch);
        add_branch(ranges, attention + ".norm", attention + ".attn", mlp + ".norm", mlp + ".mlp");
      }
    }
    for (uint64_t i = 0; i < c.class_blocks; ++i) {
      const std::string at = "blocks_token_only." + std::to_string(i);
      ranges.push_back(normed(at + ".norm1", c.dim));
      ranges.push_back(normed(at + ".norm2", c.dim, at + ".mlp"));
      const std::vector<double> gamma = values(at + ".norm1.weight"), beta = values(at + ".norm1.bias");
      for (const char* map : {".attn.q", ".attn.k"})
        ranges.push_back(mapped(at + map, at + map, c.dim, gamma, beta));
    }
    if (model_.config.pool == Pool::attention) add_pool(ranges);
    return ranges;
  }

 private:
  // An attention and an MLP, and the norms in front of them.
  void add_branch(std::vector<WeightRange>& ranges, const std::string& norm1, const std::string& attention,
                  const std::string& norm2, const std::string& mlp) const {
    const ViTConfig& c = model_.config;
    ranges.push_back(normed(norm1, c.dim, attention));
    ranges.push_back(normed(norm2, c.dim, mlp));
    if (c.attention == AttentionKind::differential)
      ranges.push_back(normed(attention + ".sub_norm", c.head_value_width()));
    if (c.attention_norm) ranges.push_back(normed(attention + ".norm", c.value_columns()));
    if (c.mlp_norm) ranges.push_back(normed(mlp + ".norm", c.mlp_width()));
    if (c.post_norm) {  // nothing bounds what the blocks before have added up
      ranges.push_back({attention + ".qk", std::numeric_limits<float>::max(), true});
      return;
    }
    const std::vector<double> gamma = values(norm1 + ".weight"), beta = values(norm1 + ".bias");
    // Of a fused projection the last rows are the values, whose overflow shows by itself.
    const uint64_t rows = c.key_columns();
    if (c.per_head_maps) {
      ranges.push_back(mapped(attention + ".q", attention + ".q", rows, gamma, beta));
      ranges.push_back(mapped(attention + ".k", attention + ".k", rows, gamma, beta));
    } else {
      ranges.push_back(mapped(attention + ".qk", attention + ".qkv", 2 * rows, gamma, beta));
      // Of a pair that is turned, one may come to what both had.
      if (c.rotary != Rotary::none) ranges.back().largest *= std::numbers::sqrt2_v<float>;
    }
  }

  // The query of an attention pool is a constant; its keys come from the final norm.
  void add_pool(std::vector<WeightRange>& ranges) const {
    const std::vector<double> latent = values("attn_pool.latent");
    const std::vector<double> weight = values("attn_pool.q.weight"), bias = values("attn_pool.q.bias");
    double largest_latent = 0, largest_q = 0;
    for (size_t row = 0; row < latent.size(); ++row) {
      double sum = weight.empty() ? latent[row] : bias[row];
      for (size_t j = 0; j < latent.size() && !weight.empty(); ++j)
        sum += weight[row * latent.size() + j] * latent[j];
      largest_latent = std::max(largest_latent, std::abs(latent[row]));
      largest_q = std::max(largest_q, std::abs(sum));
    }
    ranges.push_back(bound("attn_pool.latent", largest_latent));
    ranges.push_back(bound("attn_pool.q", largest_q));
    if (model_.config.pool_mlp)
      ranges.push_back(normed("attn_pool.norm", model_.config.dim, "attn_pool.mlp"));
    if (model_.config.final_norm) {
      ranges.push_back(mapped("attn_pool.k", "attn_pool.kv", model_.config.dim, values("norm.weight"),
                              values("norm.bias")));
    } else {
      ranges.push_back({"attn_pool.k", std::numeric_limits<float>::max(), true});
    }
  }

  ConstantParts find(const Parameter& parameter) const {
    return model_.constants->find(parameter.name, parameter.shape, DType::f32);
  }
  std::vector<double> values(const std::string& name) const {
    const auto found = parameters_.find(name);
    std::vector<double> all;
    if (found == parameters_.end()) return all;
    for (const ConstantPart& part : find(found->second)) {
      for_each_chunk(
          part, [&](std::span<const float> chunk) { all.insert(all.end(), chunk.begin(), chunk.end()); });
    }
    return all;
  }
  static WeightRange bound(std::string name, double largest) {
    return {std::move(name), std::isfinite(largest) ? static_cast<float>(std::min(largest, 3e38)) : 0, true};
  }

  WeightRange normed(const std::string& norm, uint64_t width, const std::string& feeds = {}) const {
    const std::vector<double> gamma = values(norm + ".weight"), beta = values(norm + ".bias");
    const double root = std::sqrt(static_cast<double>(width));
    double largest = 0;
    for (size_t j = 0; j < gamma.size(); ++j)
      largest = std::max(largest, root * std::abs(gamma[j]) + (beta.empty() ? 0 : std::abs(beta[j])));
    WeightRange range = bound(norm, largest);
    range.feeds = feeds;
    return range;
  }

  // |w (gamma x + beta) + b| <= |x| |w gamma| + |w beta + b|, row by row.
  WeightRange mapped(std::string name, const std::string& at, uint64_t rows, const std::vector<double>& gamma,
                     const std::vector<double>& beta) const {
    const Shape& shape = parameters_.at(at + ".weight").shape;
    const std::vector<double> weight = values(at + ".weight"), bias = values(at + ".bias");
    const uint64_t width = shape[-1];
    double largest = 0;
    for (uint64_t row = 0; row < rows; ++row) {
      // A map of its own for each head sees that head's slice of the token.
      const uint64_t first = shape.rank() == 3 ? row / shape[1] * width : 0;
      double squares = 0, constant = bias.empty() ? 0 : bias[row];
      for (uint64_t j = 0; j < width; ++j) {
        const double w = weight[row * width + j], scaled = w * gamma[first + j];
        squares += scaled * scaled;
        if (!beta.empty()) constant += w * beta[first + j];
      }
      largest = std::max(largest, root_ * std::sqrt(squares) + std::abs(constant));
    }
    return bound(std::move(name), largest);
  }

  const Model& model_;
  double root_;
  std::map<std::string, Parameter> parameters_;
};

}  // namespace

std::vector<WeightRange> weight_ranges(const Model& model) { return Bounds(model).all(); }

}  // namespace vitrine

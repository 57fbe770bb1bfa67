#include "model/text/text_tower.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/moves/gather.h"
#include "runtime/ops/moves/reshape.h"
#include "runtime/util/error.h"

namespace vitrine {

TextTower::TextTower(const TextConfig& config)
    : ModuleBase(config.blocks, {}), width_(config.width), bias_(config.kind == TextKind::siglip) {
  for (uint64_t i = 0; i < config_.depth; ++i) {
    blocks_.emplace_back(config_, "blocks." + std::to_string(i), i);
    declare_all_of(blocks_.back());
  }
  declare_norm(Module::norm, "norm");
  declare_linear(bias_ ? Module::head : Module::embedding, "projection", width_, config_.dim, bias_);
}

ValueId TextTower::operator()(GraphBuilder& builder, ValueId tokens, ValueId rows) const {
  Graph& graph = builder.graph();
  ValueId x = tokens;
  for (const Block& block : blocks_) x = block(builder, x);
  const Shape shape = graph.value(x).shape;
  x = reshape(graph, "all_tokens", x, {shape[0] * shape[1], shape[2]});
  // The norm is of each token alone: only those are taken that count.
  x = gather(graph, "pooled", x, rows);
  const DType dtype = builder.dtype("projection");
  x = norm(builder, "norm", x, dtype);
  return matmul(graph, "projection", x, constant(builder, "projection.weight", dtype),
                {.bias = constant_if(bias_, builder, "projection.bias", dtype), .out = DType::f32});
}

void normalize(std::span<float> vector) {
  double square = 0;
  for (const float value : vector) square += static_cast<double>(value) * static_cast<double>(value);
  if (square == 0) return;
  const double length = std::sqrt(square);
  for (float& value : vector) value = static_cast<float>(static_cast<double>(value) / length);
}

std::vector<float> TextModel::logits(std::span<const float> picture, std::span<const float> texts) const {
  double square = 0;
  for (const float value : picture) square += static_cast<double>(value) * static_cast<double>(value);
  const double factor = square == 0 ? 0 : std::exp(log_scale) / std::sqrt(square);
  std::vector<float> result;
  for (size_t at = 0; at < texts.size(); at += picture.size()) {
    double dot = 0;
    for (size_t i = 0; i < picture.size(); ++i) {
      dot += static_cast<double>(picture[i]) * static_cast<double>(texts[at + i]);
    }
    result.push_back(static_cast<float>(factor * dot + bias));
  }
  return result;
}

std::vector<float> cosines(std::span<const float> rows, std::span<const float> vector) {
  std::vector<float> result;
  for (size_t at = 0; at < rows.size(); at += vector.size()) {
    double dot = 0, square = 0;
    for (size_t i = 0; i < vector.size(); ++i) {
      const double value = static_cast<double>(rows[at + i]);
      dot += value * static_cast<double>(vector[i]);
      square += value * value;
    }
    result.push_back(static_cast<float>(square == 0 ? 0 : dot / std::sqrt(square)));
  }
  return result;
}

std::vector<float> TextModel::probabilities(std::span<const float> logits) const {
  std::vector<double> values(logits.begin(), logits.end());
  if (config.kind == TextKind::siglip) {
    for (double& value : values) value = 1 / (1 + std::exp(-value));
  } else if (!values.empty()) {
    const double highest = *std::ranges::max_element(values);
    double sum = 0;
    for (double& value : values) sum += value = std::exp(value - highest);
    for (double& value : values) value /= sum;
  }
  return {values.begin(), values.end()};
}

}  // namespace vitrine

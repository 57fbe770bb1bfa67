#include "model/vit/graph_builder.h"

#include <algorithm>

#include "runtime/ops/elementwise/dropout.h"
#include "runtime/ops/elementwise/unary.h"
#include "shaders/lib/step_state.h"

namespace vitrine {

GraphBuilder::GraphBuilder(DType dtype, LayerTypes layers)
    : graph_(std::make_shared<Graph>()), dtype_(dtype), layers_(std::move(layers)) {}

GraphBuilder::GraphBuilder(LearnedParameters learned)
    : graph_(std::make_shared<Graph>()), dtype_(DType::f32), learned_(std::move(learned)) {
  if (learned_.training) step_ = graph_->input("step", {VITRINE_STEP_WORDS}, DType::u32);
}

DType GraphBuilder::dtype(std::string_view layer) const {
  if (std::ranges::find(asked_, layer) == asked_.end()) asked_.emplace_back(layer);
  const auto found = layers_.find(layer);
  return found == layers_.end() ? dtype_ : found->second;
}

ValueId GraphBuilder::constant(const Parameter& parameter, DType matrices) {
  if (const auto made = constants_.find(parameter.name); made != constants_.end()) return made->second;
  const auto learned = learned_.places.find(parameter.name);
  const std::string name = positions_grid_ && parameter.module == Module::positions
                               ? PositionsName{parameter.name, *positions_grid_}.text()
                               : parameter.name;
  const ValueId id =
      learned != learned_.places.end()
          ? graph_->state(parameter.name, parameter.shape, learned->second)
          : graph_->constant(name, parameter.shape, parameter.is_matrix() ? matrices : DType::f32);
  constants_.emplace(parameter.name, id);
  return id;
}

ValueId GraphBuilder::joined(std::span<const Parameter* const> parameters) {
  const Parameter& front = *parameters.front();
  const auto begin = learned_.places.find(front.name);
  if (begin == learned_.places.end()) return {};
  uint64_t rows = 0, next = begin->second.first;
  for (const Parameter* parameter : parameters) {
    const auto found = learned_.places.find(parameter->name);
    const bool fits = found != learned_.places.end() && found->second.buffer == begin->second.buffer &&
                      found->second.first == next &&
                      std::ranges::equal(parameter->shape.dims().subspan(1), front.shape.dims().subspan(1));
    if (!fits) return {};
    rows += parameter->shape[0];
    next += parameter->shape.elements();
  }
  std::vector<uint64_t> dims(front.shape.dims().begin(), front.shape.dims().end());
  dims[0] = rows;
  return graph_->state(front.name + " and others", Shape(dims), begin->second);
}

ValueId GraphBuilder::rows(const Parameter& parameter, uint64_t first, uint64_t count) {
  std::vector<uint64_t> dims(parameter.shape.dims().begin(), parameter.shape.dims().end());
  dims[0] = count;
  return graph_->constant(RowsName{parameter.name, first, count}.text(), Shape(dims));
}

std::span<const LowRankPair> GraphBuilder::pairs_of(std::string_view layer) const {
  const auto found = learned_.low_rank.layers.find(layer);
  if (found == learned_.low_rank.layers.end()) return {};
  return found->second;
}

ValueId GraphBuilder::low_rank(const std::string& node, ValueId x, const LowRankPair& pair,
                               const MatmulOptions& options) {
  x = dropout(node + ".lora_dropout", x, learned_.low_rank.dropout);
  ValueId narrow = matmul(*graph_, node + ".lora_A", x, constant(pair.down, DType::f32));
  narrow = scale(*graph_, node + ".lora_scale", narrow, learned_.low_rank.scale);
  return matmul(*graph_, node + ".lora_B", narrow, constant(pair.up, DType::f32), options);
}

ValueId GraphBuilder::dropout(std::string name, ValueId x, double rate) {
  if (!training() || rate == 0) return x;
  return vitrine::dropout(*graph_, std::move(name), x, step_, {.rate = rate, .stream = next_stream()});
}

ValueId GraphBuilder::drop_samples(std::string name, ValueId x, double rate) {
  if (!training() || rate == 0) return x;
  const Shape& shape = graph_->value(x).shape;
  return vitrine::dropout(*graph_, std::move(name), x, step_,
                          {.rate = rate, .stream = next_stream(), .group = shape.elements() / shape[0]});
}

}  // namespace vitrine

#include "model/graph_builder.h"

#include <algorithm>

namespace vitrine {

GraphBuilder::GraphBuilder(DType dtype, LayerTypes layers)
    : graph_(std::make_shared<Graph>()), dtype_(dtype), layers_(std::move(layers)) {}

DType GraphBuilder::dtype(std::string_view layer) const {
  if (std::ranges::find(asked_, layer) == asked_.end()) asked_.emplace_back(layer);
  const auto found = layers_.find(layer);
  return found == layers_.end() ? dtype_ : found->second;
}

ValueId GraphBuilder::constant(const Parameter& parameter, DType matrices) {
  if (const auto made = constants_.find(parameter.name); made != constants_.end()) return made->second;
  const ValueId id =
      graph_->constant(parameter.name, parameter.shape, parameter.is_matrix() ? matrices : DType::f32);
  constants_.emplace(parameter.name, id);
  return id;
}

}  // namespace vitrine

#include "model/vit/neck.h"

#include <utility>

#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/maps/neighbourhoods.h"
#include "runtime/ops/products/matmul.h"

namespace vitrine {

Neck::Neck(const ViTConfig& config, std::string name) : ModuleBase(config, std::move(name)) {
  declare_linear(Module::neck_linear, "0", config.neck, config.dim, false);
  declare_norm(Module::neck_norm1, "1", config.neck);
  declare(Module::neck_kernel, Leaf::whole, "2", {config.neck, config.neck * neck_side * neck_side});
  parameters_.back().fixed = true;
  declare(Module::neck_convolution, Leaf::weight, "2", {config.neck, config.neck, neck_side, neck_side});
  parameters_.back().aside = true;
  declare_norm(Module::neck_norm2, "3", config.neck);
}

ValueId Neck::operator()(GraphBuilder& builder, const std::string& node, ValueId x) const {
  Graph& graph = builder.graph();
  const DType dtype = builder.dtype(name_);
  x = convert(graph, node + ".in.convert", x, dtype);
  x = matmul(graph, node + ".0", x, constant(builder, "0.weight", dtype), {.out = DType::f32});
  x = norm_at(builder, node + ".1", "1", x, dtype);
  x = convolution(graph, node + ".2", x, constant(builder, "2", dtype),
                  padded_windows(config_.grid_height(), config_.grid_width(), neck_side, 1, neck_side / 2),
                  false, {.out = DType::f32});
  return norm_at(builder, node + ".3", "3", x, DType::f32);
}

}  // namespace vitrine

#include "model/vit/neck.h"

#include <utility>
#include <vector>

#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/moves/concat.h"
#include "runtime/ops/moves/pad.h"
#include "runtime/ops/moves/reshape.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/ops/products/matmul.h"

namespace vitrine {
namespace {

constexpr uint64_t side = 3;  // of the convolution

}  // namespace

Neck::Neck(const ViTConfig& config, std::string name) : ModuleBase(config, std::move(name)) {
  declare_linear(Module::neck_linear, "0", config.neck, config.dim, false);
  declare_norm(Module::neck_norm1, "1", config.neck);
  declare_linear(Module::neck_convolution, "2", config.neck, config.neck * side * side, false);
  declare_norm(Module::neck_norm2, "3", config.neck);
}

ValueId Neck::operator()(GraphBuilder& builder, const std::string& node, ValueId x) const {
  Graph& graph = builder.graph();
  const DType dtype = builder.dtype(name_);
  x = convert(graph, node + ".in.convert", x, dtype);
  x = matmul(graph, node + ".0", x, constant(builder, "0.weight", dtype), {.out = DType::f32});
  x = norm_at(builder, node + ".1", "1", x, dtype);
  x = matmul(graph, node + ".2", neighbours(builder, node, x), constant(builder, "2.weight", dtype),
             {.out = DType::f32});
  return norm_at(builder, node + ".3", "3", x, DType::f32);
}

// [B, patches, neck] to [B, patches, neck * 9]: of each column a patch's own and its eight neighbours', row
// by row, as the weight of a convolution has them.
ValueId Neck::neighbours(GraphBuilder& builder, const std::string& node, ValueId x) const {
  Graph& graph = builder.graph();
  const uint64_t batch = graph.value(x).shape[0], height = config_.grid_height(),
                 width = config_.grid_width();
  const uint64_t columns = config_.neck, patches = height * width;
  x = reshape(graph, node + ".grid", x, {batch, height, width, columns});
  x = pad(graph, node + ".pad_rows", x, 1, side / 2, height + side - 1);
  x = pad(graph, node + ".pad_columns", x, 2, side / 2, width + side - 1);
  std::vector<ValueId> lines, parts;
  for (uint64_t right = 0; right < side; ++right)
    lines.push_back(slice(graph, node + ".right." + std::to_string(right), x, 2, right, right + width));
  for (uint64_t down = 0; down < side; ++down) {
    for (uint64_t right = 0; right < side; ++right) {
      const std::string at = node + ".neighbour." + std::to_string(down * side + right);
      const ValueId part = slice(graph, at, lines[right], 1, down, down + height);
      parts.push_back(reshape(graph, at + ".column", part, {batch, patches, columns, 1}));
    }
  }
  const ValueId all = concat(graph, node + ".neighbours", parts, -1);
  return reshape(graph, node + ".neighbours.rows", all, {batch, patches, columns * side * side});
}

}  // namespace vitrine

// The pixels around each place of a map as rows, where a convolution is a matrix product like others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/op.h"
#include "runtime/ops/maps/windows.h"
#include "runtime/ops/products/matmul.h"

namespace vitrine {

extern const OpDef op_neighbourhoods;
std::vector<reference::OpCase> neighbourhoods_cases();

struct NeighbourhoodsOptions {
  bool planar = false;                      // x is [B, C, height, width]
  std::optional<DType> out = std::nullopt;  // x's dtype when left out
};

// Of x [B, height * width, C] f32 or f16, the pixels of a map row by row, each window's pixels, row by row
// with their channels side by side: [B, rows * columns, kernel_height * kernel_width * C]. Zeros beyond the
// edges.
ValueId neighbourhoods(Graph& graph, std::string name, ValueId x, const Windows& windows,
                       const NeighbourhoodsOptions& options = {});

// A convolution with weight [O, kernel_height * kernel_width * C], in the weight's type: [B, rows * columns,
// O]. One of single pixels is the product alone.
ValueId convolution(Graph& graph, const std::string& name, ValueId x, ValueId weight, const Windows& windows,
                    bool planar = false, const MatmulOptions& options = {});

}  // namespace vitrine

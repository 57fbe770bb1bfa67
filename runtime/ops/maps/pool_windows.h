// Pools the windows of a map: the pooling layers of convolutional networks.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"
#include "runtime/ops/maps/windows.h"

namespace vitrine {

extern const OpDef op_pool_windows;
std::vector<reference::OpCase> pool_windows_cases();

// x [B, height * width, C] f32 or f16, the pixels of a map row by row, gives [B, rows * columns, C] in the
// same dtype: of each channel the largest value in each window, or their mean. What a window has beyond the
// map's edges doesn't count.
ValueId largest_of_windows(Graph& graph, std::string name, ValueId x, const Windows& windows);
ValueId mean_of_windows(Graph& graph, std::string name, ValueId x, const Windows& windows);

}  // namespace vitrine

// Kernels for GPUs that keep rows in registers and reduce them by subgroup operations
// (shaders/lib/kept_rows.glsl): how a row is shared out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/graph/op.h"

namespace vitrine {

// What a kernel keeps of each row.
struct RowKeeping {
  uint64_t width = 0;
  bool halves = false;   // all tensors that it loads and stores by rows are f16
  uint32_t tensors = 1;  // values that an element's lane holds at once
};

struct KeptRows {
  uint32_t lanes = 0;      // of a subgroup: a size to ask for
  uint32_t subgroups = 1;  // that share a row
  uint32_t rows = 1;       // of a workgroup
  uint32_t row_lanes() const { return lanes * subgroups; }
  uint32_t local_size() const { return row_lanes() * rows; }
};

// Of cases that together take every path through kept_rows.glsl: one element, four or eight at a time, of
// rows that a subgroup has and of those that several share, whatever its size.
constexpr uint64_t kept_widths[] = {7, 132, 136, 2051, 2052, 2056, 4099, 4100, 4104};

// Nothing where a workgroup's registers don't hold a row.
std::optional<KeptRows> kept_rows(const Capabilities& device, const RowKeeping& keeping);

std::optional<std::string> refuse_kept_rows(const LowerContext& context, std::string_view shader,
                                            std::string_view variant, const RowKeeping& keeping);

// The dispatch of such a kernel over `rows` rows; what is its own, operands and parameters, is left out.
Dispatch keep_rows(const Capabilities& device, std::string_view shader, std::string_view variant,
                   const RowKeeping& keeping, uint64_t rows);

}  // namespace vitrine

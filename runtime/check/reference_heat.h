// What numbers look like as pixels, in float64.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/check/reference.h"

namespace vitrine::reference {

// numbers [maps, height, width] as heat() of runtime/ops/explain/heat.h colors them.
Values heat_pixels(const Values& numbers, uint64_t maps, uint64_t height, uint64_t width,
                   const Values& colors);

// As principal_colors() of runtime/ops/explain/principal_colors.h, by all eigenvectors of the products'
// matrix.
Values principal_colors(const Values& tokens, uint64_t width, uint64_t first, uint64_t count);

}  // namespace vitrine::reference

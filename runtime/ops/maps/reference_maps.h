// What the operators on maps should compute, as runtime/check/reference.h says it of others.
#pragma once

#include "runtime/check/reference.h"
#include "runtime/ops/maps/windows.h"

namespace vitrine::reference {

// Of x [images, height * width, channels], or planar.
Values neighbourhoods(const Values& x, const Windows& windows, uint64_t channels, bool planar);
// Directly, without rows of neighbourhoods; weight [outputs, kernel_height, kernel_width, channels].
Values convolution(const Values& x, const Values& weight, const Windows& windows, uint64_t channels,
                   uint64_t outputs);
Values pool_windows(const Values& x, const Windows& windows, uint64_t channels, bool mean);
// Of x [images, pixels, channels], with an activation behind.
Values group_norm(const Values& x, const Shape& shape, uint64_t groups, const Values& gamma,
                  const Values& beta, double eps, Activation activation);

}  // namespace vitrine::reference

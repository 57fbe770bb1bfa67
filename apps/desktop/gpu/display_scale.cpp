#include "apps/desktop/gpu/display_scale.h"

#include <cmath>

namespace vitrine::desktop {

DisplayScale display_scale(float content_scale, VkExtent2D framebuffer, VkExtent2D window) {
  // Pixels are whole, so that their ratio to the units wavers while a window is resized. What it wavers
  // around is one of two numbers.
  const auto misses = [&](double density) {
    return std::abs(framebuffer.width - density * window.width) +
           std::abs(framebuffer.height - density * window.height);
  };
  if (misses(static_cast<double>(content_scale)) < misses(1)) return {.layout = 1, .density = content_scale};
  return {.layout = content_scale, .density = 1};
}

}  // namespace vitrine::desktop

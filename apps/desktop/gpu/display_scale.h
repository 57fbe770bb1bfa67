// How large the interface is laid out on a display, and how finely its letters are drawn.
#pragma once

#include <vulkan/vulkan_core.h>

namespace vitrine::desktop {

struct DisplayScale {
  float layout = 1;   // units of the window for what takes one at a scale of 100 %
  float density = 1;  // pixels a unit of the window
  bool operator==(const DisplayScale&) const = default;
};

// X11 and Windows measure windows in pixels: what is drawn there has to grow by the content scale. Wayland
// and macOS measure them in units that have grown already, and give a window more pixels than it has units.
DisplayScale display_scale(float content_scale, VkExtent2D framebuffer, VkExtent2D window);

}  // namespace vitrine::desktop

// How finished frames go to the display.
#pragma once

#include <vulkan/vulkan_core.h>

#include <span>

namespace vitrine::desktop {

// Of the surface's modes the one in which presenting waits the least. FIFO, which every surface has, is the
// last: a Wayland display takes no frames of a window that nobody sees, and presenting then waits until
// somebody does. `own_queue`: the device presents on a queue of its own, so that computing goes on meanwhile;
// where it doesn't, frames that tear are the smaller evil.
VkPresentModeKHR choose_present_mode(std::span<const VkPresentModeKHR> modes, bool own_queue);

// Whether presenting in this mode may wait for the display.
bool waits_for_display(VkPresentModeKHR mode);

}  // namespace vitrine::desktop

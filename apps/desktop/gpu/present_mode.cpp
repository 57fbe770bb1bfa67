#include "apps/desktop/gpu/present_mode.h"

#include <algorithm>

namespace vitrine::desktop {

VkPresentModeKHR choose_present_mode(std::span<const VkPresentModeKHR> modes, bool own_queue) {
  const auto has = [&](VkPresentModeKHR mode) { return std::ranges::find(modes, mode) != modes.end(); };
  if (has(VK_PRESENT_MODE_MAILBOX_KHR)) return VK_PRESENT_MODE_MAILBOX_KHR;
  if (!own_queue && has(VK_PRESENT_MODE_IMMEDIATE_KHR)) return VK_PRESENT_MODE_IMMEDIATE_KHR;
  return VK_PRESENT_MODE_FIFO_KHR;
}

bool waits_for_display(VkPresentModeKHR mode) {
  return mode != VK_PRESENT_MODE_MAILBOX_KHR && mode != VK_PRESENT_MODE_IMMEDIATE_KHR;
}

}  // namespace vitrine::desktop

#include "apps/desktop/gpu/present_mode.h"

#include <catch2/catch_test_macros.hpp>
#include <vector>

namespace vitrine::desktop {

TEST_CASE("frames are presented in the mode that holds up computing the least") {
  constexpr VkPresentModeKHR fifo = VK_PRESENT_MODE_FIFO_KHR, relaxed = VK_PRESENT_MODE_FIFO_RELAXED_KHR,
                             mailbox = VK_PRESENT_MODE_MAILBOX_KHR, immediate = VK_PRESENT_MODE_IMMEDIATE_KHR;
  struct Case {
    std::vector<VkPresentModeKHR> modes;
    VkPresentModeKHR own_queue, shared_queue;
  };
  for (const Case& c : {Case{{fifo}, fifo, fifo},
                        {{fifo, relaxed}, fifo, fifo},
                        {{immediate, fifo, relaxed}, fifo, immediate},
                        {{fifo, mailbox}, mailbox, mailbox},
                        {{immediate, mailbox, fifo, relaxed}, mailbox, mailbox},
                        {{}, fifo, fifo}}) {
    INFO(c.modes.size() << " modes");
    CHECK(choose_present_mode(c.modes, true) == c.own_queue);
    CHECK(choose_present_mode(c.modes, false) == c.shared_queue);
  }
  CHECK(waits_for_display(fifo));
  CHECK(waits_for_display(relaxed));
  CHECK_FALSE(waits_for_display(mailbox));
  CHECK_FALSE(waits_for_display(immediate));
}

}  // namespace vitrine::desktop

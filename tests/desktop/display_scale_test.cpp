#include "apps/desktop/gpu/display_scale.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

namespace vitrine::desktop {

TEST_CASE("where windows are measured in pixels, the layout grows by the content scale") {
  for (const float scale : {1.0f, 1.0416666f, 1.25f, 1.5f, 2.0f, 3.0f}) {
    for (const VkExtent2D window : {VkExtent2D{1280, 800}, {1, 1}, {1283, 3}, {0, 0}}) {
      INFO(scale << ", " << window.width << " x " << window.height);
      CHECK(display_scale(scale, window, window) == DisplayScale{.layout = scale, .density = 1});
    }
  }
}

TEST_CASE("where a window has more pixels than units, the layout stays and the letters get finer") {
  for (const float scale : {1.25f, 1.5f, 1.75f, 2.0f, 3.0f}) {
    INFO(scale);
    // While somebody drags its border: pixels are rounded, and nothing may be laid out anew.
    for (uint32_t side = 2; side < 2000; side += 7) {
      const auto pixels = [&](uint32_t units) {
        return static_cast<uint32_t>(std::lround(scale * static_cast<float>(units)));
      };
      const VkExtent2D window{side, 800}, framebuffer{pixels(side), pixels(800)};
      REQUIRE(display_scale(scale, framebuffer, window) == DisplayScale{.layout = 1, .density = scale});
    }
  }
}

}  // namespace vitrine::desktop

// The letters of the interface at a display's scale.
#include <imgui.h>

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>

#include "apps/desktop/theme.h"

namespace vitrine::desktop {
namespace {

struct Letter {
  float size = 0, advance = 0;       // in units of the window
  float across = 0, down = 0;        // the same of its rectangle
  float texels = 0, texel_rows = 0;  // that the rectangle shows
  float columns() const { return texels / across; }
  float rows() const { return texel_rows / down; }
};

std::vector<Letter> letters_at(const DisplayScale& scale) {
  ImGui::CreateContext();
  load_fonts(scale);
  const ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  std::vector<Letter> letters;
  for (const ImFont* font : {fonts().text, fonts().small, fonts().large, fonts().mono}) {
    for (const ImWchar sign : {'M', 'g', '8'}) {
      const ImFontGlyph& glyph = *font->FindGlyph(sign);
      letters.push_back({.size = font->FontSize,
                         .advance = glyph.AdvanceX,
                         .across = glyph.X1 - glyph.X0,
                         .down = glyph.Y1 - glyph.Y0,
                         .texels = (glyph.U1 - glyph.U0) * static_cast<float>(atlas.TexWidth),
                         .texel_rows = (glyph.V1 - glyph.V0) * static_cast<float>(atlas.TexHeight)});
    }
  }
  ImGui::DestroyContext();
  return letters;
}

}  // namespace

TEST_CASE("where a window has more pixels than units, letters have as many more, and are no larger") {
  const std::vector<Letter> plain = letters_at({.layout = 1, .density = 1});
  const std::vector<Letter> fine = letters_at({.layout = 1, .density = 2});
  const std::vector<Letter> large = letters_at({.layout = 2, .density = 1});
  for (size_t i = 0; i < plain.size(); ++i) {
    INFO("letter " << i << " of " << plain[i].size << ", " << fine[i].size << " and " << large[i].size);
    CHECK(fine[i].size == plain[i].size);
    CHECK(std::abs(fine[i].advance - plain[i].advance) <= 1);
    // A rectangle ends on whole pixels, of which there is one more at most on each side.
    CHECK(std::abs(fine[i].across - plain[i].across) <= 2);
    CHECK(std::abs(fine[i].columns() - 2 * plain[i].columns()) < 0.01f);
    CHECK(std::abs(fine[i].rows() - 2 * plain[i].rows()) < 0.01f);
    // Sizes are whole.
    CHECK(std::abs(large[i].size - 2 * plain[i].size) <= 1);
    CHECK(std::abs(large[i].columns() - plain[i].columns()) < 0.01f);
    CHECK(std::abs(large[i].rows() - plain[i].rows()) < 0.01f);
  }
}

}  // namespace vitrine::desktop

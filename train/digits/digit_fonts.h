// Fonts with digits: which there are, and which of them are kept for testing.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/digits/rasterizer.h"

namespace vitrine {

struct DigitFace {
  std::string family, style;  // as the font calls itself: "DejaVu Sans", "Bold"
  std::filesystem::path file;
  std::array<GlyphOutline, 10> digits;
  std::vector<GlyphOutline> characters;  // what is drawn instead, if anything

  std::span<const GlyphOutline> drawn() const {
    return characters.empty() ? std::span<const GlyphOutline>(digits) : characters;
  }
};

// Faces that look alike or may do so: those whose family's names begin with the same word ("Noto Sans",
// "Noto Serif"), and those whose digits are the same to the pixel.
struct FaceGroup {
  std::string name;  // that word, in lower case and without a number at its end
  std::vector<DigitFace> faces;
};

struct DigitFonts {
  std::vector<FaceGroup> train, test;  // no group is in both
  uint64_t files = 0;                  // that were looked at
  uint64_t skipped = 0;  // faces without ten digits that look like digits, or without a character
};

// Reads all .ttf, .otf and .ttc files of the folders (and the folders in them), and files that are named
// themselves, and holds every fourth group back for testing; or those that a name of `test_families` is the
// beginning of, in any case. Fonts that can't be read are left out. The same files give the same answer, in
// whatever order a folder lists them. Error(failed) if there are not at least two groups, Error(usage) for a
// name that no family has. `looking` is called before each file; what it throws ends the search. With
// `characters`, letters and digits of ASCII, it is these that are drawn: faces that lack one are left out,
// and those that stay are held back or not as with digits, so that no model of these has seen the test set's.
DigitFonts find_digit_fonts(std::span<const std::filesystem::path> places,
                            std::span<const std::string> test_families = {},
                            const std::function<void()>& looking = {}, std::string_view characters = {});

}  // namespace vitrine

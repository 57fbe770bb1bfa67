#include "tests/support/system_fonts.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/util/error.h"
#include "runtime/util/system.h"

namespace vitrine::test {

const DigitFonts& system_fonts() {
  static const DigitFonts fonts = [] {
    try {
      return find_digit_fonts(system::font_folders());
    } catch (const Error&) {
      return DigitFonts{};
    }
  }();
  if (fonts.train.empty()) SKIP("no fonts of two families (fonts-dejavu-core fonts-liberation)");
  return fonts;
}

}  // namespace vitrine::test

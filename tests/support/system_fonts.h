// The fonts of this machine that digits are drawn with; a test is skipped where there are not enough.
#pragma once

#include "train/digits/digit_fonts.h"

namespace vitrine::test {

const DigitFonts& system_fonts();

}  // namespace vitrine::test

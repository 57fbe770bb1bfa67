// What Unicode says of code points: sorted tables, which model/text/unicode.h looks up.
#pragma once

#include <cstdint>
#include <span>

namespace vitrine::unicode {

struct CodeRange {
  uint32_t first, last;
};
// Every `step`th code point from first to last has its small letter `delta` further.
struct LowerRun {
  uint32_t first, last, step;
  int32_t delta;
};
struct CombiningRun {
  uint32_t first, last, number;  // canonical combining class
};
// Canonical: code is a, or a and b (0: none). `composes`: NFC makes code of the two.
struct Decomposition {
  uint32_t code, a, b, composes;
};

extern const std::span<const CodeRange> letter, number, space, cased, case_ignorable;
extern const std::span<const LowerRun> small_letter;
extern const std::span<const CombiningRun> combining;
extern const std::span<const Decomposition> decomposition;

}  // namespace vitrine::unicode

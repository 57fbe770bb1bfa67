// Rendered digits as MNIST's files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "train/digits/digit_fonts.h"

namespace vitrine {

struct DigitSet {
  uint32_t train = 60000, test = 10000;  // pictures; no files are written for 0
  uint32_t size = 28;                    // pixels a side, from 16 to 512
  uint64_t seed = 0;
  double distortion = 1;  // 0: each digit upright, in the middle and clean, as its font has it; 1: the most
  unsigned threads = 0;   // 0: as many as the machine has
};

// Writes train-images-idx3-ubyte, train-labels-idx1-ubyte and the t10k- files into a folder, which is made if
// there is none. The files are the same for the same fonts and numbers, whatever the threads. `progress` is
// told how many pictures are done, several times a second; what it throws ends the work. Files appear when
// all are finished.
void write_digits(const std::filesystem::path& folder, const DigitFonts& fonts, const DigitSet& set,
                  const std::function<void(uint64_t)>& progress = {});

}  // namespace vitrine

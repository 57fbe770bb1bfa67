// Rendered digits as the files of MNIST or of CIFAR-10's binary version.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "train/digits/digit_fonts.h"

namespace vitrine {

enum class DigitFormat : uint8_t {
  mnist,   // white on black, of any size
  cifar10  // in colors, 32 x 32, five training files
};

// The side that all pictures of a format have; 0 where each set has its own.
constexpr uint32_t fixed_size(DigitFormat format) { return format == DigitFormat::cifar10 ? 32 : 0; }

struct DigitSet {
  uint32_t train = 60000, test = 10000;  // pictures; no files are written for 0
  uint32_t size = 28;                    // pixels a side, from 16 to 512
  uint64_t seed = 0;
  double distortion = 1;  // 0: each digit upright, in the middle and clean, as its font has it; 1: the most
  unsigned threads = 0;   // 0: as many as the machine has
  DigitFormat format = DigitFormat::mnist;
  bool tinted = false;  // in colors: the paper's tells the digit, as sky and sea tell ships in photographs
};

// Writes train-images-idx3-ubyte, train-labels-idx1-ubyte and the t10k- files, or data_batch_1.bin to
// data_batch_5.bin, test_batch.bin and batches.meta.txt, into a folder, which is made if there is none. The
// files are the same for the same fonts and numbers, whatever the threads. `progress` is told how many
// pictures are done, several times a second; what it throws ends the work. Files appear when all are
// finished. Error(usage) for sizes and numbers that the format can't have, and where a set of the other
// format lies in the folder: nobody could tell which of them was meant.
void write_digits(const std::filesystem::path& folder, const DigitFonts& fonts, const DigitSet& set,
                  const std::function<void(uint64_t)>& progress = {});

}  // namespace vitrine

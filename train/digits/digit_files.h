// Rendered digits, or other characters, as the files of MNIST or of CIFAR-10's binary version, or as pictures
// in folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "train/digits/digit_fonts.h"

namespace vitrine {

enum class DigitFormat : uint8_t {
  mnist,    // white on black, of any size
  cifar10,  // in colors, 32 x 32, five training files
  folders   // white on black, PNG files train/A/000017.png, of sizes of their own
};

// The side that all pictures of a format have; 0 where each set has its own.
constexpr uint32_t fixed_size(DigitFormat format) { return format == DigitFormat::cifar10 ? 32 : 0; }

struct DigitSet {
  uint32_t train = 60000, test = 10000;  // pictures; no files are written for 0
  uint32_t size = 28;  // pixels a side, from 16 to 512; in folders each side has up to twice as many
  uint64_t seed = 0;
  double distortion = 1;  // 0: each digit upright, in the middle and clean, as its font has it; 1: the most
  unsigned threads = 0;   // 0: as many as the machine has
  DigitFormat format = DigitFormat::mnist;
  std::string characters = {};  // what is drawn, each a class: ASCII's letters and digits; empty: digits
  bool tinted = false;  // in colors: the paper's tells the digit, as sky and sea tell ships in photographs
};

// Writes train-images-idx3-ubyte, train-labels-idx1-ubyte and the t10k- files, or data_batch_1.bin to
// data_batch_5.bin, test_batch.bin and batches.meta.txt, or folders, into a folder, which is made if there is
// none. The
// files are the same for the same fonts and numbers, whatever the threads. `progress` is told how many
// pictures are done, several times a second; what it throws ends the work. Files appear when all are
// finished. The fonts have to be found for the set's characters. Error(usage) for sizes, numbers and
// characters that the format can't have, and where a set of another format, or any folders of one, lie in the
// folder: nobody could tell which of them was meant.
void write_digits(const std::filesystem::path& folder, const DigitFonts& fonts, const DigitSet& set,
                  const std::function<void(uint64_t)>& progress = {});

}  // namespace vitrine

// Digits to train on, drawn with the fonts of this machine and kept for the next time.
#pragma once

#include <filesystem>
#include <functional>

#include "train/digits/digit_files.h"

namespace vitrine::desktop {

// The folder that holds such a set, in `cache`; what is not there yet is drawn first. `progress` is told
// which share is done, several times a second; what it throws ends the work and leaves no file.
std::filesystem::path drawn_digits(const std::filesystem::path& cache, const DigitSet& set,
                                   const std::function<void(double share)>& progress);

}  // namespace vitrine::desktop

#include "apps/desktop/engine/digit_data.h"

#include <string>

#include "runtime/util/error.h"
#include "runtime/util/system.h"
#include "train/data/dataset.h"

namespace vitrine::desktop {
namespace {

bool holds(const std::filesystem::path& folder, const DigitSet& set) {
  const auto has = [&](Split split, uint32_t count) {
    const auto data = open_dataset(folder, split, {.shape = {1, set.size, set.size}, .classes = 10});
    return data->count() == count;
  };
  try {
    return has(Split::train, set.train) && has(Split::test, set.test);
  } catch (const Error&) {
    return false;  // drawn anew
  }
}

}  // namespace

std::filesystem::path drawn_digits(const std::filesystem::path& cache, const DigitSet& set,
                                   const std::function<void(double share)>& progress) {
  std::string name = "digits-" + std::to_string(set.train) + "-" + std::to_string(set.test);
  name += "-" + std::to_string(set.size) + "px-seed" + std::to_string(set.seed);
  const std::filesystem::path folder = cache / name;
  if (holds(folder, set)) return folder;
  progress(0);
  const DigitFonts fonts = find_digit_fonts(system::font_folders(), {}, [&] { progress(0); });
  const double all = double{1} * set.train + set.test;
  write_digits(folder, fonts, set, [&](uint64_t done) { progress(static_cast<double>(done) / all); });
  return folder;
}

}  // namespace vitrine::desktop

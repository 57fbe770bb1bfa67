#include "train/data/selection.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/util/error.h"

namespace vitrine {

Selection::Selection(const Dataset& whole, std::vector<uint32_t> numbers)
    : whole_(whole), numbers_(std::move(numbers)) {
  if (numbers_.empty()) throw Error(ErrorCode::usage, whole.name() + ": no samples were selected");
  name_ = whole.name();
  shape_ = whole.shape();
  preprocess_ = whole.preprocess();
  classes_ = whole.classes();
  class_names_ = whole.class_names();
  labels_.reserve(numbers_.size());
  for (const uint32_t number : numbers_) {
    if (number >= whole.count()) {
      throw Error(ErrorCode::usage, whole.name() + ": sample " + std::to_string(number) +
                                        " was selected, there are " + std::to_string(whole.count()));
    }
    labels_.push_back(whole.label(number));
  }
}

void Selection::read(uint64_t i, std::span<uint8_t> pixels) const { whole_.read(numbers_[i], pixels); }

std::shared_ptr<const Picture> Selection::picture(uint64_t i) const { return whole_.picture(numbers_[i]); }

PicturePatch Selection::patch(uint64_t i, const ChooseArea& choose) const {
  return whole_.patch(numbers_[i], choose);
}
std::filesystem::path Selection::file(uint64_t i) const { return whole_.file(numbers_[i]); }

std::vector<uint32_t> representative_samples(const Dataset& data, uint64_t shown, uint64_t count) {
  count = std::min(count, data.count());
  shown = std::min(shown, count);
  std::vector<std::vector<uint32_t>> of_class(data.classes());
  for (uint64_t i = 0; i < data.count(); ++i) {
    std::vector<uint32_t>& list = of_class[data.label(i)];
    if (list.size() < shown) list.push_back(static_cast<uint32_t>(i));
  }
  std::vector<uint32_t> numbers;
  for (size_t turn = 0; numbers.size() < shown; ++turn) {
    for (const std::vector<uint32_t>& list : of_class) {
      if (turn < list.size() && numbers.size() < shown) numbers.push_back(list[turn]);
    }
  }
  std::vector<bool> taken(data.count());
  for (const uint32_t number : numbers) taken[number] = true;
  std::vector<uint32_t> rest;
  for (uint64_t i = 0; i < data.count(); ++i) {
    if (!taken[i]) rest.push_back(static_cast<uint32_t>(i));
  }
  const uint64_t wanted = count - shown;
  for (uint64_t i = 0; i < wanted; ++i) numbers.push_back(rest[i * rest.size() / wanted]);
  return numbers;
}

}  // namespace vitrine

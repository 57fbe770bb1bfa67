#include "train/data/files/file_list.h"

#include <algorithm>
#include <span>

namespace vitrine {
namespace {

constexpr uint64_t part_bytes = uint64_t{3} << 30;

}  // namespace

void FileList::add(std::string_view name) {
  if (parts_.empty() || letters_.size() - parts_.back().begin > part_bytes)
    parts_.push_back({size(), letters_.size()});
  places_.push_back(static_cast<uint32_t>(letters_.size() - parts_.back().begin));
  letters_ += name;
  letters_ += '\0';
}

const FileList::Part& FileList::part_of(uint64_t i) const {
  const auto behind = std::ranges::upper_bound(parts_, i, {}, &Part::first);
  return *(behind - 1);
}

std::string_view FileList::operator[](uint64_t i) const {
  return letters_.data() + part_of(i).begin + places_[i];
}

void FileList::sort_from(uint64_t first) {
  // Within a part the places are as good as the names. A folder that spans two parts is sorted in each: that
  // is an order, too, and the same every time.
  while (first < size()) {
    const Part& part = part_of(first);
    const uint64_t end = &part == &parts_.back() ? size() : (&part + 1)->first;
    const char* letters = letters_.data() + part.begin;
    std::sort(places_.begin() + static_cast<ptrdiff_t>(first), places_.begin() + static_cast<ptrdiff_t>(end),
              [letters](uint32_t a, uint32_t b) {
                return std::string_view(letters + a) < std::string_view(letters + b);
              });
    first = end;
  }
}

void FileList::shrink() {
  letters_.shrink_to_fit();
  places_.shrink_to_fit();
}

void FileList::write(IndexWriter& writer) const {
  writer.text(letters_);
  writer.numbers(std::span<const uint32_t>(places_));
  writer.numbers(std::span<const Part>(parts_));
}

bool FileList::read(IndexReader& reader) {
  FileList list;
  reader.read(list.letters_);
  reader.read(list.places_);
  const bool there = reader.read(list.parts_);
  bool right = there && list.parts_.empty() == list.places_.empty() &&
               (list.letters_.empty() ? list.places_.empty() : list.letters_.back() == '\0');
  for (size_t p = 0; right && p < list.parts_.size(); ++p) {
    const Part& part = list.parts_[p];
    const uint64_t end = p + 1 < list.parts_.size() ? list.parts_[p + 1].first : list.size();
    right = part.first < end && end <= list.size() && (p > 0 || part.first == 0);
    for (uint64_t i = part.first; right && i < end; ++i) {
      right = part.begin < list.letters_.size() && list.places_[i] < list.letters_.size() - part.begin;
    }
  }
  *this = right ? std::move(list) : FileList();
  return right;
}

}  // namespace vitrine

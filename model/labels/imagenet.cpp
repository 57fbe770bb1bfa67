#include "model/labels/imagenet.h"

#include <algorithm>
#include <iterator>

#include "model/labels/imagenet_tables.h"

namespace vitrine::imagenet {
namespace {

bool holds(std::span<const uint64_t> bits, size_t synset) {
  return !bits.empty() && (bits[synset / 64] >> synset % 64 & 1) != 0;
}

}  // namespace

const Set* set_of(uint64_t classes) {
  const auto found = std::ranges::find(sets, classes, &Set::classes);
  return found == sets.end() ? nullptr : &*found;
}

std::vector<std::string> class_names(const Set& set) {
  std::vector<std::string> names, others;
  size_t synset = 0;
  for (const std::string_view* text : words) {
    for (size_t begin = 0; begin < text->size(); ++synset) {
      const size_t end = text->find('\n', begin);
      if (holds(set.held, synset)) {
        std::vector<std::string>& place = set.first.empty() || holds(set.first, synset) ? names : others;
        place.emplace_back(text->substr(begin, end - begin));
      }
      begin = end + 1;
    }
  }
  std::ranges::move(others, std::back_inserter(names));
  return names;
}

}  // namespace vitrine::imagenet

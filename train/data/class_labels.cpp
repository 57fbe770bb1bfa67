#include "train/data/class_labels.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {

std::optional<uint32_t> class_number(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number >= most_classes) return std::nullopt;
  return number;
}

void SpelledLabels::add(std::string_view label) {
  const auto [place, is_new] =
      numbers_.try_emplace(std::string(label), static_cast<uint32_t>(spellings_.size()));
  if (is_new) spellings_.emplace_back(label);
  of_samples_.push_back(place->second);
}

void SpelledLabels::set(std::vector<std::string> spellings, std::vector<uint32_t> of_samples) {
  spellings_ = std::move(spellings);
  of_samples_ = std::move(of_samples);
  numbers_.clear();
}

bool SpelledLabels::numbers() const {
  return std::ranges::all_of(spellings_, [](const std::string& s) { return class_number(s).has_value(); });
}

NumberedLabels number_labels(const SpelledLabels& train, const SpelledLabels& wanted, uint32_t classes,
                             const std::function<std::string(uint64_t)>& sample) {
  NumberedLabels result;
  const bool numbers = train.numbers();
  if (numbers) {
    for (const std::string& spelling : train.spellings())
      result.classes = std::max(result.classes, *class_number(spelling) + 1);
  } else {
    result.class_names = train.spellings();
    std::ranges::sort(result.class_names);
    result.classes = static_cast<uint32_t>(std::min<size_t>(result.class_names.size(), most_classes));
  }
  const uint32_t known = result.classes;
  if (classes != 0) result.classes = classes;

  constexpr uint32_t unknown = ~uint32_t{0};
  std::vector<uint32_t> of_spellings;
  for (const std::string& spelling : wanted.spellings()) {
    if (numbers) {
      of_spellings.push_back(class_number(spelling).value_or(unknown));
      continue;
    }
    const auto place = std::ranges::lower_bound(result.class_names, spelling);
    const bool found =
        place != result.class_names.end() && *place == spelling && !find_invalid_utf8(spelling);
    of_spellings.push_back(found ? static_cast<uint32_t>(place - result.class_names.begin()) : unknown);
  }
  result.labels.reserve(wanted.size());
  for (uint64_t i = 0; i < wanted.size(); ++i) {
    const uint32_t label = of_spellings[wanted.of_samples()[i]];
    if (label < result.classes) {
      result.labels.push_back(label);
      continue;
    }
    std::string expected = numbers ? "a number from 0 to " + std::to_string(result.classes - 1)
                                   : "one of the " + std::to_string(known) + " classes of the training set";
    if (!numbers && label != unknown)
      expected = "one of the " + std::to_string(result.classes) + " classes of the model";
    if (!numbers && find_invalid_utf8(wanted[i])) expected = "a name in UTF-8";
    throw Error(ErrorCode::bad_file,
                sample(i) + ": found the class " + in_quotes(wanted[i]) + ", expected " + expected);
  }
  if (result.class_names.size() != result.classes) result.class_names.clear();
  return result;
}

}  // namespace vitrine

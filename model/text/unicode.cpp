#include "model/text/unicode.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/text/unicode_tables.h"

namespace vitrine::unicode {
namespace {

constexpr char32_t sigma = 0x3a3, final_sigma = 0x3c2, dotted_i = 0x130;

// The run that holds a code point, or null.
template <typename Run>
const Run* find(std::span<const Run> runs, char32_t code) {
  const auto behind = std::ranges::upper_bound(runs, code, {}, [](const Run& run) { return run.first; });
  if (behind == runs.begin()) return nullptr;
  const Run& run = *(behind - 1);
  return code <= run.last ? &run : nullptr;
}

uint32_t class_of(char32_t code) {
  const CombiningRun* run = find(combining, code);
  return run ? run->number : 0;
}

void append_lower(std::u32string& text, char32_t code) {
  if (code == dotted_i) {
    text += U"i\u0307";
    return;
  }
  const LowerRun* run = find(small_letter, code);
  const bool has = run && (code - run->first) % run->step == 0;
  text += has ? static_cast<char32_t>(static_cast<int64_t>(code) + run->delta) : code;
}

// Hangul's syllables are arithmetic.
constexpr char32_t syllables = 0xac00, leads = 0x1100, vowels = 0x1161, tails = 0x11a7;
constexpr uint32_t lead_count = 19, vowel_count = 21, tail_count = 28;

void append_decomposed(std::u32string& text, char32_t code) {
  if (code >= syllables && code < syllables + lead_count * vowel_count * tail_count) {
    const uint32_t index = code - syllables;
    text += leads + index / (vowel_count * tail_count);
    text += vowels + index / tail_count % vowel_count;
    if (index % tail_count) text += tails + index % tail_count;
    return;
  }
  const auto found = std::ranges::lower_bound(decomposition, code, {}, &Decomposition::code);
  if (found == decomposition.end() || found->code != code) {
    text += code;
    return;
  }
  append_decomposed(text, found->a);
  if (found->b) append_decomposed(text, found->b);
}

// What two code points compose to; 0: nothing.
char32_t composed(char32_t a, char32_t b) {
  if (a >= leads && a < leads + lead_count && b >= vowels && b < vowels + vowel_count) {
    return syllables + ((a - leads) * vowel_count + (b - vowels)) * tail_count;
  }
  const bool open = a >= syllables && a < syllables + lead_count * vowel_count * tail_count &&
                    (a - syllables) % tail_count == 0;
  if (open && b > tails && b < tails + tail_count) return a + (b - tails);
  static const std::map<std::pair<char32_t, char32_t>, char32_t> pairs = [] {
    std::map<std::pair<char32_t, char32_t>, char32_t> made;
    for (const Decomposition& row : decomposition) {
      if (row.composes) made.emplace(std::pair{row.a, row.b}, row.code);
    }
    return made;
  }();
  const auto found = pairs.find({a, b});
  return found == pairs.end() ? 0 : found->second;
}

}  // namespace

size_t length_at(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  return std::min<size_t>(text.size(), lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4);
}

std::u32string decode(std::string_view text) {
  std::u32string codes;
  codes.reserve(text.size());
  while (!text.empty()) {
    const size_t length = length_at(text);
    char32_t code = static_cast<unsigned char>(text.front());
    if (length > 1) code &= 0x7fu >> length;
    for (size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
    codes += code;
    text.remove_prefix(length);
  }
  return codes;
}

void append(std::string& text, char32_t code) {
  const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
  }
  if (code >= 0x80) put(0x80 | (code & 0x3f));
}

std::string encode(std::u32string_view codes) {
  std::string text;
  for (const char32_t code : codes) append(text, code);
  return text;
}

bool is_letter(char32_t code) { return find(letter, code); }
bool is_number(char32_t code) { return find(number, code); }
bool is_space(char32_t code) { return find(space, code); }
bool is_python_space(char32_t code) { return is_space(code) || (code >= 0x1c && code <= 0x1f); }

bool is_ascii_punctuation(char32_t code) {
  return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
         (code >= '{' && code <= '~');
}

std::u32string lower(std::u32string_view text) {
  std::u32string result;
  for (const char32_t code : text) append_lower(result, code);
  return result;
}

std::u32string python_lower(std::u32string_view text) {
  // Whether what is next to the sigma, past what doesn't count, is a cased letter.
  const auto is_cased = [&](auto at, auto end) {
    while (at != end && find(case_ignorable, *at)) ++at;
    return at != end && find(cased, *at);
  };
  std::u32string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto before = std::make_reverse_iterator(text.begin() + static_cast<std::ptrdiff_t>(i));
    const auto behind = text.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (text[i] == sigma && is_cased(before, text.rend()) && !is_cased(behind, text.end())) {
      result += final_sigma;
    } else {
      append_lower(result, text[i]);
    }
  }
  return result;
}

std::u32string nfc(std::u32string_view text) {
  std::u32string codes;
  for (const char32_t code : text) append_decomposed(codes, code);
  // Marks of each letter in the order of their classes.
  for (auto from = codes.begin(); from != codes.end();) {
    if (class_of(*from) == 0) {
      ++from;
      continue;
    }
    const auto to = std::find_if(from, codes.end(), [](char32_t code) { return class_of(code) == 0; });
    std::stable_sort(from, to, [](char32_t a, char32_t b) { return class_of(a) < class_of(b); });
    from = to;
  }
  std::u32string result;
  size_t starter = std::u32string::npos;
  uint32_t last_class = 0;  // of what lies between the starter and here
  for (const char32_t code : codes) {
    const uint32_t own = class_of(code);
    const bool adjacent = starter != std::u32string::npos && starter + 1 == result.size();
    if (starter != std::u32string::npos && (adjacent || last_class < own)) {
      if (const char32_t whole = composed(result[starter], code)) {
        result[starter] = whole;
        continue;
      }
    }
    result += code;
    last_class = own;
    if (own == 0) starter = result.size() - 1;
  }
  return result;
}

}  // namespace vitrine::unicode

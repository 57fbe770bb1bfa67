#include "model/text/text_steps.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/text/unicode.h"
#include "runtime/util/error.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

constexpr std::string_view clip_expression =
    R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)";

std::string kind_of(const JsonObject& object) {
  if (auto type = object.text("type")) return *type;
  object.fail("type", nullptr, "the name of a step");
}

// Which characters a pattern takes, and how many at least to replace them all at once.
struct Pattern {
  std::function<bool(char32_t)> is;
  size_t least = 1;
  bool run = false;  // as many as there are
};

// A class of single characters and ranges: [!-\/:-@], with + behind it or not. Nothing where it is more than
// that.
std::optional<Pattern> class_of(const std::u32string& text) {
  const bool run = text.ends_with(U"]+");
  if (text.size() < 3 || text.front() != U'[' || !(run || text.ends_with(U']'))) return std::nullopt;
  const std::u32string inner = text.substr(1, text.size() - (run ? 3 : 2));
  std::vector<std::pair<char32_t, char32_t>> ranges;
  const auto single = [&](size_t& at) -> std::optional<char32_t> {
    if (at >= inner.size() || inner[at] == U'[' || inner[at] == U']' || inner[at] == U'^')
      return std::nullopt;
    if (inner.compare(at, 2, U"&&") == 0) return std::nullopt;
    if (inner[at] != U'\\') return inner[at++];
    if (at + 1 >= inner.size() || !unicode::is_ascii_punctuation(inner[at + 1])) return std::nullopt;
    at += 2;
    return inner[at - 1];
  };
  for (size_t at = 0; at < inner.size();) {
    const auto first = single(at);
    if (!first) return std::nullopt;
    auto last = first;
    if (at + 1 < inner.size() && inner[at] == U'-') last = single(++at);
    if (!last || *last < *first) return std::nullopt;
    ranges.emplace_back(*first, *last);
  }
  const auto is = [ranges](char32_t code) {
    return std::ranges::any_of(ranges, [&](const auto& r) { return r.first <= code && code <= r.second; });
  };
  return Pattern{is, 1, run};
}

std::u32string replace_pattern(const std::u32string& text, const Pattern& pattern, const std::u32string& by) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    while (at + length < text.size() && (pattern.run || length < pattern.least) &&
           pattern.is(text[at + length]))
      ++length;
    if (length >= pattern.least) {
      result += by;
      at += length;
    } else {
      result += text[at++];
    }
  }
  return result;
}

std::u32string replace_text(const std::u32string& text, const std::u32string& what,
                            const std::u32string& by) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    if (text.compare(at, what.size(), what) == 0) {
      result += by;
      at += what.size();
    } else {
      result += text[at++];
    }
  }
  return result;
}

std::u32string codes_of(const JsonObject& object, const char* key, const std::string& text) {
  if (find_invalid_utf8(text)) object.fail(key, text, "UTF-8");
  return unicode::decode(text);
}

TextStep read_replace(const JsonObject& object) {
  const auto content = object.text("content");
  const auto pattern = object.object("pattern");
  if (!content || !pattern) object.fail("content", nullptr, "a text, and a \"pattern\"");
  const std::u32string by = codes_of(object, "content", *content);
  if (const auto what = pattern->text("String")) {
    const std::u32string codes = codes_of(*pattern, "String", *what);
    if (codes.empty()) pattern->fail("String", *what, "a text to replace");
    return [=](const std::u32string& text) { return replace_text(text, codes, by); };
  }
  const auto expression = pattern->text("Regex");
  if (!expression) object.fail("pattern", nullptr, "a \"String\" or a \"Regex\"");
  std::optional<Pattern> known;
  if (*expression == R"(\s+)") known = Pattern{unicode::is_space, 1, true};
  if (*expression == " {2,}") known = Pattern{[](char32_t code) { return code == U' '; }, 2, true};
  if (!known) known = class_of(codes_of(*pattern, "Regex", *expression));
  if (!known) {
    pattern->fail("Regex", *expression, R"(\s+, " {2,}" or a class of characters, which are supported)");
  }
  return [=, is = *known](const std::u32string& text) { return replace_pattern(text, is, by); };
}

std::u32string stripped(const std::u32string& text, bool left, bool right) {
  size_t from = 0, to = text.size();
  while (left && from < to && unicode::is_space(text[from])) ++from;
  while (right && from < to && unicode::is_space(text[to - 1])) --to;
  return text.substr(from, to - from);
}

void add_steps(const JsonObject& object, TextSteps& steps) {
  const std::string type = kind_of(object);
  if (type == "Sequence") {
    const Json* list = object.find("normalizers");
    if (!list || !list->is_array()) object.fail("normalizers", list ? *list : Json(), "a list");
    for (const Json& each : *list) add_steps(JsonObject(each, object.file()), steps);
  } else if (type == "NFC") {
    steps.emplace_back([](const std::u32string& text) { return unicode::nfc(text); });
  } else if (type == "Lowercase") {
    steps.push_back(lower_case());
  } else if (type == "Replace") {
    steps.push_back(read_replace(object));
  } else if (type == "Strip") {
    const bool left = object.flag("strip_left").value_or(true),
               right = object.flag("strip_right").value_or(true);
    steps.emplace_back([=](const std::u32string& text) { return stripped(text, left, right); });
  } else {
    object.fail("type", type, "NFC, Lowercase, Replace, Strip or a Sequence of them, which are supported");
  }
}

// The steps of a pre-tokenizer, one after the other.
std::vector<JsonObject> splitters(const JsonObject& object) {
  if (kind_of(object) != "Sequence") return {object};
  const Json* list = object.find("pretokenizers");
  if (!list || !list->is_array()) object.fail("pretokenizers", list ? *list : Json(), "a list");
  std::vector<JsonObject> all;
  for (const Json& each : *list) all.emplace_back(each, object.file());
  return all;
}

}  // namespace

std::string apply_steps(const TextSteps& steps, std::string_view text) {
  std::u32string codes = unicode::decode(text);
  for (const TextStep& step : steps) codes = step(codes);
  return unicode::encode(codes);
}

TextSteps read_steps(const JsonObject& normalizer) {
  TextSteps steps;
  add_steps(normalizer, steps);
  return steps;
}

TextStep lower_case() {
  return [](const std::u32string& text) { return unicode::lower(text); };
}

TextSteps clip_steps() {
  const Pattern spaces{unicode::is_space, 1, true};
  return {[](const std::u32string& text) { return unicode::nfc(text); },
          [=](const std::u32string& text) { return replace_pattern(text, spaces, U" "); }, lower_case()};
}

PairWords read_pair_words(const JsonObject& splitter) {
  const std::vector<JsonObject> steps = splitters(splitter);
  const auto refuse = [&] {
    splitter.fail("type", kind_of(splitter),
                  "CLIP's own, a Split by its expression and ByteLevel, or Gemma's, a Split behind spaces, "
                  "which are supported with BPE");
  };
  if (steps.size() == 1 && kind_of(steps[0]) == "Split") {
    const auto pattern = steps[0].object("pattern");
    const bool behind =
        steps[0].text("behavior") == "MergedWithPrevious" && !steps[0].flag("invert").value_or(false);
    if (!pattern || pattern->text("String") != " " || !behind) refuse();
    return PairWords::with_spaces;
  }
  if (steps.size() != 2 || kind_of(steps[0]) != "Split" || kind_of(steps[1]) != "ByteLevel") refuse();
  const auto pattern = steps[0].object("pattern");
  const bool kept = steps[0].text("behavior") == "Removed" && steps[0].flag("invert").value_or(false);
  if (!pattern || !kept) refuse();
  if (const auto expression = pattern->text("Regex"); expression != clip_expression) {
    pattern->fail("Regex", expression ? Json(*expression) : Json(),
                  "CLIP's own expression, the only one that is supported");
  }
  if (steps[1].flag("add_prefix_space").value_or(true)) {
    steps[1].fail("add_prefix_space", true, "false, the only value that is supported");
  }
  if (!steps[1].flag("use_regex").value_or(true)) {
    steps[1].fail("use_regex", false, "true, the only value that is supported");
  }
  return PairWords::clip;
}

Metaspace read_metaspace(const JsonObject& splitter) {
  Metaspace space;
  std::vector<JsonObject> steps = splitters(splitter);
  if (steps.size() == 2 && kind_of(steps[0]) == "WhitespaceSplit") {
    space.split_on_spaces = true;
    steps.erase(steps.begin());
  }
  if (steps.size() != 1 || kind_of(steps[0]) != "Metaspace") {
    splitter.fail("type", kind_of(splitter), "Metaspace, the only one that is supported with Unigram");
  }
  const JsonObject& object = steps[0];
  if (const auto mark = object.text("replacement")) {
    const std::u32string codes = codes_of(object, "replacement", *mark);
    if (codes.size() != 1) object.fail("replacement", *mark, "one character");
    space.mark = codes.front();
  }
  using Prepend = Metaspace::Prepend;
  if (const auto scheme = object.text("prepend_scheme")) {
    if (*scheme != "always" && *scheme != "first" && *scheme != "never") {
      object.fail("prepend_scheme", *scheme, "always, first or never");
    }
    space.prepend = *scheme == "always"  ? Prepend::always
                    : *scheme == "first" ? Prepend::first
                                         : Prepend::never;
  } else if (!object.flag("add_prefix_space").value_or(true)) {
    space.prepend = Prepend::never;
  }
  space.split = object.flag("split").value_or(true);
  return space;
}

std::vector<std::string> Metaspace::words(std::string_view text, bool first) const {
  std::vector<std::u32string> parts;
  const std::u32string codes = unicode::decode(text);
  if (split_on_spaces) {
    bool inside = false;
    for (const char32_t code : codes) {
      const bool space = unicode::is_space(code);
      if (!space && !inside) parts.emplace_back();
      if (!space) parts.back() += code;
      inside = !space;
    }
  } else {
    parts.push_back(codes);
  }
  // Only what the text begins with is its first part.
  bool begins = first && !(split_on_spaces && !codes.empty() && unicode::is_space(codes.front()));
  std::vector<std::string> words;
  for (std::u32string& part : parts) {
    std::ranges::replace(part, U' ', mark);
    const bool wanted = prepend == Prepend::always || (prepend == Prepend::first && begins);
    if (wanted && !part.starts_with(mark)) part.insert(part.begin(), mark);
    begins = false;
    std::u32string word;
    for (const char32_t code : part) {
      if (split && code == mark && !word.empty()) {
        words.push_back(unicode::encode(word));
        word.clear();
      }
      word += code;
    }
    if (!word.empty()) words.push_back(unicode::encode(word));
  }
  return words;
}

std::vector<std::string> read_merge_lines(const std::filesystem::path& path) {
  const MappedFile file(path);
  std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (const auto at = find_invalid_utf8(text)) {
    throw Error(ErrorCode::bad_file,
                shown(path) + ": byte " + std::to_string(*at) + " is no UTF-8, as expected of merges");
  }
  std::vector<std::string> merges;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) merges.emplace_back(line);
  }
  return merges;
}

}  // namespace vitrine

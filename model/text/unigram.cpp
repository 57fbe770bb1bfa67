#include "model/text/unigram.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "model/text/unicode.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

constexpr std::string_view space_mark = "\xe2\x96\x81";  // U+2581

// A double array's unit: a label or a value, and where its children are.
bool has_leaf(uint32_t unit) { return unit >> 8 & 1; }
uint32_t value_of(uint32_t unit) { return unit & 0x7fffffffu; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000ffu; }
uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit & 0x200u) >> 6); }

}  // namespace

Unigram::Unigram(std::vector<UnigramPiece> pieces, uint32_t unknown, bool f32_sums)
    : pieces_(std::move(pieces)), unknown_(unknown), f32_sums_(f32_sums) {
  double lowest = std::numeric_limits<double>::infinity();
  highest_ = -lowest;
  for (uint32_t i = 0; i < pieces_.size(); ++i) {
    const UnigramPiece& piece = pieces_[i];
    if (!piece.matches) continue;
    numbers_.emplace(piece.text, i);
    longest_ = std::max(longest_, piece.text.size());
    if (piece.user_defined) continue;
    lowest = std::min(lowest, piece.score);
    highest_ = std::max(highest_, piece.score);
  }
  constexpr double penalty = 10;
  unknown_score_ = lowest - penalty;
}

const uint32_t* Unigram::find(std::string_view text) const {
  const auto found = numbers_.find(std::string(text));
  return found == numbers_.end() ? nullptr : &found->second;
}

void Unigram::append(std::vector<uint32_t>& ids, std::string_view text) const {
  constexpr size_t nowhere = std::numeric_limits<size_t>::max();
  struct Best {
    double score = 0;
    size_t from = nowhere;
    uint32_t id = 0;
  };
  std::vector<Best> best(text.size() + 1);
  const auto sum = [&](double a, double b) {
    return f32_sums_ ? static_cast<double>(static_cast<float>(a) + static_cast<float>(b)) : a + b;
  };
  std::string key;
  for (size_t at = 0; at < text.size();) {
    const size_t character = unicode::length_at(text.substr(at));
    bool single = false;
    const auto offer = [&](size_t length, double score, uint32_t id) {
      Best& target = best[at + length];
      const double total = sum(score, best[at].score);
      if (target.from == nowhere || total > target.score) target = {total, at, id};
    };
    for (size_t length = character; length <= longest_ && at + length <= text.size();) {
      key.assign(text.substr(at, length));
      if (const auto found = numbers_.find(key); found != numbers_.end()) {
        const UnigramPiece& piece = pieces_[found->second];
        const double score = piece.user_defined ? static_cast<double>(length) * highest_ - 0.1 : piece.score;
        offer(length, score, found->second);
        single = single || length == character;
      }
      if (at + length == text.size()) break;
      length += unicode::length_at(text.substr(at + length));
    }
    if (!single) offer(character, unknown_score_, unknown_);
    at += character;
  }
  std::vector<uint32_t> backwards;
  for (size_t at = text.size(); at > 0; at = best[at].from) {
    const uint32_t id = best[at].id;
    if (id == unknown_ && !backwards.empty() && backwards.back() == unknown_) continue;
    backwards.push_back(id);
  }
  ids.insert(ids.end(), backwards.rbegin(), backwards.rend());
}

CharacterMap::CharacterMap(std::string_view bytes, const std::string& file) {
  if (bytes.empty()) return;
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::bad_file, file + ": the normaliser's table " + what);
  };
  uint32_t trie = 0;
  if (bytes.size() <= sizeof trie) fail("is of " + std::to_string(bytes.size()) + " bytes, expected more");
  std::memcpy(&trie, bytes.data(), sizeof trie);
  bytes.remove_prefix(sizeof trie);
  if (trie == 0 || trie % sizeof(uint32_t) != 0 || trie >= bytes.size()) {
    fail("says that its trie is of " + std::to_string(trie) + " bytes, expected a multiple of 4 below " +
         std::to_string(bytes.size()));
  }
  units_.resize(trie / sizeof(uint32_t));
  std::memcpy(units_.data(), bytes.data(), trie);
  replacements_ = bytes.substr(trie);
  if (replacements_.back() != '\0') fail("doesn't end in a zero, as expected");
}

CharacterMap::Match CharacterMap::find(std::string_view text) const {
  Match match;
  if (units_.empty()) return match;
  // Every step is checked: the table is a stranger's.
  uint64_t at = offset_of(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t label = static_cast<unsigned char>(text[i]);
    at ^= label;
    if (at >= units_.size() || label_of(units_[at]) != label) break;
    const uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size()) break;
    const uint32_t value = value_of(units_[at]);
    if (value >= replacements_.size()) break;
    match = {i + 1, replacements_.data() + value};
  }
  return match;
}

std::string PieceNormalizer::operator()(std::string_view text) const {
  const auto next = [&](std::string_view rest) -> CharacterMap::Match {
    size_t longest = 0;
    for (const std::string& symbol : user_defined) {
      if (symbol.size() > longest && rest.starts_with(symbol)) longest = symbol.size();
    }
    if (longest) return {longest, rest.substr(0, longest)};
    const CharacterMap::Match match = map.find(rest);
    const size_t length = unicode::length_at(rest);
    return match.length ? match : CharacterMap::Match{length, rest.substr(0, length)};
  };
  if (remove_extra_whitespaces) {
    while (!text.empty()) {
      const CharacterMap::Match match = next(text);
      if (match.by != " ") break;
      text.remove_prefix(match.length);
    }
  }
  if (text.empty()) return {};
  const std::string_view space = escape_whitespaces ? space_mark : " ";
  std::string result;
  if (add_dummy_prefix) result += space;
  bool behind_space = remove_extra_whitespaces;
  while (!text.empty()) {
    const CharacterMap::Match match = next(text);
    std::string_view by = match.by;
    while (behind_space && by.starts_with(' ')) by.remove_prefix(1);
    if (!by.empty()) {
      for (const char c : by) {
        if (c == ' ') {
          result += space;
        } else {
          result += c;
        }
      }
      behind_space = remove_extra_whitespaces && by.ends_with(' ');
    }
    text.remove_prefix(match.length);
    if (!remove_extra_whitespaces) behind_space = false;
  }
  while (remove_extra_whitespaces && result.ends_with(space)) result.resize(result.size() - space.size());
  return result;
}

}  // namespace vitrine

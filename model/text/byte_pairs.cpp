#include "model/text/byte_pairs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>

#include "model/text/unicode.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

// The letter that stands for each byte: itself where it can be seen, else one from U+0100 on.
const std::array<std::string, 256>& letters() {
  static const std::array<std::string, 256> made = [] {
    std::array<std::string, 256> of;
    char32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool seen = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      unicode::append(of[byte], seen ? byte : next++);
    }
    return of;
  }();
  return made;
}

uint64_t pair_of(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

bool is_other(char32_t code) {
  return !unicode::is_space(code) && !unicode::is_letter(code) && !unicode::is_number(code);
}

}  // namespace

BytePairs::BytePairs(std::unordered_map<std::string, uint32_t> vocabulary,
                     const std::vector<std::string>& merges, const std::string& file)
    : BytePairs(std::move(vocabulary), merges, "", "", file) {
  of_characters_ = true;
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const std::string token = std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">";
    const uint32_t* id = find(token);
    if (!id) {
      throw Error(ErrorCode::bad_file, file + ": found no token " + in_quotes(token) +
                                           " in the vocabulary, expected one for each byte");
    }
    bytes_[byte] = *id;
  }
}

BytePairs::BytePairs(std::unordered_map<std::string, uint32_t> vocabulary,
                     const std::vector<std::string>& merges, std::string suffix, const std::string& unknown,
                     const std::string& file)
    : vocabulary_(std::move(vocabulary)), suffix_(std::move(suffix)) {
  const auto number = [&](const std::string& token, const std::string& merge) {
    const uint32_t* id = find(token);
    if (!id) {
      throw Error(ErrorCode::bad_file, file + ": the merge " + in_quotes(merge) + " needs the token " +
                                           in_quotes(token) + ", which the vocabulary doesn't have");
    }
    return *id;
  };
  for (const auto& [token, id] : vocabulary_) largest_ = std::max(largest_, id);
  for (uint32_t rank = 0; rank < merges.size(); ++rank) {
    const std::string& merge = merges[rank];
    const size_t space = merge.find(' ');
    if (space == std::string::npos || space == 0 || space + 1 == merge.size() ||
        merge.find(' ', space + 1) != std::string::npos) {
      throw Error(ErrorCode::bad_file, file + ": found the merge " + in_quotes(merge) +
                                           ", expected two tokens and a space between");
    }
    const std::string left = merge.substr(0, space), right = merge.substr(space + 1);
    // The last one of a pair counts, as in the library.
    merges_.insert_or_assign(pair_of(number(left, merge), number(right, merge)),
                             Merge{rank, number(left + right, merge)});
  }
  if (const uint32_t* id = find(unknown)) {
    unknown_ = *id;
    has_unknown_ = true;
  }
}

const uint32_t* BytePairs::find(const std::string& token) const {
  const auto found = vocabulary_.find(token);
  return found == vocabulary_.end() ? nullptr : &found->second;
}

// Unknown letters of a vocabulary without a token for them are left out.
std::vector<uint32_t> BytePairs::letters_of(std::string_view word) const {
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < word.size(); ++i) {
    // The mark belongs to the last character's last letter, which is the last byte's.
    std::string letter = letters()[static_cast<unsigned char>(word[i])];
    if (i + 1 == word.size()) letter += suffix_;
    const uint32_t* id = find(letter);
    if (id || has_unknown_) ids.push_back(id ? *id : unknown_);
  }
  return ids;
}

std::vector<uint32_t> BytePairs::characters_of(std::string_view word) const {
  std::vector<uint32_t> ids;
  for (const char32_t code : unicode::decode(word)) {
    std::string character;
    unicode::append(character, code);
    if (const uint32_t* id = find(character)) {
      ids.push_back(*id);
    } else {
      for (const char byte : character) ids.push_back(bytes_[static_cast<unsigned char>(byte)]);
    }
  }
  return ids;
}

void BytePairs::append(std::vector<uint32_t>& ids, std::string_view word) const {
  join(ids, of_characters_ ? characters_of(word) : letters_of(word));
}

void BytePairs::join(std::vector<uint32_t>& ids, std::span<const uint32_t> letters) const {
  constexpr uint32_t none = std::numeric_limits<uint32_t>::max();
  struct Symbol {
    uint32_t id, before, behind;
    bool gone = false;
  };
  std::vector<Symbol> symbols;
  for (uint32_t at = 0; at < letters.size(); ++at) {
    symbols.push_back({letters[at], at == 0 ? none : at - 1, at + 1 == letters.size() ? none : at + 1});
  }
  // What can be merged: by rank, then from the left.
  struct Candidate {
    uint32_t rank, at, id;
    uint64_t pair;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto offer = [&](uint32_t at) {
    if (at == none || symbols[at].behind == none) return;
    const uint64_t pair = pair_of(symbols[at].id, symbols[symbols[at].behind].id);
    if (const auto found = merges_.find(pair); found != merges_.end()) {
      candidates.push({found->second.rank, at, found->second.id, pair});
    }
  };
  for (uint32_t at = 0; at < symbols.size(); ++at) offer(at);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& left = symbols[best.at];
    // Merged away or changed since it was offered.
    if (left.gone || left.behind == none || pair_of(left.id, symbols[left.behind].id) != best.pair) continue;
    Symbol& right = symbols[left.behind];
    left.id = best.id;
    left.behind = right.behind;
    right.gone = true;
    if (left.behind != none) symbols[left.behind].before = best.at;
    offer(left.before);
    offer(best.at);
  }
  for (const Symbol& symbol : symbols) {
    if (!symbol.gone) ids.push_back(symbol.id);
  }
}

// <\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+, and behind it
// the byte level's own, which takes the first two apart.
std::vector<std::string> clip_words(std::string_view text) {
  const std::u32string codes = unicode::decode(text);
  std::vector<std::string> words;
  const std::u32string_view rest(codes);
  const auto starts = [&](size_t at, std::u32string_view what) { return rest.substr(at).starts_with(what); };
  for (size_t at = 0; at < codes.size();) {
    size_t length = 1;
    const auto extend = [&](auto&& is) {
      while (at + length < codes.size() && is(codes[at + length])) ++length;
    };
    bool special = false;
    for (const std::u32string_view name : {U"startoftext", U"endoftext"}) {
      if (starts(at, U"<|" + std::u32string(name) + U"|>")) {
        words.insert(words.end(), {"<|", unicode::encode(name), "|>"});
        at += name.size() + 4;
        special = true;
        break;
      }
    }
    if (special) continue;
    size_t contraction = 0;
    for (const std::u32string_view ending : {U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"}) {
      if (starts(at, ending)) {
        contraction = ending.size();
        break;
      }
    }
    if (contraction) {
      length = contraction;
    } else if (unicode::is_letter(codes[at])) {
      extend(unicode::is_letter);
    } else if (is_other(codes[at])) {
      extend(is_other);
    } else if (!unicode::is_number(codes[at])) {
      ++at;  // white space
      continue;
    }
    words.push_back(unicode::encode(rest.substr(at, length)));
    at += length;
  }
  return words;
}

std::vector<std::string_view> words_with_spaces(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    const size_t length = space == std::string_view::npos ? text.size() : space + 1;
    words.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return words;
}

}  // namespace vitrine

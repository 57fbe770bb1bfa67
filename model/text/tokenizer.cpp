#include "model/text/tokenizer.h"

#include <algorithm>

#include "model/text/unicode.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

// An added token's first place in the text, the longest one there.
struct Found {
  size_t at = std::string_view::npos;
  const AddedToken* token = nullptr;
};

Found find_added(std::string_view text, std::span<const AddedToken> added, bool normalized) {
  Found found;
  for (const AddedToken& token : added) {
    if (token.normalized != normalized || token.content.empty()) continue;
    const size_t at = text.find(token.content);
    if (at == std::string_view::npos) continue;
    const bool longer = at == found.at && found.token && token.content.size() > found.token->content.size();
    if (at < found.at || longer) found = {at, &token};
  }
  return found;
}

std::string_view strip(std::string_view text, bool left, bool right, bool (*space)(char32_t)) {
  const std::u32string codes = unicode::decode(text);
  size_t from = 0, to = codes.size();
  while (left && from < to && space(codes[from])) ++from;
  while (right && from < to && space(codes[to - 1])) --to;
  const size_t skipped = unicode::encode(codes.substr(0, from)).size();
  return text.substr(skipped, unicode::encode(codes.substr(from, to - from)).size());
}

}  // namespace

void Tokenizer::append_between(std::vector<uint32_t>& ids, std::string_view text, bool normalized,
                               bool first) const {
  bool strip_left = false;
  while (true) {
    const Found found = find_added(text, added_, normalized);
    std::string_view part = text.substr(0, found.at);
    part = strip(part, strip_left, found.token && found.token->lstrip, space_);
    if (!part.empty()) {
      if (normalized) {
        append(ids, part, first);
      } else {
        append_between(ids, normalize(part), true, first);
      }
    }
    if (!found.token) return;
    first = false;
    ids.push_back(found.token->id);
    strip_left = found.token->rstrip;
    text.remove_prefix(found.at + found.token->content.size());
  }
}

std::vector<uint32_t> Tokenizer::pieces(std::string_view text) const {
  if (find_invalid_utf8(text)) {
    throw Error(ErrorCode::usage, "found the text " + in_quotes(text) + ", expected UTF-8");
  }
  std::vector<uint32_t> ids;
  append_between(ids, start(text), false, true);
  return ids;
}

std::vector<uint32_t> Tokenizer::encode(std::string_view text, uint64_t length) const {
  std::vector<uint32_t> ids = pieces(text);
  const uint64_t around = begin_.has_value() + end_.has_value();
  if (ids.size() + around > length) ids.resize(length < around ? 0 : length - around);
  if (begin_) ids.insert(ids.begin(), *begin_);
  if (end_) ids.push_back(*end_);
  ids.resize(length, pad_);
  return ids;
}

uint32_t Tokenizer::size() const {
  uint32_t most = std::max(largest(), pad_);
  for (const AddedToken& token : added_) most = std::max(most, token.id);
  return std::max({most, begin_.value_or(0), end_.value_or(0)}) + 1;
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& folder, TextKind kind, bool lower) {
  const auto has = [&](const char* name) {
    std::error_code ignored;
    return std::filesystem::exists(folder / name, ignored);
  };
  if (kind == TextKind::siglip && has("spiece.model")) return read_siglip_pieces(folder / "spiece.model");
  if (has("tokenizer.json")) return read_tokenizer_json(folder / "tokenizer.json", lower);
  if (kind == TextKind::clip && has("vocab.json") && has("merges.txt")) {
    return read_clip_vocabulary(folder / "vocab.json", folder / "merges.txt");
  }
  throw Error(ErrorCode::bad_file,
              shown(folder) + ": found no tokenizer, expected " +
                  (kind == TextKind::clip ? "tokenizer.json, or vocab.json and merges.txt"
                                          : "spiece.model or tokenizer.json"));
}

}  // namespace vitrine

// SentencePiece's unigram model: of all ways to cut a text into pieces, the one whose scores add up to most.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vitrine {

struct UnigramPiece {
  std::string text;
  double score = 0;
  bool matches = true;        // control and unknown pieces don't
  bool user_defined = false;  // found whatever their score
};

class Unigram {
 public:
  // f32_sums: scores are added in float, as SentencePiece does; the library `tokenizers` adds them in double.
  // The pieces are numbered as they come, `unknown` is one of them.
  Unigram(std::vector<UnigramPiece> pieces, uint32_t unknown, bool f32_sums);

  // Of UTF-8. Characters that no piece has are `unknown`, those in a row one of it.
  void append(std::vector<uint32_t>& ids, std::string_view text) const;
  uint32_t size() const { return static_cast<uint32_t>(pieces_.size()); }
  const uint32_t* find(std::string_view text) const;

 private:
  std::vector<UnigramPiece> pieces_;
  std::unordered_map<std::string, uint32_t> numbers_;
  size_t longest_ = 0;  // piece, in bytes
  uint32_t unknown_;
  bool f32_sums_;
  double unknown_score_ = 0, highest_ = 0;
};

// A normaliser's table of SentencePiece: a trie of what is replaced, and by what. Made at training from NMT's
// and Unicode's rules; what is in the file is what counts.
class CharacterMap {
 public:
  CharacterMap() = default;
  // Throws Error(bad_file) naming `file`. Empty bytes: nothing is replaced.
  CharacterMap(std::string_view bytes, const std::string& file);

  struct Match {
    size_t length = 0;  // of what is replaced; 0: nothing is
    std::string_view by;
  };
  // The longest one that text begins with.
  Match find(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;
};

// What SentencePiece does to a text in front of the model.
struct PieceNormalizer {
  CharacterMap map;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
  std::vector<std::string> user_defined = {};  // left as they are
  std::string operator()(std::string_view text) const;
};

}  // namespace vitrine

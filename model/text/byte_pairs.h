// Byte-pair encoding: a word's letters are joined pair by pair in the order of a list of merges.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vitrine {

class BytePairs {
 public:
  // vocabulary: token to number. merges: the two halves of each with a space between them. A merge of what
  // isn't in the vocabulary is an Error(bad_file) that names `file`.
  //
  // As CLIP has it: of a word's bytes, each written as the letter that stands for it, the last one marked
  // with `suffix`.
  BytePairs(std::unordered_map<std::string, uint32_t> vocabulary, const std::vector<std::string>& merges,
            std::string suffix, const std::string& unknown, const std::string& file);
  // As Gemma has it: of characters, those that have no token by their bytes, whose tokens <0x00> to <0xFF>
  // have to be there.
  BytePairs(std::unordered_map<std::string, uint32_t> vocabulary, const std::vector<std::string>& merges,
            const std::string& file);

  // Of a word in UTF-8.
  void append(std::vector<uint32_t>& ids, std::string_view word) const;
  uint32_t largest() const { return largest_; }
  const uint32_t* find(const std::string& token) const;

 private:
  struct Merge {
    uint32_t rank, id;
  };
  std::vector<uint32_t> letters_of(std::string_view word) const;
  std::vector<uint32_t> characters_of(std::string_view word) const;
  void join(std::vector<uint32_t>& ids, std::span<const uint32_t> letters) const;

  std::unordered_map<std::string, uint32_t> vocabulary_;
  std::unordered_map<uint64_t, Merge> merges_;  // by both halves' numbers
  bool of_characters_ = false;
  std::array<uint32_t, 256> bytes_{};  // their tokens, for characters that have none
  std::string suffix_;
  uint32_t unknown_ = 0, largest_ = 0;
  bool has_unknown_ = false;
};

// The words of text: those that CLIP's regular expression finds; what is between them is dropped.
std::vector<std::string> clip_words(std::string_view text);
// Those that end with each space, and what is left: all of the text.
std::vector<std::string_view> words_with_spaces(std::string_view text);

}  // namespace vitrine

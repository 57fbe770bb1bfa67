// Byte-level byte-pair encoding as CLIP has it: a word's bytes, the last one marked, are joined pair by pair
// in the order of a list of merges.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vitrine {

class BytePairs {
 public:
  // vocabulary: token to number. merges: the two halves of each with a space between them. A merge of what
  // isn't in the vocabulary is an Error(bad_file) that names `file`.
  BytePairs(std::unordered_map<std::string, uint32_t> vocabulary, const std::vector<std::string>& merges,
            std::string suffix, const std::string& unknown, const std::string& file);

  // Of a word in UTF-8; each byte is first written as the letter that stands for it.
  void append(std::vector<uint32_t>& ids, std::string_view word) const;
  uint32_t largest() const { return largest_; }
  const uint32_t* find(const std::string& token) const;

 private:
  struct Merge {
    uint32_t rank, id;
  };
  std::unordered_map<std::string, uint32_t> vocabulary_;
  std::unordered_map<uint64_t, Merge> merges_;  // by both halves' numbers
  std::string suffix_;
  uint32_t unknown_ = 0, largest_ = 0;
  bool has_unknown_ = false;
};

// The words of text: those that CLIP's regular expression finds; what is between them is dropped.
std::vector<std::string> clip_words(std::string_view text);

}  // namespace vitrine

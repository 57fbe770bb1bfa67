// Text to a text tower's numbers: the tokenizers of CLIP, SigLIP and SigLIP 2, read from the files that their
// publishers left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/text/byte_pairs.h"
#include "model/text/unicode.h"
#include "model/text/unigram.h"

namespace vitrine {

// A token that is found in the text as it stands, or as it stands behind normalize().
struct AddedToken {
  std::string content;
  uint32_t id = 0;
  bool lstrip = false, rstrip = false;  // white space beside it goes with it
  bool normalized = false;              // found behind normalize()
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The text's tokens with those that begin and end it: `length` numbers, padded or cut as the library does
  // with padding="max_length" and truncation. Throws Error(usage) for text that is no UTF-8.
  std::vector<uint32_t> encode(std::string_view text, uint64_t length) const;
  // Without what begins, ends and pads it.
  std::vector<uint32_t> pieces(std::string_view text) const;
  // One more than the largest number that comes out.
  uint32_t size() const;

 protected:
  // Done to the whole text first.
  virtual std::string start(std::string_view text) const { return std::string(text); }
  virtual std::string normalize(std::string_view text) const { return std::string(text); }
  // Of normalised text between added tokens. `first`: it is where the text begins.
  virtual void append(std::vector<uint32_t>& ids, std::string_view text, bool first) const = 0;
  // The largest id that append() knows.
  virtual uint32_t largest() const = 0;
  // White space to be stripped beside added tokens.
  bool (*space_)(char32_t) = unicode::is_space;
  std::vector<AddedToken> added_;
  std::optional<uint32_t> begin_, end_;
  uint32_t pad_ = 0;

 private:
  void append_between(std::vector<uint32_t>& ids, std::string_view text, bool normalized, bool first) const;
};

enum class TextKind : uint8_t { clip, siglip };

// From the model's folder: for CLIP tokenizer.json, else vocab.json with merges.txt; for SigLIP spiece.model,
// which its class reads, else tokenizer.json. Throws Error(bad_file) that names the file and what isn't as it
// must be, a step of a tokenizer that isn't known among them. `lower`: Gemma's words in lower case, whatever
// the files say.
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& folder, TextKind kind,
                                          bool lower = false);
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::filesystem::path& file, bool lower = false);
std::unique_ptr<Tokenizer> read_clip_vocabulary(const std::filesystem::path& vocab,
                                                const std::filesystem::path& merges);
std::unique_ptr<Tokenizer> read_siglip_pieces(const std::filesystem::path& file);

}  // namespace vitrine

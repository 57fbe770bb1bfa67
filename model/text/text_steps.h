// What a tokenizer.json has done to a text before its model cuts it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/files/json_object.h"
#include "model/text/tokenizer.h"

namespace vitrine {

using TextStep = std::function<std::u32string(const std::u32string&)>;
using TextSteps = std::vector<TextStep>;
std::string apply_steps(const TextSteps& steps, std::string_view text);

// "normalizer". Throws Error(bad_file) naming a step that isn't known.
TextSteps read_steps(const JsonObject& normalizer);
TextStep lower_case();
// Those of CLIP: composed, white space as one space each, lower case.
TextSteps clip_steps();

// "pre_tokenizer" of byte pairs: CLIP's words or Gemma's, which end with each space. Throws Error(bad_file)
// for any other.
enum class PairWords : uint8_t { clip, with_spaces };
PairWords read_pair_words(const JsonObject& splitter);

// SentencePiece's way of marking words.
struct Metaspace {
  enum class Prepend : uint8_t { always, first, never };
  char32_t mark = U'\u2581';
  Prepend prepend = Prepend::always;
  bool split = true;             // in front of marks
  bool split_on_spaces = false;  // before anything is marked
  std::vector<std::string> words(std::string_view text, bool first) const;
};
Metaspace read_metaspace(const JsonObject& splitter);

// merges.txt: a line each, behind a first one that begins with #version.
std::vector<std::string> read_merge_lines(const std::filesystem::path& file);

}  // namespace vitrine

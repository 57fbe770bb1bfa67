// SentencePiece's model file: a protobuf message of which the fields are read that say how to cut text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/text/unigram.h"

namespace vitrine {

struct SentencePieceModel {
  std::vector<UnigramPiece> pieces;
  std::vector<std::pair<std::string, uint32_t>> reserved;  // control and unknown pieces with their numbers
  uint32_t unknown = 0;
  PieceNormalizer normalizer;
};

// Throws Error(bad_file) naming `file` where the bytes are no such model, and for what isn't done: a model
// that is no unigram, byte fallback, white space behind words.
SentencePieceModel parse_sentencepiece(std::string_view bytes, const std::string& file);

}  // namespace vitrine

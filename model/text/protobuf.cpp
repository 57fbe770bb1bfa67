#include "model/text/protobuf.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

// The fields of a message, one after the other.
class Fields {
 public:
  Fields(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  // False at the end. Then `number`, `kind` and, by kind, `value` or `text` are the next field's.
  bool next() {
    if (bytes_.empty()) return false;
    const uint64_t tag = varint();
    number = tag >> 3;
    kind = tag & 7;
    value = 0;
    text = {};
    switch (kind) {
      case 0:
        value = varint();
        return true;
      case 1:
        text = take(8);
        return true;
      case 2:
        text = take(varint());
        return true;
      case 5:
        text = take(4);
        std::memcpy(&value, text.data(), 4);
        static_assert(std::endian::native == std::endian::little);
        return true;
      default:
        fail("a field of wire type " + std::to_string(kind));
    }
  }

  uint64_t number = 0, kind = 0, value = 0;
  std::string_view text;

  bool is(uint64_t field, uint64_t of_kind) const {
    if (number != field) return false;
    if (kind != of_kind) fail("field " + std::to_string(field) + " of wire type " + std::to_string(kind));
    return true;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::bad_file, file_ + ": found " + what + ", expected a SentencePiece model");
  }

 private:
  uint64_t varint() {
    uint64_t result = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) fail("a number that is cut off");
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      result |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return result;
    }
    fail("a number of more than 64 bits");
  }

  std::string_view take(uint64_t length) {
    if (length > bytes_.size()) {
      fail("a field of " + std::to_string(length) + " bytes where " + std::to_string(bytes_.size()) +
           " are left");
    }
    const std::string_view taken = bytes_.substr(0, length);
    bytes_.remove_prefix(length);
    return taken;
  }

  std::string_view bytes_;
  const std::string& file_;
};

enum : uint64_t { type_normal = 1, type_unknown, type_control, type_user_defined, type_unused, type_byte };

void read_piece(std::string_view bytes, SentencePieceModel& model, std::optional<uint32_t>& unknown,
                const std::string& file) {
  Fields fields(bytes, file);
  UnigramPiece piece;
  uint64_t type = type_normal;
  while (fields.next()) {
    if (fields.is(1, 2)) piece.text = fields.text;
    if (fields.is(2, 5)) {
      piece.score = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(fields.value)));
    }
    if (fields.is(3, 0)) type = fields.value;
  }
  if (piece.text.empty()) fields.fail("a piece without text");
  if (find_invalid_utf8(piece.text)) fields.fail("the piece " + in_quotes(piece.text) + ", no UTF-8");
  if (!std::isfinite(piece.score)) fields.fail("a score that isn't finite");
  if (type < type_normal || type > type_unused) {
    fields.fail(type == type_byte ? "a piece for a byte, which isn't supported yet"
                                  : "a piece of type " + std::to_string(type));
  }
  const auto number = static_cast<uint32_t>(model.pieces.size());
  piece.matches = type == type_normal || type == type_user_defined;
  piece.user_defined = type == type_user_defined;
  if (type == type_unknown) {
    if (unknown) fields.fail("two unknown pieces");
    unknown = number;
  }
  if (type == type_unknown || type == type_control) model.reserved.emplace_back(piece.text, number);
  if (piece.user_defined) model.normalizer.user_defined.push_back(piece.text);
  model.pieces.push_back(std::move(piece));
}

void read_trainer(std::string_view bytes, const std::string& file) {
  constexpr uint64_t unigram = 1;
  Fields fields(bytes, file);
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::bad_file, file + ": found " + what + ", which isn't supported yet");
  };
  while (fields.next()) {
    if (fields.is(3, 0) && fields.value != unigram) {
      constexpr const char* names[] = {"", "unigram", "BPE", "word", "character"};
      refuse("a model of type " +
             (fields.value < 5 ? std::string(names[fields.value]) : std::to_string(fields.value)));
    }
    if (fields.is(24, 0) && fields.value) refuse("white space behind words instead of in front");
    if (fields.is(35, 0) && fields.value) refuse("byte fallback");
  }
}

void read_normalizer(std::string_view bytes, PieceNormalizer& normalizer, const std::string& file) {
  Fields fields(bytes, file);
  while (fields.next()) {
    if (fields.is(2, 2)) normalizer.map = CharacterMap(fields.text, file);
    if (fields.is(3, 0)) normalizer.add_dummy_prefix = fields.value != 0;
    if (fields.is(4, 0)) normalizer.remove_extra_whitespaces = fields.value != 0;
    if (fields.is(5, 0)) normalizer.escape_whitespaces = fields.value != 0;
  }
}

}  // namespace

SentencePieceModel parse_sentencepiece(std::string_view bytes, const std::string& file) {
  constexpr size_t sensible = 4'000'000;  // pieces
  SentencePieceModel model;
  std::optional<uint32_t> unknown;
  Fields fields(bytes, file);
  while (fields.next()) {
    if (fields.is(1, 2)) {
      if (model.pieces.size() == sensible) fields.fail("more than 4 million pieces");
      read_piece(fields.text, model, unknown, file);
    }
    if (fields.is(2, 2)) read_trainer(fields.text, file);
    if (fields.is(3, 2)) read_normalizer(fields.text, model.normalizer, file);
  }
  if (!unknown) fields.fail(counted(model.pieces.size(), "piece") + " and no unknown one");
  bool normal = false;
  for (const UnigramPiece& piece : model.pieces) normal = normal || (piece.matches && !piece.user_defined);
  if (!normal) fields.fail("no piece of text");
  model.unknown = *unknown;
  return model;
}

}  // namespace vitrine

#include "train/data/parquet/thrift_reader.h"

namespace vitrine::parquet {
namespace {

constexpr int most_depth = 32;

// Structures and lists inside each other, no deeper than a stack has room for.
class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(depth) {
    if (depth >= most_depth) throw BadThrift{"structures too deep inside each other", false};
    ++depth;
  }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int& depth_;
};

bool is_number(ThriftReader::Type type) {
  using Type = ThriftReader::Type;
  return type == Type::i16 || type == Type::i32 || type == Type::i64;
}

}  // namespace

uint8_t ThriftReader::byte() {
  if (at_ >= bytes_.size()) throw BadThrift{"an end in the middle", true};
  return std::to_integer<uint8_t>(bytes_[at_++]);
}

uint64_t ThriftReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint64_t next = byte();
    value |= (next & 0x7f) << shift;
    if (next < 0x80) return value;
  }
  throw BadThrift{"a number of more than 64 bits", false};
}

int64_t ThriftReader::zigzag() {
  const uint64_t value = varint();
  return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

void ThriftReader::require(Type found, Type expected) const {
  if (found != expected) throw BadThrift{"a field of another type than it has", false};
}

void ThriftReader::structure(const std::function<void(int id, Type type)>& take) {
  const Deeper deeper(depth_);
  int64_t id = 0;
  while (true) {
    const uint8_t head = byte();
    const auto type = static_cast<Type>(head & 15);
    if (type == Type::stop) return;
    if (type > Type::structure) throw BadThrift{"a field of unknown type", false};
    id = head >> 4 ? id + (head >> 4) : zigzag();
    if (id < INT16_MIN || id > INT16_MAX) throw BadThrift{"a field of unknown number", false};
    take(static_cast<int>(id), type);
  }
}

void ThriftReader::list(Type type, const std::function<void(Type type)>& take) {
  if (type != Type::set) require(type, Type::list);
  const Deeper deeper(depth_);
  const uint8_t head = byte();
  uint64_t count = head >> 4;
  if (count == 15) count = varint();
  const auto element = static_cast<Type>(head & 15);
  if (element == Type::stop || element > Type::structure) throw BadThrift{"a list of unknown type", false};
  // Each element is a byte at least, so this ends with the bytes.
  for (uint64_t i = 0; i < count; ++i) take(element);
}

int64_t ThriftReader::integer(Type type) {
  if (type == Type::yes || type == Type::no) return type == Type::yes;
  if (type == Type::byte) return static_cast<int8_t>(byte());
  if (!is_number(type)) throw BadThrift{"something else where a number is expected", false};
  return zigzag();
}

std::string_view ThriftReader::binary(Type type) {
  require(type, Type::binary);
  const uint64_t size = varint();
  if (size > bytes_.size() - at_) throw BadThrift{"a text that is longer than what follows", true};
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, static_cast<size_t>(size));
  at_ += static_cast<size_t>(size);
  return text;
}

// Truth values are a byte each where they are elements, and none where they are fields.
void ThriftReader::skip_element(Type type) {
  if (type == Type::yes || type == Type::no) {
    byte();
  } else {
    skip(type);
  }
}

void ThriftReader::skip(Type type) {
  switch (type) {
    case Type::yes:
    case Type::no:
      return;
    case Type::byte:
      byte();
      return;
    case Type::i16:
    case Type::i32:
    case Type::i64:
      varint();
      return;
    case Type::real:
      for (int i = 0; i < 8; ++i) byte();
      return;
    case Type::binary:
      binary(type);
      return;
    case Type::list:
    case Type::set:
      list(type, [this](Type element) { skip_element(element); });
      return;
    case Type::map: {
      const Deeper deeper(depth_);
      const uint64_t count = varint();
      if (count == 0) return;
      const uint8_t types = byte();
      const auto key = static_cast<Type>(types >> 4), value = static_cast<Type>(types & 15);
      for (uint64_t i = 0; i < count; ++i) {
        skip_element(key);
        skip_element(value);
      }
      return;
    }
    case Type::structure:
      structure([this](int, Type field) { skip(field); });
      return;
    case Type::stop:
      break;
  }
  throw BadThrift{"a field of unknown type", false};
}

}  // namespace vitrine::parquet

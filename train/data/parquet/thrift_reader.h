// Thrift's compact protocol, as far as Parquet's headers use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace vitrine::parquet {

// What is thrown for bytes that break the protocol's rules: whoever reads a file says of which.
struct BadThrift {
  const char* what;
  bool ends_early;  // more bytes might have been right
};

// Reads fields, one after the other, out of bytes that others made: nothing is taken that isn't there.
class ThriftReader {
 public:
  enum class Type : uint8_t {
    stop = 0,
    yes = 1,
    no = 2,
    byte = 3,
    i16 = 4,
    i32 = 5,
    i64 = 6,
    real = 7,
    binary = 8,
    list = 9,
    set = 10,
    map = 11,
    structure = 12
  };

  explicit ThriftReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t position() const { return at_; }

  // Tells `take` each field of a structure that begins here; it has to read or skip what it is told of.
  void structure(const std::function<void(int id, Type type)>& take);
  // The same of each element of a list.
  void list(Type type, const std::function<void(Type type)>& take);

  // A whole number of any width, or a truth value.
  int64_t integer(Type type);
  std::string_view binary(Type type);
  void skip(Type type);

 private:
  uint8_t byte();
  uint64_t varint();
  int64_t zigzag();
  void require(Type found, Type expected) const;
  void skip_element(Type type);

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace vitrine::parquet

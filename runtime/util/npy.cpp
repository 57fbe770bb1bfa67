#include "runtime/util/npy.h"

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>

#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "runtime/util/overflow.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

static_assert(std::endian::native == std::endian::little, "the values are copied as they lie in the file");

struct DTypeRow {
  NpyDType dtype;
  std::string_view name, descr;
  uint64_t size;
};
constexpr std::array<DTypeRow, 5> dtypes{{{NpyDType::u8, "uint8", "|u1", 1},
                                          {NpyDType::f16, "float16", "<f2", 2},
                                          {NpyDType::f32, "float32", "<f4", 4},
                                          {NpyDType::f64, "float64", "<f8", 8},
                                          {NpyDType::i64, "int64", "<i8", 8}}};

const DTypeRow& row_of(NpyDType dtype) { return dtypes.at(static_cast<size_t>(dtype)); }

constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t longest_header = size_t{1} << 16;  // NumPy itself reads no more than 10 000 bytes
constexpr size_t highest_rank = 32;

// The header's text: a Python dictionary of exactly three entries, then blanks and a line's end.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  NpyHeader parse() {
    NpyHeader header;
    std::optional<NpyDType> dtype;
    std::optional<std::vector<uint64_t>> shape;
    bool has_order = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !dtype) {
        dtype = descr();
      } else if (key == "fortran_order" && !has_order) {
        has_order = order();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        fail("has the key " + in_quotes(key) +
             " in its header, expected descr, fortran_order and shape once");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!dtype || !has_order || !shape) {
      fail("has no " +
           std::string(!dtype       ? "descr"
                       : !has_order ? "fortran_order"
                                    : "shape") +
           " in its header");
    }
    const std::string_view rest = text_.substr(at_);
    if (rest.empty() || rest.back() != '\n' || rest.find_first_not_of(' ') != rest.size() - 1) {
      fail("has " + in_quotes(rest, 40) + " after its header's }, expected blanks and the end of the line");
    }
    header.dtype = *dtype;
    header.shape = std::move(*shape);
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::bad_file, name_ + " " + what);
  }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool accept(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail_at_expected(std::string("'") + c + "'");
  }

  [[noreturn]] void fail_at_expected(const std::string& expected) const {
    fail("has " + in_quotes(text_.substr(at_), 24) + " at byte " + std::to_string(at_) +
         " of its header, expected " + expected);
  }

  std::string_view string() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail_at_expected("a string");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail_at_expected("a string that ends");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }

  NpyDType descr() {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '[') fail("holds records, expected plain numbers");
    const std::string_view value = string();
    for (const DTypeRow& row : dtypes) {
      if (value == row.descr || (row.size == 1 && value == "<u1")) return row.dtype;
    }
    if (value.starts_with('>'))
      fail("holds big-endian " + in_quotes(value) + ", expected little-endian values");
    if (value.find('O') != std::string_view::npos) {
      fail("holds Python objects (" + in_quotes(value) + "), expected plain numbers");
    }
    fail("holds values of type " + in_quotes(value) + ", expected float32, float16, float64, int64 or uint8");
  }

  bool order() {
    skip_blanks();
    if (text_.substr(at_).starts_with("True")) fail("is in Fortran order, expected C order");
    if (!text_.substr(at_).starts_with("False")) fail_at_expected("False");
    at_ += std::string_view("False").size();
    return true;
  }

  // () or (n,) or (n, m) or (n, m,): `(n)` is no tuple in Python.
  std::vector<uint64_t> tuple() {
    std::vector<uint64_t> shape;
    expect('(');
    while (!accept(')')) {
      shape.push_back(dimension());
      if (shape.size() > highest_rank) {
        fail("has more than " + std::to_string(highest_rank) + " dimensions, NumPy's limit");
      }
      if (accept(',')) continue;
      if (shape.size() == 1) fail_at_expected("',', because a shape of one dimension is written (n,)");
      expect(')');
      break;
    }
    return shape;
  }

  uint64_t dimension() {
    skip_blanks();
    const size_t begin = at_;
    uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<uint64_t>(text_[at_] - '0');
      if (!multiply(value, 10) || !add(value, digit)) {
        fail("has a dimension that starts with " + in_quotes(text_.substr(begin, 24)) +
             ", larger than 64 bits can say");
      }
    }
    const size_t digits = at_ - begin;
    if (digits == 0 || (digits > 1 && text_[begin] == '0')) {
      at_ = begin;
      fail_at_expected("a dimension");
    }
    return value;
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
};

// The number of bytes of the data, or nothing if no 64-bit number can say it.
std::optional<uint64_t> data_size(NpyHeader& header) {
  uint64_t size = size_of(header.dtype);
  header.elements = 1;
  for (const uint64_t dim : header.shape) {
    if (!multiply(size, dim)) return std::nullopt;
    header.elements *= dim;  // is no larger than size
  }
  return size;
}

template <typename T>
constexpr NpyDType dtype_of() {
  if constexpr (std::is_same_v<T, uint8_t>) return NpyDType::u8;
  if constexpr (std::is_same_v<T, uint16_t>) return NpyDType::f16;
  if constexpr (std::is_same_v<T, float>) return NpyDType::f32;
  if constexpr (std::is_same_v<T, double>) return NpyDType::f64;
  if constexpr (std::is_same_v<T, int64_t>) return NpyDType::i64;
}

void write(const std::filesystem::path& path, NpyDType dtype, std::span<const uint64_t> shape,
           std::span<const std::byte> data) {
  NpyHeader header{.dtype = dtype, .shape = {shape.begin(), shape.end()}};
  const std::optional<uint64_t> size = data_size(header);
  if (size != data.size() || shape.size() > highest_rank) {
    throw Error(ErrorCode::usage, shown(path) + " was to be written with the shape " + npy_shape(shape) +
                                      " and " + std::to_string(data.size() / size_of(dtype)) + " values");
  }
  std::string text = "{'descr': '" + std::string(row_of(dtype).descr) +
                     "', 'fortran_order': False, 'shape': " + npy_shape(shape) + ", }";
  constexpr size_t alignment = 64;
  constexpr size_t before_text = 10;  // magic, version, length
  const size_t end = (before_text + text.size() + 1 + alignment - 1) / alignment * alignment;
  text.resize(end - before_text - 1, ' ');
  text += '\n';
  std::string head(magic);
  head += {'\x01', '\x00', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  head += text;

  AtomicFile file(path);
  file.write(std::as_bytes(std::span(head)));
  file.write(data);
  file.commit();
}

}  // namespace

std::string_view name_of(NpyDType dtype) { return row_of(dtype).name; }
uint64_t size_of(NpyDType dtype) { return row_of(dtype).size; }

std::string npy_shape(std::span<const uint64_t> shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i != 0 ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& name) {
  const auto fail = [&](const std::string& what) -> void {
    throw Error(ErrorCode::bad_file, name + " " + what);
  };
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto byte = [&](size_t at) { return static_cast<uint64_t>(std::to_integer<uint8_t>(bytes[at])); };

  if (!text.starts_with(magic)) {
    fail("is no .npy file: it starts with " + in_quotes(text.substr(0, magic.size())) +
         ", expected \\x93NUMPY");
  }
  constexpr size_t version_end = 8;
  if (text.size() < version_end + 2) fail("ends inside the first ten bytes of an .npy file");
  const uint64_t major = byte(6);
  if ((major != 1 && major != 2) || byte(7) != 0) {
    fail("has .npy version " + std::to_string(major) + "." + std::to_string(byte(7)) +
         ", expected 1.0 or 2.0");
  }
  const size_t text_begin = version_end + (major == 1 ? 2 : 4);
  if (text.size() < text_begin) fail("ends inside the length of its header");
  uint64_t length = 0;
  for (size_t i = text_begin; i-- > version_end;) length = length << 8 | byte(i);
  if (length > longest_header) {
    fail("has a header of " + std::to_string(length) + " bytes, expected at most " +
         std::to_string(longest_header));
  }
  if (length > text.size() - text_begin) {
    fail("has a header of " + std::to_string(length) + " bytes, but only " +
         std::to_string(text.size() - text_begin) + " bytes follow");
  }

  NpyHeader header = HeaderParser(text.substr(text_begin, length), name).parse();
  header.data_offset = text_begin + length;
  const uint64_t found = text.size() - header.data_offset;
  const std::optional<uint64_t> expected = data_size(header);
  if (expected != found) {
    fail("has " + std::to_string(found) + " bytes of data, expected " +
         (expected ? std::to_string(*expected) : std::string("more than 64 bits can count")) + " for " +
         std::string(name_of(header.dtype)) + " of shape " + npy_shape(header.shape));
  }
  return header;
}

NpyFile::NpyFile(const std::filesystem::path& path)
    : file_(path), header_(parse_npy_header(file_.bytes(), shown(path))) {}

std::span<const std::byte> NpyFile::data() const { return file_.bytes().subspan(header_.data_offset); }

template <typename T>
std::vector<T> NpyFile::values() const {
  if (header_.dtype != dtype_of<T>()) {
    throw Error(ErrorCode::bad_file, shown(path()) + " holds " + std::string(name_of(header_.dtype)) +
                                         " values, expected " + std::string(name_of(dtype_of<T>())));
  }
  std::vector<T> values(header_.elements);
  if (!values.empty()) std::memcpy(values.data(), data().data(), data().size());
  return values;
}

template std::vector<uint8_t> NpyFile::values() const;
template std::vector<uint16_t> NpyFile::values() const;
template std::vector<float> NpyFile::values() const;
template std::vector<double> NpyFile::values() const;
template std::vector<int64_t> NpyFile::values() const;

void write_npy(const std::filesystem::path& path, std::span<const uint64_t> shape,
               std::span<const float> values) {
  write(path, NpyDType::f32, shape, std::as_bytes(values));
}
void write_npy(const std::filesystem::path& path, std::span<const uint64_t> shape,
               std::span<const uint8_t> values) {
  write(path, NpyDType::u8, shape, std::as_bytes(values));
}

}  // namespace vitrine

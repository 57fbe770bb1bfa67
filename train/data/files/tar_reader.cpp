#include "train/data/files/tar_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

constexpr uint64_t block = 512;
constexpr uint64_t most_heading = uint64_t{1} << 20;  // bytes of a long name or of pax fields

struct Header {
  std::string_view bytes;

  std::string_view text(size_t offset, size_t size) const {
    const std::string_view field = bytes.substr(offset, size);
    return field.substr(0, field.find('\0'));
  }
  // Octal digits, or, of what these have no room for, GNU's bytes of a number behind a set bit.
  std::optional<uint64_t> number(size_t offset, size_t size) const {
    std::string_view field = bytes.substr(offset, size);
    if (static_cast<unsigned char>(field[0]) & 0x80) {
      uint64_t value = static_cast<unsigned char>(field[0]) & 0x7f;
      for (const char c : field.substr(1)) {
        if (value >> 56) return std::nullopt;
        value = value << 8 | static_cast<unsigned char>(c);
      }
      return value;
    }
    const size_t begin = field.find_first_not_of(' ');
    if (begin == std::string_view::npos) return std::nullopt;
    field = field.substr(begin);
    field = field.substr(0, field.find_first_of(std::string_view(" \0", 2)));
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, 8);
    if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
    return value;
  }
  bool sum_holds() const {
    constexpr size_t begin = 148, end = 156;
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      sum += i >= begin && i < end ? ' ' : static_cast<unsigned char>(bytes[i]);
    return number(begin, end - begin) == sum;
  }
  char type() const { return bytes[156]; }
  std::string name() const {
    std::string name(text(0, 100));
    // POSIX's; GNU has other fields where the folders are.
    if (bytes.substr(257, 6) == std::string_view("ustar\0", 6) && !text(345, 155).empty())
      name = std::string(text(345, 155)) + "/" + name;
    return name;
  }
};

class Reader {
 public:
  Reader(const ByteFile& file, FileWindow& window) : file_(file), window_(window) {}

  void read(const std::function<void(const TarMember&)>& take) {
    while (true) {
      if (at_ == file_.size())
        fail("it ends without two blocks of zeros, expected them behind the last member");
      const Header header{text_at(at_, block)};
      if (header.bytes.find_first_not_of('\0') == std::string_view::npos) return;
      if (!header.sum_holds()) {
        fail(at_ == 0 ? "the file begins with " + in_quotes(header.bytes, 12) +
                            ", expected a tar archive, not compressed"
                      : "found no header of a member, expected one with a right checksum");
      }
      const std::optional<uint64_t> said = header.number(124, 12);
      if (!said) fail("found a member of unknown size, expected a number");
      member(header, *said, take);
    }
  }

 private:
  void member(const Header& header, uint64_t size, const std::function<void(const TarMember&)>& take) {
    const char type = header.type();
    const bool is_file = type == '0' || type == '\0' || type == '7';
    TarMember found{.name = header.name(), .offset = at_ + block, .size = size};
    if (is_file) {
      if (long_name_) found.name = *long_name_;
      if (long_size_) found.size = *long_size_;
    }
    const uint64_t left = file_.size() - found.offset;
    if (found.size > left) {
      fail("the member " + in_quotes(found.name) + " has " + std::to_string(found.size) +
           " bytes, expected at most the " + std::to_string(left) + " that follow");
    }
    // The last member's padding may be missing where the end is cut off; the blocks of zeros are, too, then.
    const uint64_t padded = std::min(left, (found.size + block - 1) / block * block);
    if (type == 'L' || type == 'x') {
      if (found.size > most_heading)
        fail("found a name or fields of " + std::to_string(found.size) + " bytes, expected at most " +
             std::to_string(most_heading));
      const std::string_view content = text_at(found.offset, found.size);
      if (type == 'L') {
        long_name_ = std::string(content.substr(0, content.find('\0')));
      } else {
        read_fields(content);
      }
    } else if (is_file) {
      // An old archive's folders are files whose names end so.
      if (!found.name.ends_with('/')) take(found);
      long_name_.reset();
      long_size_.reset();
    } else if (type == '5') {
      long_name_.reset();
      long_size_.reset();
    } else if (type != 'g' && type != 'K') {
      fail("the member " + in_quotes(long_name_.value_or(found.name)) + " is " + kind(type) +
           ", expected a file or a folder");
    }
    at_ = found.offset + padded;
  }

  static std::string kind(char type) {
    switch (type) {
      case '1':
        return "a hard link";
      case '2':
        return "a symbolic link";
      case '3':
      case '4':
        return "a device";
      case '6':
        return "a pipe";
      case 'S':
        return "a sparse file";
      case 'M':
        return "the rest of a file in another archive";
    }
    return "of the type " + in_quotes(std::string_view(&type, 1));
  }

  // "LENGTH KEY=VALUE\n", one behind the other.
  void read_fields(std::string_view fields) {
    while (!fields.empty()) {
      uint64_t length = 0;
      const auto [end, error] = std::from_chars(fields.data(), fields.data() + fields.size(), length);
      const auto digits = static_cast<uint64_t>(end - fields.data());
      if (error != std::errc() || length > fields.size() || length < digits + 3 || fields[digits] != ' ' ||
          fields[length - 1] != '\n') {
        fail("found fields (pax) that break their rules, expected \"LENGTH KEY=VALUE\"");
      }
      const std::string_view field = fields.substr(digits + 1, length - digits - 2);
      const size_t equals = field.find('=');
      if (equals == std::string_view::npos) fail("found a field (pax) without a value, expected one");
      const std::string_view key = field.substr(0, equals), value = field.substr(equals + 1);
      if (key == "path") long_name_ = std::string(value.substr(0, value.find('\0')));
      if (key.starts_with("GNU.sparse")) fail("found a sparse file, expected whole ones");
      if (key == "size") {
        uint64_t size = 0;
        const auto [stop, bad] = std::from_chars(value.data(), value.data() + value.size(), size);
        if (bad != std::errc() || stop != value.data() + value.size())
          fail("found the size " + in_quotes(value) + ", expected a number");
        long_size_ = size;
      }
      fields = fields.substr(length);
    }
  }

  std::string_view text_at(uint64_t offset, uint64_t bytes) {
    const std::span<const std::byte> found = window_.at(offset, static_cast<size_t>(bytes));
    if (found.size() != bytes)
      fail("the archive is cut off, expected " + std::to_string(bytes) + " bytes more");
    return {reinterpret_cast<const char*>(found.data()), found.size()};
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::bad_file, file_.name() + " at byte " + std::to_string(at_) + ": " + what);
  }

  const ByteFile& file_;
  FileWindow& window_;
  uint64_t at_ = 0;
  // What extended headers say of the next member.
  std::optional<std::string> long_name_;
  std::optional<uint64_t> long_size_;
};

}  // namespace

void read_tar(const ByteFile& file, FileWindow& window, const std::function<void(const TarMember&)>& take) {
  Reader(file, window).read(take);
}

std::string tar_member_name(const ByteFile& file, uint64_t offset) {
  if (offset < block) return {};
  const std::vector<std::byte> bytes = file.read(offset - block, block);
  return Header{{reinterpret_cast<const char*>(bytes.data()), bytes.size()}}.name();
}

}  // namespace vitrine

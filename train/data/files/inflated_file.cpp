#include "train/data/files/inflated_file.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

// Deflate's longest match is 258 bytes and costs at least two bits, so this is more than it can do.
constexpr uint64_t largest_ratio = 1040;

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

}  // namespace

class InflatedFile::Stream {
 public:
  explicit Stream(std::span<const std::byte> bytes, std::string name) : left_(bytes), name_(std::move(name)) {
    if (inflateInit2(&z_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Stream() { inflateEnd(&z_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Fewer bytes than there is room for at the end of the file alone; then its checksum was right.
  size_t read(std::span<std::byte> out) {
    size_t filled = 0;
    while (filled < out.size() && !finished_) {
      constexpr size_t most = std::numeric_limits<uInt>::max();
      const auto room = static_cast<uInt>(std::min(out.size() - filled, most));
      const auto offered = static_cast<uInt>(std::min(left_.size(), most));
      z_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(left_.data()));
      z_.avail_in = offered;
      z_.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
      z_.avail_out = room;
      const int status = inflate(&z_, Z_NO_FLUSH);
      left_ = left_.subspan(offered - z_.avail_in);
      filled += room - z_.avail_out;
      if (status == Z_STREAM_END) {
        next_member();
      } else if (status == Z_MEM_ERROR) {
        throw std::bad_alloc();
      } else if (status != Z_OK) {
        const bool ended = status == Z_BUF_ERROR && left_.empty();
        refuse(ended               ? "its end within the compressed data"
               : z_.msg != nullptr ? z_.msg
                                   : "a preset dictionary");
      }
    }
    return filled;
  }

 private:
  // A gzip file may be several, one after the other.
  void next_member() {
    if (left_.empty()) {
      finished_ = true;
    } else if (is_gzip(left_)) {
      inflateReset(&z_);
    } else {
      refuse(std::to_string(left_.size()) + " bytes after the compressed data");
    }
  }

  [[noreturn]] void refuse(const std::string& found) const {
    throw Error(ErrorCode::bad_file, name_ + ": found " + found + ", expected a whole gzip file");
  }

  z_stream z_{};
  std::span<const std::byte> left_;
  std::string name_;
  bool finished_ = false;
};

InflatedFile::InflatedFile(const std::filesystem::path& path, size_t header_bytes)
    : file_(path), name_(shown(path)), header_bytes_(header_bytes) {
  if (is_gzip(file_.bytes())) {
    stream_ = std::make_unique<Stream>(file_.bytes(), name_);
    header_ = std::make_unique<std::byte[]>(header_bytes);
    const size_t filled = fill({header_.get(), header_bytes});
    if (filled < header_bytes) fail(std::to_string(filled), header_bytes);
  } else if (file_.bytes().size() < header_bytes) {
    fail(std::to_string(file_.bytes().size()), header_bytes);
  }
}

InflatedFile::~InflatedFile() = default;
InflatedFile::InflatedFile(InflatedFile&&) noexcept = default;
InflatedFile& InflatedFile::operator=(InflatedFile&&) noexcept = default;

std::span<const std::byte> InflatedFile::header() const {
  return stream_ ? std::span<const std::byte>(header_.get(), header_bytes_)
                 : file_.bytes().first(header_bytes_);
}

void InflatedFile::expect(uint64_t bytes) const {
  const uint64_t size = file_.bytes().size();
  if (!stream_) {
    if (size - header_bytes_ != bytes) fail(std::to_string(size), header_bytes_ + bytes);
  } else if (bytes / largest_ratio > size) {
    throw Error(ErrorCode::bad_file, name_ + ": found " + std::to_string(size) +
                                         " compressed bytes, expected those of " +
                                         std::to_string(header_bytes_ + bytes) +
                                         ", as its header says, which is more than they can become");
  }
}

std::span<const std::byte> InflatedFile::read(uint64_t bytes) {
  expect(bytes);
  if (!stream_) return file_.bytes().subspan(header_bytes_);
  // Not set to zero first: pages that nothing was inflated into cost no memory.
  content_.reset(new std::byte[bytes]);
  const size_t filled = fill({content_.get(), bytes});
  if (filled < bytes) fail(std::to_string(header_bytes_ + filled), header_bytes_ + bytes);
  std::byte one_more;
  if (fill({&one_more, 1}) != 0) fail("more", header_bytes_ + bytes);
  file_.forget(file_.bytes());
  return {content_.get(), bytes};
}

size_t InflatedFile::fill(std::span<std::byte> part) { return stream_->read(part); }

void InflatedFile::fail(const std::string& found, uint64_t expected) const {
  throw Error(ErrorCode::bad_file, name_ + ": found " + found + " bytes" +
                                       (stream_ ? " in the gzip file" : "") + ", expected " +
                                       std::to_string(expected));
}

}  // namespace vitrine

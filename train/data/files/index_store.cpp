#include "train/data/files/index_store.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "runtime/vk/pipeline_cache.h"

namespace vitrine {
namespace {

constexpr std::string_view magic = "vitrine index 1\n";

std::filesystem::path whole(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path result = std::filesystem::canonical(path, error);
  return error ? path : result;
}

std::optional<std::filesystem::path> file_of(const IndexKey& key) {
  const std::optional<std::filesystem::path> folder = cache_folder();
  if (!folder) return std::nullopt;
  constexpr char digits[] = "0123456789abcdef";
  const uint64_t hash = hash_of(whole(key.path).string(), hash_of(key.kind));
  std::string name = "index-" + std::string(key.kind) + "-";
  for (int shift = 60; shift >= 0; shift -= 4) name += digits[hash >> shift & 15];
  return *folder / (name + ".bin");
}

// What goes before the content: for what it is.
std::vector<std::byte> heading(const IndexKey& key) {
  IndexWriter writer;
  writer.text(magic);
  writer.text(key.kind);
  writer.text(whole(key.path).string());
  writer.numbers(std::span<const FileStamp>(key.stamps));
  return writer.bytes();
}

bool changed_just_now(const IndexKey& key) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(key.looked.time_since_epoch());
  const auto limit = static_cast<uint64_t>(now.count() - static_cast<int64_t>(1e9 * key.settled_seconds));
  return std::ranges::any_of(
      key.stamps, [&](const FileStamp& stamp) { return std::max(stamp.modified, stamp.changed) > limit; });
}

}  // namespace

uint64_t hash_of(std::span<const std::byte> bytes, uint64_t hash) {
  for (const std::byte b : bytes) hash = (hash ^ std::to_integer<uint64_t>(b)) * 0x100000001b3u;
  return hash;
}

uint64_t hash_of(std::string_view text, uint64_t hash) {
  return hash_of(std::as_bytes(std::span(text)), hash);
}

bool IndexReader::take(void* to, size_t bytes) {
  if (!whole_ || bytes > bytes_.size()) return whole_ = false;
  if (bytes > 0) std::memcpy(to, bytes_.data(), bytes);
  bytes_ = bytes_.subspan(bytes);
  return true;
}

std::optional<std::vector<std::byte>> load_index(const IndexKey& key) {
  const std::optional<std::filesystem::path> path = file_of(key);
  std::error_code none;
  if (!path || !std::filesystem::is_regular_file(*path, none)) return std::nullopt;
  try {
    const ByteFile file(*path);
    const std::vector<std::byte> expected = heading(key);
    uint64_t sum = 0;
    if (file.size() < expected.size() + sizeof sum || file.read(0, expected.size()) != expected)
      return std::nullopt;
    file.read(expected.size(), std::as_writable_bytes(std::span(&sum, 1)));
    const uint64_t begin = expected.size() + sizeof sum;
    std::vector<std::byte> content = file.read(begin, file.size() - begin);
    if (hash_of(content) != sum) return std::nullopt;
    return content;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void save_index(const IndexKey& key, std::span<const std::byte> content) {
  const std::optional<std::filesystem::path> path = file_of(key);
  if (!path || changed_just_now(key)) return;
  std::error_code ignored;
  std::filesystem::create_directories(path->parent_path(), ignored);
  try {
    AtomicFile file(*path);
    file.write(heading(key));
    const uint64_t sum = hash_of(content);
    file.write(std::as_bytes(std::span(&sum, 1)));
    file.write(content);
    file.commit();
  } catch (const Error&) {
    // As it says: slower, that is all.
  }
}

}  // namespace vitrine

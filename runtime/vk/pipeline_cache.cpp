#include "runtime/vk/pipeline_cache.h"

#include <volk.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "runtime/util/system.h"
#include "runtime/vk/device.h"
#include "runtime/vk/result.h"

namespace vitrine {
namespace {

// 2: files of 1 may hold programs that can't run in parts (make_pipeline says why).
constexpr uint32_t format_version = 2;
constexpr uintmax_t largest_file = uintmax_t{1} << 30;

struct Header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t driver_version;
  uint32_t vendor_id, device_id;
  std::array<uint8_t, 16> device_uuid, pipeline_cache_uuid;
  uint64_t bytes;  // of the data that follows
  uint64_t checksum;
};
static_assert(sizeof(Header) == 72);

// FNV-1a, 64 bits: finds damage, which is all that it is for.
uint64_t checksum_of(std::span<const std::byte> data) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte byte : data) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3u;
  return hash;
}

Header header_for(const Capabilities& device, std::span<const std::byte> data) {
  return {.magic = {'V', 'T', 'R', 'C', 'A', 'C', 'H', 'E'},
          .version = format_version,
          .driver_version = device.driver_version,
          .vendor_id = device.vendor_id,
          .device_id = device.device_id,
          .device_uuid = device.device_uuid,
          .pipeline_cache_uuid = device.pipeline_cache_uuid,
          .bytes = data.size(),
          .checksum = checksum_of(data)};
}

std::optional<std::filesystem::path> from_variable(const char* name, const char* below) {
  const char* value = system::variable(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::filesystem::path(value) / below;
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > largest_file) return {};
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> data(bytes);
  file.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(bytes));
  data.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return data;
}

}  // namespace

std::optional<std::filesystem::path> cache_folder() {
  if (const auto folder = from_variable("VITRINE_CACHE_DIR", "")) return folder;
  if (const auto folder = from_variable("XDG_CACHE_HOME", "vitrine")) return folder;
  const auto caches = system::user_cache();
  return caches ? std::optional(*caches / "vitrine") : std::nullopt;
}

std::string device_file_name(std::string_view what, const Capabilities& device, std::string_view extension) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string name = std::string(what) + "-";
  for (const uint8_t byte : device.device_uuid) {
    name += digits[byte >> 4];
    name += digits[byte & 15];
  }
  name += '-';
  for (int shift = 28; shift >= 0; shift -= 4) name += digits[(device.driver_version >> shift) & 15];
  return name + std::string(extension);
}

std::string pipeline_cache_name(const Capabilities& device) {
  return device_file_name("pipelines", device, ".bin");
}

std::vector<std::byte> wrap_pipeline_cache(const Capabilities& device, std::span<const std::byte> data) {
  const Header header = header_for(device, data);
  std::vector<std::byte> file(sizeof(Header) + data.size());
  std::memcpy(file.data(), &header, sizeof(Header));
  if (!data.empty()) std::memcpy(file.data() + sizeof(Header), data.data(), data.size());
  return file;
}

std::optional<std::span<const std::byte>> unwrap_pipeline_cache(const Capabilities& device,
                                                                std::span<const std::byte> file) {
  if (file.size() < sizeof(Header)) return std::nullopt;
  const std::span<const std::byte> data = file.subspan(sizeof(Header));
  const Header expected = header_for(device, data);
  if (std::memcmp(file.data(), &expected, sizeof(Header)) != 0) return std::nullopt;
  return data;
}

PipelineCache::PipelineCache(Device& device, std::optional<std::filesystem::path> folder) : device_(device) {
  std::vector<std::byte> file;
  std::span<const std::byte> data;
  if (folder) {
    path_ = *folder / pipeline_cache_name(device.capabilities());
    file = read_file(path_);
    data = unwrap_pipeline_cache(device.capabilities(), file).value_or(std::span<const std::byte>());
  }
  VkPipelineCacheCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  VkPipelineCache handle = VK_NULL_HANDLE;
  check(device.vk().vkCreatePipelineCache(device.handle(), &info, nullptr, &handle), "vkCreatePipelineCache");
  handle_ = {device.handle(), handle, device.vk().vkDestroyPipelineCache};
  // Not the size of what was given: SwiftShader puts another header in front of that each time.
  if (!data.empty()) saved_bytes_ = data_bytes();
}

size_t PipelineCache::data_bytes() const {
  size_t bytes = 0;
  check(device_.vk().vkGetPipelineCacheData(device_.handle(), handle_.get(), &bytes, nullptr),
        "vkGetPipelineCacheData");
  return bytes;
}

void PipelineCache::save() {
  if (path_.empty()) return;
  size_t bytes = data_bytes();
  if (bytes <= saved_bytes_) return;
  std::vector<std::byte> data(bytes);
  check(device_.vk().vkGetPipelineCacheData(device_.handle(), handle_.get(), &bytes, data.data()),
        "vkGetPipelineCacheData");
  data.resize(bytes);
  std::error_code ignored;
  std::filesystem::create_directories(path_.parent_path(), ignored);
  try {
    write_file_atomically(path_, wrap_pipeline_cache(device_.capabilities(), data));
    saved_bytes_ = bytes;
  } catch (const Error&) {
    path_.clear();  // no use in trying again
  }
}

}  // namespace vitrine

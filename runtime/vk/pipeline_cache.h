// Compiled pipelines on disk, so that the second start is quick. One file for each device and driver.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/vk/capabilities.h"
#include "runtime/vk/handle.h"

namespace vitrine {

class Device;

// VITRINE_CACHE_DIR, else XDG_CACHE_HOME/vitrine, else vitrine in the folder that the system has for it
// (~/.cache); none when no variable says.
std::optional<std::filesystem::path> cache_folder();

// A file's name in it, unique to the device and its driver's version.
std::string device_file_name(std::string_view what, const Capabilities& device, std::string_view extension);
std::string pipeline_cache_name(const Capabilities& device);

// The driver's data wrapped in a header of ours that says for whom it is and proves that it is whole.
std::vector<std::byte> wrap_pipeline_cache(const Capabilities& device, std::span<const std::byte> data);
// The driver's data again; nothing when the file is damaged, cut short or for something else. A driver
// may crash on its own data when it is damaged, so it never sees that.
std::optional<std::span<const std::byte>> unwrap_pipeline_cache(const Capabilities& device,
                                                                std::span<const std::byte> file);

class PipelineCache {
 public:
  // Starts with what `folder` holds for the device; without a folder the cache lives in memory only.
  explicit PipelineCache(Device& device, std::optional<std::filesystem::path> folder = cache_folder());

  VkPipelineCache handle() const { return handle_.get(); }
  // Writes the file if the cache grew since it was loaded or saved. A folder that can't be written to
  // is no error: the next start is slower, that is all.
  void save();

 private:
  size_t data_bytes() const;

  Device& device_;
  std::filesystem::path path_;  // empty: nowhere
  size_t saved_bytes_ = 0;
  DeviceHandle<VkPipelineCache> handle_;
};

}  // namespace vitrine

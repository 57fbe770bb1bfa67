// Pictures that the window draws: RGBA8 images on the device, filled from the host's pixels or straight from
// a buffer that a shader has written.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "runtime/vk/device.h"
#include "runtime/vk/handle.h"
#include "runtime/vk/memory.h"

struct VmaAllocation_T;

namespace vitrine::desktop {

class TextureStore;

class Texture {
 public:
  ~Texture();
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;

  uint32_t width() const { return width_; }
  uint32_t height() const { return height_; }
  // What ImGui calls ImTextureID.
  void* id() const { return set_; }

 private:
  friend class TextureStore;
  Texture(TextureStore& store, uint32_t width, uint32_t height);

  TextureStore& store_;
  uint32_t width_, height_;
  VkImage image_ = VK_NULL_HANDLE;
  VmaAllocation_T* allocation_ = nullptr;
  DeviceHandle<VkImageView> view_;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
  bool filled_ = false;
};
using TexturePointer = std::shared_ptr<Texture>;

enum class Sampling : uint8_t { smooth, sharp };

// Makes textures, and keeps what frames in flight still read. All of it belongs to the UI thread.
class TextureStore {
 public:
  explicit TextureStore(Device& device);
  // The device must be idle and all textures gone.
  ~TextureStore();
  TextureStore(const TextureStore&) = delete;
  TextureStore& operator=(const TextureStore&) = delete;

  TexturePointer make(uint32_t width, uint32_t height, Sampling sampling = Sampling::smooth);
  // With the next frame: copies the host's pixels (taken now), or a part of a device buffer, which must not
  // change until that frame is drawn and is kept alive by `owner`.
  void write(const TexturePointer& texture, std::span<const uint8_t> pixels);
  void copy(const TexturePointer& texture, const Buffer& buffer, uint64_t offset,
            std::shared_ptr<void> owner);

  // What it holds, once a frame was recorded after it was filled; waits for the device. For tests and files.
  std::vector<uint8_t> read(const Texture& texture);

  // Records what was asked for since the last frame; `frame` numbers rise.
  void record(VkCommandBuffer commands, uint64_t frame);
  // The device has finished all frames up to this one.
  void finished(uint64_t frame);

  VkDescriptorSetLayout layout() const { return layout_.get(); }

 private:
  friend class Texture;
  struct Update {
    TexturePointer texture;
    VkBuffer buffer = VK_NULL_HANDLE;
    uint64_t offset = 0;
    std::shared_ptr<void> owner;
  };
  struct Kept {
    uint64_t frame = 0;
    std::shared_ptr<void> what;
  };
  void destroy(Texture& texture);

  Device& device_;
  DeviceHandle<VkDescriptorSetLayout> layout_;
  DeviceHandle<VkDescriptorPool> pool_;
  DeviceHandle<VkSampler> smooth_, sharp_;
  std::vector<Update> updates_;
  std::deque<Kept> kept_;
  uint64_t frame_ = 0;
};

}  // namespace vitrine::desktop

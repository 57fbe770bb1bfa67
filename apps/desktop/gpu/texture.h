// Pictures that the window draws: RGBA8 images on the device, filled from the host's pixels or straight from
// a buffer that a shader has written.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "apps/desktop/engine/slow_calls.h"
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
  // What ImGui calls ImTextureID: this texture, which ImGui takes without const.
  void* id() const { return const_cast<Texture*>(this); }
  // The driver has made it: the next frame fills it and can draw it.
  bool made() const { return static_cast<bool>(view_); }
  // It could not, and never will.
  bool failed() const { return !view_ && !coming_.valid(); }
  // Null until a frame was recorded that fills it: before, there is nothing to be drawn.
  VkDescriptorSet drawable() const { return filled_ ? set_ : VK_NULL_HANDLE; }

 private:
  friend class TextureStore;
  Texture(Device& device, uint32_t width, uint32_t height);

  using View = DeviceHandle<VkImageView>;

  Device& device_;
  uint32_t width_, height_;
  VkImage image_ = VK_NULL_HANDLE;
  VmaAllocation_T* allocation_ = nullptr;
  std::future<View> coming_;  // until it is view_
  View view_;
  VkSampler sampler_ = VK_NULL_HANDLE;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
  bool filled_ = false;
};
using TexturePointer = std::shared_ptr<Texture>;

enum class Sampling : uint8_t { smooth, sharp };

// Pixels that a texture can be filled from, copied to where the device reads them. Any thread may do that.
std::shared_ptr<const Buffer> stage_picture(Device& device, std::span<const uint8_t> pixels);

// Makes textures, and keeps what frames in flight still read. All of it belongs to the UI thread.
class TextureStore {
 public:
  TextureStore(Device& device, SlowCalls& slow_calls);
  // The device must be idle and all textures gone.
  ~TextureStore();
  TextureStore(const TextureStore&) = delete;
  TextureStore& operator=(const TextureStore&) = delete;

  TexturePointer make(uint32_t width, uint32_t height, Sampling sampling = Sampling::smooth);
  // `had`, if it is one of that size that can be drawn or will be.
  TexturePointer make_or_keep(const TexturePointer& had, uint32_t width, uint32_t height,
                              Sampling sampling = Sampling::smooth);
  // With the next frame that finds the texture made: copies the host's pixels (taken now), or a part of a
  // device buffer, which must not change while waits(texture) and is kept alive by `owner`.
  void write(const TexturePointer& texture, std::span<const uint8_t> pixels);
  void write(const TexturePointer& texture, std::shared_ptr<const Buffer> pixels);
  void copy(const TexturePointer& texture, const Buffer& buffer, uint64_t offset,
            std::shared_ptr<const void> owner);
  // No frame that fills it as was asked has been recorded yet.
  bool waits(const Texture& texture) const;
  // There are textures that were to be filled and that can't be drawn yet.
  bool waits_for_new() const;

  // What it holds, once a frame was recorded after it was filled; waits for the device. For tests and files.
  std::vector<uint8_t> read(const Texture& texture);

  // Takes those textures with something to be filled with that the driver has made; once a frame, before they
  // are drawn. Error(failed) where it could not make one.
  void collect();
  // Records what was asked for since the last frame; `frame` numbers rise.
  void record(VkCommandBuffer commands, uint64_t frame);
  // The device has finished all frames up to this one.
  void finished(uint64_t frame);

  VkDescriptorSetLayout layout() const { return layout_.get(); }

 private:
  struct Update {
    TexturePointer texture;
    VkBuffer buffer = VK_NULL_HANDLE;
    uint64_t offset = 0;
    std::shared_ptr<const void> owner;
  };
  struct Kept {
    uint64_t frame = 0;
    std::shared_ptr<const void> what;
  };
  void take_view(Texture& texture);
  void add(Update update);
  void retire(std::unique_ptr<Texture> texture);

  Device& device_;
  SlowCalls& slow_calls_;
  DeviceHandle<VkDescriptorSetLayout> layout_;
  DeviceHandle<VkDescriptorPool> pool_;
  DeviceHandle<VkSampler> smooth_, sharp_;
  std::vector<Update> updates_;  // at most one a texture
  std::deque<Kept> kept_;
  uint64_t frame_ = 0;  // the last that was recorded
};

}  // namespace vitrine::desktop

#include "apps/desktop/gpu/texture.h"

#include <volk.h>

#include <algorithm>
#include <cstring>
#include <ranges>
#include <string>

#include "apps/desktop/gpu/color_image.h"
#include "runtime/graph/bound_dispatch.h"
#include "runtime/util/error.h"
#include "runtime/vk/result.h"
#include "runtime/vk/vma.h"

namespace vitrine::desktop {
namespace {

constexpr uint32_t most_textures = 1024;
constexpr VkFormat format = VK_FORMAT_R8G8B8A8_UNORM;

// What is done to a texture.
constexpr ImageUse drawn{VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT,
                         VK_ACCESS_2_SHADER_SAMPLED_READ_BIT};
constexpr ImageUse filled{VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_PIPELINE_STAGE_2_COPY_BIT,
                          VK_ACCESS_2_TRANSFER_WRITE_BIT};
constexpr ImageUse read_back{VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, VK_PIPELINE_STAGE_2_COPY_BIT,
                             VK_ACCESS_2_TRANSFER_READ_BIT};
// What it held is not wanted any more; frames before may still draw it.
constexpr ImageUse forgotten{VK_IMAGE_LAYOUT_UNDEFINED, VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT,
                             VK_ACCESS_2_NONE};

DeviceHandle<VkSampler> make_sampler(Device& device, VkFilter filter) {
  VkSamplerCreateInfo info{VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
  info.magFilter = info.minFilter = filter;
  info.addressModeU = info.addressModeV = info.addressModeW = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE;
  VkSampler sampler = VK_NULL_HANDLE;
  check(device.vk().vkCreateSampler(device.handle(), &info, nullptr, &sampler), "vkCreateSampler");
  return {device.handle(), sampler, device.vk().vkDestroySampler};
}

}  // namespace

TextureStore::TextureStore(Device& device, SlowCalls& slow_calls) : device_(device), slow_calls_(slow_calls) {
  const VkDescriptorSetLayoutBinding binding{.binding = 0,
                                             .descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                                             .descriptorCount = 1,
                                             .stageFlags = VK_SHADER_STAGE_FRAGMENT_BIT,
                                             .pImmutableSamplers = nullptr};
  VkDescriptorSetLayoutCreateInfo layout{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  layout.bindingCount = 1;
  layout.pBindings = &binding;
  VkDescriptorSetLayout made = VK_NULL_HANDLE;
  check(device.vk().vkCreateDescriptorSetLayout(device.handle(), &layout, nullptr, &made),
        "vkCreateDescriptorSetLayout");
  layout_ = {device.handle(), made, device.vk().vkDestroyDescriptorSetLayout};

  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, most_textures};
  VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool.flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT;
  pool.maxSets = most_textures;
  pool.poolSizeCount = 1;
  pool.pPoolSizes = &size;
  VkDescriptorPool made_pool = VK_NULL_HANDLE;
  check(device.vk().vkCreateDescriptorPool(device.handle(), &pool, nullptr, &made_pool),
        "vkCreateDescriptorPool");
  pool_ = {device.handle(), made_pool, device.vk().vkDestroyDescriptorPool};
  smooth_ = make_sampler(device, VK_FILTER_LINEAR);
  sharp_ = make_sampler(device, VK_FILTER_NEAREST);
}

TextureStore::~TextureStore() {
  updates_.clear();
  kept_.clear();
}

Texture::Texture(Device& device, uint32_t width, uint32_t height)
    : device_(device), width_(width), height_(height) {}

Texture::~Texture() {
  coming_ = {};
  view_ = {};
  if (!image_) return;
  vmaDestroyImage(device_.allocator(), image_, allocation_);
  device_.count_freed(true, uint64_t{width_} * height_ * 4);
}

void TextureStore::retire(std::unique_ptr<Texture> texture) {
  device_.vk().vkFreeDescriptorSets(device_.handle(), pool_.get(), 1, &texture->set_);
  slow_calls_.discard(std::move(texture));
}

TexturePointer TextureStore::make(uint32_t width, uint32_t height, Sampling sampling) {
  std::unique_ptr<Texture> texture(new Texture(device_, width, height));
  VkImageCreateInfo image{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
  image.imageType = VK_IMAGE_TYPE_2D;
  image.format = format;
  image.extent = {width, height, 1};
  image.mipLevels = image.arrayLayers = 1;
  image.samples = VK_SAMPLE_COUNT_1_BIT;
  image.usage =
      VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
  VmaAllocationCreateInfo allocation{};
  allocation.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
  const VkResult made = vmaCreateImage(device_.allocator(), &image, &allocation, &texture->image_,
                                       &texture->allocation_, nullptr);
  if (made == VK_ERROR_OUT_OF_DEVICE_MEMORY || made == VK_ERROR_OUT_OF_HOST_MEMORY) {
    throw Error(ErrorCode::failed, "out of memory on device '" + device_.capabilities().name +
                                       "': a picture of " + std::to_string(width) + "x" +
                                       std::to_string(height) + " pixels does not fit");
  }
  check(made, "vmaCreateImage");
  device_.count_allocated(true, uint64_t{width} * height * 4);

  const VkDescriptorSetLayout layout = layout_.get();
  VkDescriptorSetAllocateInfo sets{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  sets.descriptorPool = pool_.get();
  sets.descriptorSetCount = 1;
  sets.pSetLayouts = &layout;
  check(device_.vk().vkAllocateDescriptorSets(device_.handle(), &sets, &texture->set_),
        "vkAllocateDescriptorSets");
  texture->sampler_ = (sampling == Sampling::smooth ? smooth_ : sharp_).get();
  texture->coming_ = slow_calls_.make(
      [&device = device_, of = texture->image_] { return make_color_view(device, of, format); });
  // Frames in flight, and the one that is being built, may draw what nobody else holds any more: the last
  // holder hands it to the frames.
  TexturePointer made_texture(texture.release(), [this](Texture* gone) {
    const auto end = [this](Texture* last) { retire(std::unique_ptr<Texture>(last)); };
    kept_.push_back({frame_ + 1, std::shared_ptr<Texture>(gone, end)});
  });
  if (has_come(made_texture->coming_)) take_view(*made_texture);
  return made_texture;
}

TexturePointer TextureStore::make_or_keep(const TexturePointer& had, uint32_t width, uint32_t height,
                                          Sampling sampling) {
  const bool fits = had && !had->failed() && had->width() == width && had->height() == height;
  return fits ? had : make(width, height, sampling);
}

void TextureStore::take_view(Texture& texture) {
  texture.view_ = texture.coming_.get();
  const VkDescriptorImageInfo picture{texture.sampler_, texture.view_.get(),
                                      VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.dstSet = texture.set_;
  write.descriptorCount = 1;
  write.descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
  write.pImageInfo = &picture;
  device_.vk().vkUpdateDescriptorSets(device_.handle(), 1, &write, 0, nullptr);
}

void TextureStore::collect() {
  // What nobody wants any more is not filled either.
  std::erase_if(updates_, [](const Update& update) {
    return update.texture.use_count() == 1 || update.texture->failed();
  });
  for (const Update& update : updates_) {
    if (has_come(update.texture->coming_)) take_view(*update.texture);
  }
}

std::shared_ptr<const Buffer> stage_picture(Device& device, std::span<const uint8_t> pixels) {
  auto staging = std::make_shared<Buffer>(device, BufferKind::upload, pixels.size(), "picture");
  std::memcpy(staging->mapped().data(), pixels.data(), pixels.size());
  staging->flush();
  return staging;
}

void TextureStore::write(const TexturePointer& texture, std::span<const uint8_t> pixels) {
  write(texture, stage_picture(device_, pixels));
}

void TextureStore::write(const TexturePointer& texture, std::shared_ptr<const Buffer> pixels) {
  const uint64_t bytes = uint64_t{texture->width_} * texture->height_ * 4;
  if (pixels->bytes() != bytes) {
    throw Error(ErrorCode::usage, "a picture has " + std::to_string(pixels->bytes()) + " bytes, expected " +
                                      std::to_string(bytes));
  }
  const VkBuffer buffer = pixels->handle();
  add({texture, buffer, 0, std::move(pixels)});
}

void TextureStore::copy(const TexturePointer& texture, const Buffer& buffer, uint64_t offset,
                        std::shared_ptr<const void> owner) {
  add({texture, buffer.handle(), offset, std::move(owner)});
}

void TextureStore::add(Update update) {
  // What would be overwritten at once is not copied.
  std::erase_if(updates_, [&](const Update& older) { return older.texture == update.texture; });
  updates_.push_back(std::move(update));
}

bool TextureStore::waits(const Texture& texture) const {
  return std::ranges::any_of(updates_, [&](const Update& u) { return u.texture.get() == &texture; });
}

bool TextureStore::waits_for_new() const {
  return std::ranges::any_of(updates_, [](const Update& update) { return !update.texture->filled_; });
}

std::vector<uint8_t> TextureStore::read(const Texture& texture) {
  if (!texture.filled_) throw Error(ErrorCode::failed, "the picture is not on the device yet");
  const uint64_t bytes = uint64_t{texture.width_} * texture.height_ * 4;
  Buffer pixels(device_, BufferKind::readback, bytes, "picture");
  run_once(device_, [&](VkCommandBuffer commands) {
    ImageUse before = drawn;
    before.stage |= filled.stage;
    before.access = filled.access;
    record_image_barrier(device_, commands, texture.image_, before, read_back);
    VkBufferImageCopy region{};
    region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    region.imageExtent = {texture.width_, texture.height_, 1};
    device_.vk().vkCmdCopyImageToBuffer(commands, texture.image_, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                                        pixels.handle(), 1, &region);
    record_barrier(device_, commands, VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                   VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
    // Back to where frames expect it; a read leaves nothing to be made available.
    record_image_barrier(device_, commands, texture.image_, {read_back.layout, read_back.stage}, drawn);
  });
  pixels.invalidate();
  std::vector<uint8_t> result(bytes);
  std::memcpy(result.data(), pixels.mapped().data(), bytes);
  return result;
}

void TextureStore::record(VkCommandBuffer commands, uint64_t frame) {
  frame_ = frame;
  // Those whose textures are made come first.
  const auto unmade =
      std::ranges::partition(updates_, [](const Update& update) { return update.texture->made(); });
  if (unmade.begin() == updates_.begin()) return;
  // What shaders and copies wrote into the buffers that are copied from.
  record_barrier(device_, commands, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_TRANSFER_BIT,
                 VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT,
                 VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_READ_BIT);
  for (Update& update : std::ranges::subrange(updates_.begin(), unmade.begin())) {
    Texture& texture = *update.texture;
    record_image_barrier(device_, commands, texture.image_, forgotten, filled);
    VkBufferImageCopy region{};
    region.bufferOffset = update.offset;
    region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    region.imageExtent = {texture.width_, texture.height_, 1};
    device_.vk().vkCmdCopyBufferToImage(commands, update.buffer, texture.image_,
                                        VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region);
    record_image_barrier(device_, commands, texture.image_, filled, drawn);
    texture.filled_ = true;
    kept_.push_back({frame, std::move(update.owner)});
    kept_.push_back({frame, std::move(update.texture)});
  }
  updates_.erase(updates_.begin(), unmade.begin());
}

void TextureStore::finished(uint64_t frame) {
  // Freeing one may hand in another: the queue is not touched while something dies.
  while (!kept_.empty() && kept_.front().frame <= frame) {
    const std::shared_ptr<const void> gone = std::move(kept_.front().what);
    kept_.pop_front();
  }
}

}  // namespace vitrine::desktop

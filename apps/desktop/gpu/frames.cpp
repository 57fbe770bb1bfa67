#include "apps/desktop/gpu/frames.h"

#include <imgui.h>
#include <volk.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "apps/desktop/gpu/image_barrier.h"
#include "runtime/util/error.h"
#include "runtime/vk/result.h"

namespace vitrine::desktop {
namespace {

template <typename Function>
Function instance_function(const Device& device, const char* name) {
  const Instance& instance = device.instance();
  return reinterpret_cast<Function>(instance.functions().get_instance_proc_addr(instance.handle(), name));
}

template <typename Item, typename Function, typename... Arguments>
std::vector<Item> list(Function function, const char* name, Arguments... arguments) {
  uint32_t count = 0;
  check(function(arguments..., &count, nullptr), name);
  std::vector<Item> items(count);
  check(function(arguments..., &count, items.data()), name);
  items.resize(count);
  return items;
}

DeviceHandle<VkSemaphore> make_semaphore(Device& device) {
  const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  VkSemaphore made = VK_NULL_HANDLE;
  check(device.vk().vkCreateSemaphore(device.handle(), &info, nullptr, &made), "vkCreateSemaphore");
  return {device.handle(), made, device.vk().vkDestroySemaphore};
}

// What is done to an image of the display.
constexpr ImageUse taken{VK_IMAGE_LAYOUT_UNDEFINED, VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT,
                         VK_ACCESS_2_NONE};
constexpr ImageUse drawn_to{VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL,
                            VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT,
                            VK_ACCESS_2_COLOR_ATTACHMENT_READ_BIT | VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT};
constexpr ImageUse copied{VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, VK_PIPELINE_STAGE_2_COPY_BIT,
                          VK_ACCESS_2_TRANSFER_READ_BIT};
constexpr ImageUse presented{VK_IMAGE_LAYOUT_PRESENT_SRC_KHR, VK_PIPELINE_STAGE_2_NONE, VK_ACCESS_2_NONE};

}  // namespace

Frames::Frames(Device& device, VkSurfaceKHR surface, VkExtent2D size) : device_(device), surface_(surface) {
  if (device.capabilities().type == DeviceType::cpu) presenter_ = std::make_unique<Presenter>(device);
  const auto formats =
      list<VkSurfaceFormatKHR>(instance_function<PFN_vkGetPhysicalDeviceSurfaceFormatsKHR>(
                                   device, "vkGetPhysicalDeviceSurfaceFormatsKHR"),
                               "vkGetPhysicalDeviceSurfaceFormatsKHR", device.physical(), surface);
  if (formats.empty()) throw Error(ErrorCode::no_device, "this display's windows take no picture format");
  // ImGui's colors are meant to go to the display as they are.
  format_ = formats.front();
  for (const VkFormat wanted : {VK_FORMAT_B8G8R8A8_UNORM, VK_FORMAT_R8G8B8A8_UNORM}) {
    const auto found = std::ranges::find(formats, wanted, &VkSurfaceFormatKHR::format);
    if (found == formats.end()) continue;
    format_ = *found;
    break;
  }
  make_swapchain(size);
  textures_ = std::make_unique<TextureStore>(device);
  renderer_ = std::make_unique<UiRenderer>(device, *textures_, format_.format);
  for (Slot& slot : slots_) {
    slot.commands = std::make_unique<CommandPool>(device);
    slot.acquired = make_semaphore(device);
    const VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence = VK_NULL_HANDLE;
    check(device.vk().vkCreateFence(device.handle(), &info, nullptr, &fence), "vkCreateFence");
    slot.fence = {device.handle(), fence, device.vk().vkDestroyFence};
  }
}

Frames::~Frames() {
  presenter_.reset();
  device_.wait_idle();
  renderer_.reset();
  textures_->finished(UINT64_MAX);
}

void Frames::make_swapchain(VkExtent2D size) {
  VkSurfaceCapabilitiesKHR surface{};
  check(instance_function<PFN_vkGetPhysicalDeviceSurfaceCapabilitiesKHR>(
            device_, "vkGetPhysicalDeviceSurfaceCapabilitiesKHR")(device_.physical(), surface_, &surface),
        "vkGetPhysicalDeviceSurfaceCapabilitiesKHR");
  VkExtent2D extent = surface.currentExtent;
  if (extent.width == UINT32_MAX) extent = size;
  extent.width = std::clamp(extent.width, surface.minImageExtent.width, surface.maxImageExtent.width);
  extent.height = std::clamp(extent.height, surface.minImageExtent.height, surface.maxImageExtent.height);
  if (extent.width == 0 || extent.height == 0) return;  // minimised: the next ready() tries again

  readable_ = (surface.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_SRC_BIT) != 0;
  VkSwapchainCreateInfoKHR info{VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR};
  info.surface = surface_;
  info.minImageCount = std::max(surface.minImageCount, UiRenderer::frames_in_flight + 1);
  if (surface.maxImageCount != 0) info.minImageCount = std::min(info.minImageCount, surface.maxImageCount);
  info.imageFormat = format_.format;
  info.imageColorSpace = format_.colorSpace;
  info.imageExtent = extent;
  info.imageArrayLayers = 1;
  info.imageUsage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT |
                    (readable_ ? VkImageUsageFlags{VK_IMAGE_USAGE_TRANSFER_SRC_BIT} : VkImageUsageFlags{0});
  info.preTransform = surface.currentTransform;
  info.compositeAlpha = (surface.supportedCompositeAlpha & VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR) != 0
                            ? VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                            : VK_COMPOSITE_ALPHA_INHERIT_BIT_KHR;
  info.presentMode = mode_;
  info.clipped = VK_TRUE;
  info.oldSwapchain = swapchain_.get();
  VkSwapchainKHR made = VK_NULL_HANDLE;
  check(device_.vk().vkCreateSwapchainKHR(device_.handle(), &info, nullptr, &made), "vkCreateSwapchainKHR");
  if (swapchain_) retired_.push_back({std::move(swapchain_), std::move(targets_), next_frame_});
  targets_.clear();
  swapchain_ = {device_.handle(), made, device_.vk().vkDestroySwapchainKHR};
  extent_ = extent;
  outdated_ = false;
  for (const VkImage image : list<VkImage>(device_.vk().vkGetSwapchainImagesKHR, "vkGetSwapchainImagesKHR",
                                           device_.handle(), swapchain_.get())) {
    VkImageViewCreateInfo view{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
    view.image = image;
    view.viewType = VK_IMAGE_VIEW_TYPE_2D;
    view.format = format_.format;
    view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    VkImageView made_view = VK_NULL_HANDLE;
    check(device_.vk().vkCreateImageView(device_.handle(), &view, nullptr, &made_view), "vkCreateImageView");
    targets_.push_back(
        {image, {device_.handle(), made_view, device_.vk().vkDestroyImageView}, make_semaphore(device_)});
  }
}

void Frames::take_present_result(VkResult result) {
  if (result == VK_ERROR_OUT_OF_DATE_KHR || result == VK_SUBOPTIMAL_KHR) {
    outdated_ = true;
  } else {
    check(result, "vkQueuePresentKHR");
  }
}

void Frames::present(const Slot& slot) {
  const VkSemaphore drawn = targets_[slot.image].drawn.get();
  if (presenter_) return presenter_->present(swapchain_.get(), slot.image, drawn);
  take_present_result(present_image(device_, swapchain_.get(), slot.image, drawn));
}

void Frames::finish_captures(Slot& slot) {
  if (slot.captures.empty()) return;
  slot.pixels->invalidate();
  const auto bytes = slot.pixels->mapped();
  Image image{slot.extent.width, slot.extent.height, {}};
  image.pixels.resize(image.pixel_count() * 4);
  std::memcpy(image.pixels.data(), bytes.data(), image.pixels.size());
  const bool swapped =
      format_.format == VK_FORMAT_B8G8R8A8_UNORM || format_.format == VK_FORMAT_B8G8R8A8_SRGB;
  for (size_t i = 0; i < image.pixels.size(); i += 4) {
    if (swapped) std::swap(image.pixels[i], image.pixels[i + 2]);
    image.pixels[i + 3] = 255;
  }
  for (const auto& take : slot.captures) take(image);
  slot.captures.clear();
  slot.pixels.reset();
}

bool Frames::idle() const {
  return std::ranges::all_of(slots_, [](const Slot& slot) { return slot.frame == 0; });
}

void Frames::collect() {
  if (presenter_) {
    if (presenter_->busy()) return;
    if (const auto result = presenter_->take_result()) take_present_result(*result);
  }
  // Oldest first: textures go in the order of the frames that drew them.
  std::array<Slot*, UiRenderer::frames_in_flight> order{};
  for (size_t i = 0; i < slots_.size(); ++i) order[i] = &slots_[i];
  std::ranges::sort(order, {}, [](const Slot* slot) { return slot->frame; });
  for (Slot* slot : order) {
    if (slot->frame == 0) continue;
    const VkResult state = device_.vk().vkGetFenceStatus(device_.handle(), slot->fence.get());
    if (state == VK_NOT_READY) return;
    check(state, "vkGetFenceStatus");
    finish_captures(*slot);
    textures_->finished(slot->frame);
    std::erase_if(retired_, [&](const Retired& retired) { return retired.until <= slot->frame; });
    slot->frame = 0;
  }
}

bool Frames::ready(VkExtent2D size) {
  if (presenter_ && presenter_->busy()) return false;
  if (size.width == 0 || size.height == 0) return false;
  if (!swapchain_ || outdated_ || size.width != extent_.width || size.height != extent_.height) {
    // Nothing may be in flight to the images that are let go.
    if (acquired_ || !idle()) return acquired_.has_value();
    make_swapchain(size);
    if (!swapchain_) return false;
  }
  if (acquired_) return true;
  Slot& slot = slots_[next_frame_ % slots_.size()];
  if (slot.frame != 0) return false;
  uint32_t image = 0;
  const VkResult result = device_.vk().vkAcquireNextImageKHR(device_.handle(), swapchain_.get(), 0,
                                                             slot.acquired.get(), VK_NULL_HANDLE, &image);
  if (result == VK_NOT_READY || result == VK_TIMEOUT) return false;
  if (result == VK_ERROR_OUT_OF_DATE_KHR) {
    outdated_ = true;
    return false;
  }
  if (result == VK_SUBOPTIMAL_KHR) {
    outdated_ = true;
  } else {
    check(result, "vkAcquireNextImageKHR");
  }
  acquired_ = image;
  return true;
}

void Frames::record(Slot& slot, const ImDrawData& data) {
  const VkImage image = targets_[slot.image].image;
  const VkCommandBuffer commands = slot.commands->begin(VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
  textures_->record(commands, slot.frame);
  record_image_barrier(device_, commands, image, taken, drawn_to);
  VkRenderingAttachmentInfo color{VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO};
  color.imageView = targets_[slot.image].view.get();
  color.imageLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
  color.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
  color.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  VkRenderingInfo rendering{VK_STRUCTURE_TYPE_RENDERING_INFO};
  rendering.renderArea = {{0, 0}, extent_};
  rendering.layerCount = 1;
  rendering.colorAttachmentCount = 1;
  rendering.pColorAttachments = &color;
  device_.vk().vkCmdBeginRendering(commands, &rendering);
  renderer_->draw(commands, data, extent_, static_cast<uint32_t>(slot.frame % slots_.size()));
  device_.vk().vkCmdEndRendering(commands);

  ImageUse last = drawn_to;
  last.access = VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT;
  if (!slot.captures.empty()) {
    record_image_barrier(device_, commands, image, last, copied);
    VkBufferImageCopy region{};
    region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    region.imageExtent = {extent_.width, extent_.height, 1};
    device_.vk().vkCmdCopyImageToBuffer(commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                                        slot.pixels->handle(), 1, &region);
    record_barrier(device_, commands, VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                   VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
    last = {copied.layout, copied.stage};
  }
  record_image_barrier(device_, commands, image, last, presented);
  slot.commands->end(commands);

  VkCommandBufferSubmitInfo command_info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO};
  command_info.commandBuffer = commands;
  VkSemaphoreSubmitInfo wait{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
  wait.semaphore = slot.acquired.get();
  wait.stageMask = VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT;
  VkSemaphoreSubmitInfo signal{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
  signal.semaphore = targets_[slot.image].drawn.get();
  signal.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  VkSubmitInfo2 submit{VK_STRUCTURE_TYPE_SUBMIT_INFO_2};
  submit.waitSemaphoreInfoCount = 1;
  submit.pWaitSemaphoreInfos = &wait;
  submit.commandBufferInfoCount = 1;
  submit.pCommandBufferInfos = &command_info;
  submit.signalSemaphoreInfoCount = 1;
  submit.pSignalSemaphoreInfos = &signal;
  device_.submit({&submit, 1}, slot.fence.get());
}

void Frames::capture(std::function<void(Image)> take) {
  if (!readable_) throw Error(ErrorCode::failed, "this display's pictures can't be read back");
  captures_.push_back(std::move(take));
}

void Frames::draw(const ImDrawData& data) {
  Slot& slot = slots_[next_frame_ % slots_.size()];
  slot.frame = next_frame_++;
  slot.image = *acquired_;
  slot.extent = extent_;
  acquired_.reset();
  const VkFence fence = slot.fence.get();
  check(device_.vk().vkResetFences(device_.handle(), 1, &fence), "vkResetFences");
  slot.commands->reset();
  if (readable_ && !captures_.empty()) {
    slot.captures = std::move(captures_);
    captures_.clear();
    slot.pixels = std::make_unique<Buffer>(device_, BufferKind::readback,
                                           uint64_t{extent_.width} * extent_.height * 4, "screenshot");
  }
  record(slot, data);
  present(slot);
}

}  // namespace vitrine::desktop

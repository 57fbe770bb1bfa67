#include "apps/desktop/gpu/frames.h"

#include <imgui.h>
#include <volk.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "apps/desktop/gpu/color_image.h"
#include "apps/desktop/gpu/present_mode.h"
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

VkPresentModeKHR present_mode(const Device& device, VkSurfaceKHR surface) {
  const auto modes =
      list<VkPresentModeKHR>(instance_function<PFN_vkGetPhysicalDeviceSurfacePresentModesKHR>(
                                 device, "vkGetPhysicalDeviceSurfacePresentModesKHR"),
                             "vkGetPhysicalDeviceSurfacePresentModesKHR", device.physical(), surface);
  return choose_present_mode(modes, device.presents_apart());
}

// What `call` returns; what it fails with is the end of drawing.
template <typename Call>
auto drawing(const Device& device, Call call) {
  try {
    return call();
  } catch (const Error& error) {
    throw Error(ErrorCode::failed, "device '" + device.capabilities().name +
                                       "' can't draw into the window any more: " + error.what());
  }
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

Frames::Frames(Device& device, VkSurfaceKHR surface, VkExtent2D size)
    : device_(device),
      surface_(surface),
      mode_(present_mode(device, surface)),
      display_calls_(device.capabilities().type == DeviceType::cpu || waits_for_display(mode_)),
      texture_calls_(device.capabilities().type == DeviceType::cpu) {
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
  take_swapchain(make_swapchain(size, VK_NULL_HANDLE));
  textures_ = std::make_unique<TextureStore>(device, texture_calls_);
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
  if (presenting_.valid()) presenting_.wait();
  if (making_.valid()) making_.wait();
  try {
    device_.wait_idle();
  } catch (const Error&) {
    // A device that was lost has nothing under way.
  }
  renderer_.reset();
  textures_->finished(UINT64_MAX);
}

Frames::Swapchain Frames::make_swapchain(VkExtent2D size, VkSwapchainKHR old) const {
  VkSurfaceCapabilitiesKHR surface{};
  check(instance_function<PFN_vkGetPhysicalDeviceSurfaceCapabilitiesKHR>(
            device_, "vkGetPhysicalDeviceSurfaceCapabilitiesKHR")(device_.physical(), surface_, &surface),
        "vkGetPhysicalDeviceSurfaceCapabilitiesKHR");
  VkExtent2D extent = surface.currentExtent;
  if (extent.width == UINT32_MAX) extent = size;
  extent.width = std::clamp(extent.width, surface.minImageExtent.width, surface.maxImageExtent.width);
  extent.height = std::clamp(extent.height, surface.minImageExtent.height, surface.maxImageExtent.height);
  if (extent.width == 0 || extent.height == 0) return {};  // minimised: the next ready() tries again

  const bool readable = (surface.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_SRC_BIT) != 0;
  VkSwapchainCreateInfoKHR info{VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR};
  info.surface = surface_;
  info.minImageCount = std::max(surface.minImageCount, UiRenderer::frames_in_flight + 1);
  if (surface.maxImageCount != 0) info.minImageCount = std::min(info.minImageCount, surface.maxImageCount);
  info.imageFormat = format_.format;
  info.imageColorSpace = format_.colorSpace;
  info.imageExtent = extent;
  info.imageArrayLayers = 1;
  info.imageUsage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT |
                    (readable ? VkImageUsageFlags{VK_IMAGE_USAGE_TRANSFER_SRC_BIT} : VkImageUsageFlags{0});
  info.preTransform = surface.currentTransform;
  info.compositeAlpha = (surface.supportedCompositeAlpha & VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR) != 0
                            ? VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                            : VK_COMPOSITE_ALPHA_INHERIT_BIT_KHR;
  info.presentMode = mode_;
  info.clipped = VK_TRUE;
  info.oldSwapchain = old;
  VkSwapchainKHR made = VK_NULL_HANDLE;
  check(device_.vk().vkCreateSwapchainKHR(device_.handle(), &info, nullptr, &made), "vkCreateSwapchainKHR");
  Swapchain swapchain{{device_.handle(), made, device_.vk().vkDestroySwapchainKHR}, {}, extent, readable};
  for (const VkImage image :
       list<VkImage>(device_.vk().vkGetSwapchainImagesKHR, "vkGetSwapchainImagesKHR", device_.handle(), made))
    swapchain.targets.push_back(
        {image, make_color_view(device_, image, format_.format), make_semaphore(device_)});
  return swapchain;
}

void Frames::take_swapchain(Swapchain swapchain) {
  if (!swapchain.handle) return;
  if (swapchain_.presented) {
    retired_.push_back({std::move(swapchain_), next_frame_});
  } else {
    display_calls_.discard(std::move(swapchain_));
  }
  swapchain_ = std::move(swapchain);
  outdated_ = false;
}

void Frames::present(const Slot& slot) {
  presenting_ = display_calls_.make([this, swapchain = swapchain_.handle.get(), image = slot.image,
                                     drawn = swapchain_.targets[slot.image].drawn.get()] {
    VkPresentInfoKHR info{VK_STRUCTURE_TYPE_PRESENT_INFO_KHR};
    info.waitSemaphoreCount = 1;
    info.pWaitSemaphores = &drawn;
    info.swapchainCount = 1;
    info.pSwapchains = &swapchain;
    info.pImageIndices = &image;
    return device_.present(info);
  });
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

void Frames::upload_fonts() {
  drawing(device_, [this] { renderer_->upload_fonts(); });
}
void Frames::collect() {
  drawing(device_, [this] { take_finished(); });
}
bool Frames::ready(VkExtent2D size) {
  return drawing(device_, [&] { return take_image(size); });
}
void Frames::draw(const ImDrawData& data) {
  drawing(device_, [&] { submit_frame(data); });
}

void Frames::take_finished() {
  if (presenting_.valid()) {
    if (!has_come(presenting_)) return;
    const VkResult result = presenting_.get();
    if (result == VK_ERROR_OUT_OF_DATE_KHR || result == VK_SUBOPTIMAL_KHR) {
      outdated_ = true;
    } else {
      check(result, "vkQueuePresentKHR");
    }
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
    while (!retired_.empty() && retired_.front().until <= slot->frame) {
      display_calls_.discard(std::move(retired_.front().swapchain));
      retired_.erase(retired_.begin());
    }
    slot->frame = 0;
  }
}

bool Frames::take_image(VkExtent2D size) {
  if (presenting_.valid()) return false;
  if (making_.valid()) {
    if (!has_come(making_)) return false;
    take_swapchain(making_.get());
  }
  // A window without letters says nothing.
  if (size.width == 0 || size.height == 0 || !renderer_->has_fonts()) return false;
  // A new one is drawn to once even if the window has another size by now: one that is dragged by its border
  // has another all the time.
  const VkExtent2D extent = swapchain_.extent;
  const bool other_size = size.width != extent.width || size.height != extent.height;
  if (!swapchain_.handle || outdated_ || (swapchain_.presented && other_size)) {
    // Nothing may be in flight to the images that are let go.
    if (acquired_ || !idle()) return acquired_.has_value();
    making_ = display_calls_.make(
        [this, size, old = swapchain_.handle.get()] { return make_swapchain(size, old); });
    return false;
  }
  if (acquired_) return true;
  Slot& slot = slots_[next_frame_ % slots_.size()];
  if (slot.frame != 0) return false;
  uint32_t image = 0;
  const VkResult result = device_.vk().vkAcquireNextImageKHR(device_.handle(), swapchain_.handle.get(), 0,
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
  const VkImage image = swapchain_.targets[slot.image].image;
  const VkCommandBuffer commands = slot.commands->begin(VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
  textures_->record(commands, slot.frame);
  record_image_barrier(device_, commands, image, taken, drawn_to);
  VkRenderingAttachmentInfo color{VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO};
  color.imageView = swapchain_.targets[slot.image].view.get();
  color.imageLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
  color.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
  color.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  VkRenderingInfo rendering{VK_STRUCTURE_TYPE_RENDERING_INFO};
  rendering.renderArea = {{0, 0}, swapchain_.extent};
  rendering.layerCount = 1;
  rendering.colorAttachmentCount = 1;
  rendering.pColorAttachments = &color;
  device_.vk().vkCmdBeginRendering(commands, &rendering);
  renderer_->draw(commands, data, swapchain_.extent, static_cast<uint32_t>(slot.frame % slots_.size()));
  device_.vk().vkCmdEndRendering(commands);

  ImageUse last = drawn_to;
  last.access = VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT;
  if (!slot.captures.empty()) {
    record_image_barrier(device_, commands, image, last, copied);
    VkBufferImageCopy region{};
    region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    region.imageExtent = {swapchain_.extent.width, swapchain_.extent.height, 1};
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
  signal.semaphore = swapchain_.targets[slot.image].drawn.get();
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
  if (!swapchain_.readable) throw Error(ErrorCode::failed, "this display's pictures can't be read back");
  captures_.push_back(std::move(take));
}

void Frames::submit_frame(const ImDrawData& data) {
  Slot& slot = slots_[next_frame_ % slots_.size()];
  slot.frame = next_frame_++;
  slot.image = *acquired_;
  slot.extent = swapchain_.extent;
  acquired_.reset();
  const VkFence fence = slot.fence.get();
  check(device_.vk().vkResetFences(device_.handle(), 1, &fence), "vkResetFences");
  slot.commands->reset();
  if (swapchain_.readable && !captures_.empty()) {
    slot.captures = std::move(captures_);
    captures_.clear();
    slot.pixels = std::make_unique<Buffer>(device_, BufferKind::readback,
                                           uint64_t{swapchain_.extent.width} * swapchain_.extent.height * 4,
                                           "screenshot");
  }
  record(slot, data);
  present(slot);
  swapchain_.presented = true;
}

}  // namespace vitrine::desktop

// Textures without a window: what frames record, keep and let go.
#include "apps/desktop/gpu/texture.h"

#include <volk.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <future>
#include <span>
#include <utility>
#include <vector>

#include "runtime/graph/bound_dispatch.h"
#include "runtime/util/error.h"
#include "tests/support/test_device.h"

using namespace vitrine;
using namespace vitrine::desktop;

namespace {

using Pixels = std::vector<uint8_t>;

Pixels pixels_of(uint32_t count, uint8_t first) {
  Pixels pixels(size_t{4} * count);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(first + i);
  return pixels;
}

// A store whose slow calls the test can hold back.
struct Store {
  Device& device = *test::test_device().device;
  SlowCalls calls{true};
  TextureStore textures{device, calls};
  uint64_t frame = 0;

  std::promise<void> hold_calls() {
    std::promise<void> lock;
    calls.make([held = lock.get_future()] { held.wait(); });
    return lock;
  }
  void finish_calls() {
    calls.make([] {}).wait();
  }
  // As the window draws one; the device has finished it after.
  void draw_frame() {
    textures.collect();
    ++frame;
    run_once(device, [&](VkCommandBuffer commands) { textures.record(commands, frame); });
    textures.finished(frame);
  }
};

VkResult VKAPI_CALL no_view(VkDevice, const VkImageViewCreateInfo*, const VkAllocationCallbacks*,
                            VkImageView*) {
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

}  // namespace

TEST_CASE("a texture is filled by the first frame that finds it made, with what was written last") {
  Store store;
  std::promise<void> lock = store.hold_calls();
  const TexturePointer texture = store.textures.make(3, 2);
  store.textures.write(texture, pixels_of(6, 1));
  store.textures.write(texture, pixels_of(6, 50));
  CHECK_THROWS_AS(store.textures.write(texture, pixels_of(5, 1)), Error);
  store.draw_frame();
  CHECK_FALSE(texture->made());
  CHECK(texture->drawable() == VK_NULL_HANDLE);
  CHECK(store.textures.waits(*texture));
  CHECK(store.textures.waits_for_new());
  CHECK_THROWS_AS(store.textures.read(*texture), Error);

  lock.set_value();
  store.finish_calls();
  store.draw_frame();
  CHECK(texture->made());
  CHECK(texture->drawable() != VK_NULL_HANDLE);
  CHECK_FALSE(store.textures.waits(*texture));
  CHECK_FALSE(store.textures.waits_for_new());
  CHECK(store.textures.read(*texture) == pixels_of(6, 50));

  // Filled again, from a part of a buffer; meanwhile it stays what it was.
  CHECK(store.textures.make_or_keep(texture, 3, 2) == texture);
  const Buffer buffer(store.device, BufferKind::upload, 64, "pixels");
  const Pixels other = pixels_of(6, 100);
  std::ranges::copy(std::as_bytes(std::span(other)), buffer.mapped().begin() + 16);
  store.textures.copy(texture, buffer, 16, nullptr);
  CHECK(store.textures.waits(*texture));
  CHECK_FALSE(store.textures.waits_for_new());
  CHECK(texture->drawable() != VK_NULL_HANDLE);
  store.draw_frame();
  CHECK(store.textures.read(*texture) == other);
  test::require_no_validation_messages();
}

TEST_CASE("a texture stays for the frames that may draw it, and goes with the last") {
  Store store;
  const uint64_t before = store.device.allocations();
  TexturePointer texture = store.textures.make(4, 4);
  store.textures.write(texture, pixels_of(16, 0));
  store.finish_calls();
  store.draw_frame();
  const uint64_t with = store.device.allocations();
  CHECK(with > before);
  // The frame that is being built may have drawn it already.
  texture.reset();
  store.textures.finished(store.frame);
  store.finish_calls();
  CHECK(store.device.allocations() == with);
  store.draw_frame();
  store.finish_calls();
  CHECK(store.device.allocations() == before);

  // One that was never made or filled.
  std::promise<void> lock = store.hold_calls();
  texture = store.textures.make(4, 4);
  store.textures.write(texture, pixels_of(16, 0));
  texture.reset();
  store.draw_frame();
  CHECK_FALSE(store.textures.waits_for_new());
  store.draw_frame();
  lock.set_value();
  store.finish_calls();
  CHECK(store.device.allocations() == before);
  test::require_no_validation_messages();
}

TEST_CASE("a texture that the driver can't make is an error once, and nothing waits for it") {
  Store store;
  const auto make_view = std::exchange(store.device.vk().vkCreateImageView, no_view);
  // A thread that has failed already is make()'s own error.
  std::promise<void> lock = store.hold_calls();
  const TexturePointer failing = store.textures.make(2, 2);
  lock.set_value();
  store.finish_calls();
  store.device.vk().vkCreateImageView = make_view;
  store.textures.write(failing, pixels_of(4, 0));
  CHECK(store.textures.waits_for_new());
  CHECK_THROWS_AS(store.textures.collect(), Error);
  CHECK(failing->failed());
  store.draw_frame();
  CHECK_FALSE(store.textures.waits_for_new());
  CHECK(failing->drawable() == VK_NULL_HANDLE);

  const TexturePointer next = store.textures.make_or_keep(failing, 2, 2);
  CHECK(next != failing);
  store.textures.write(next, pixels_of(4, 7));
  store.finish_calls();
  store.draw_frame();
  CHECK(store.textures.read(*next) == pixels_of(4, 7));
  test::require_no_validation_messages();
}

TEST_CASE("without a thread for slow calls a texture is drawn by the next frame") {
  Device& device = *test::test_device().device;
  SlowCalls calls(false);
  TextureStore textures(device, calls);
  const TexturePointer texture = textures.make(2, 1);
  CHECK(texture->made());
  textures.write(texture, pixels_of(2, 9));
  run_once(device, [&](VkCommandBuffer commands) { textures.record(commands, 1); });
  CHECK(textures.read(*texture) == pixels_of(2, 9));
  textures.finished(1);

  const uint64_t before = device.allocations();
  const auto make_view = std::exchange(device.vk().vkCreateImageView, no_view);
  CHECK_THROWS_AS(textures.make(2, 1), Error);
  device.vk().vkCreateImageView = make_view;
  textures.finished(2);
  CHECK(device.allocations() == before);
  test::require_no_validation_messages();
}

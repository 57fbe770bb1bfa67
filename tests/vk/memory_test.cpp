#include "runtime/vk/memory.h"

#include <volk.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/graph/bound_dispatch.h"
#include "runtime/util/error.h"
#include "runtime/vk/device.h"
#include "runtime/vk/device_choice.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string failure_of(Device& device, BufferKind kind, uint64_t bytes) {
  try {
    const Buffer buffer(device, kind, bytes, "too much");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::failed);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("bytes survive the way through upload, device and readback memory") {
  Device& device = *test::test_device().device;
  constexpr uint64_t bytes = 1000003 * 4;
  const Buffer upload(device, BufferKind::upload, bytes, "upload");
  const Buffer local(device, BufferKind::device, bytes, "local");
  const Buffer readback(device, BufferKind::readback, bytes, "readback");
  REQUIRE(upload.mapped().size() == bytes);
  REQUIRE(readback.mapped().size() == bytes);
  CHECK(local.mapped().empty());
  for (uint64_t i = 0; i < bytes; ++i) upload.mapped()[i] = static_cast<std::byte>(i * 7919 >> 5);
  upload.flush();
  run_once(device, [&](VkCommandBuffer commands) {
    const VkBufferCopy all{0, 0, bytes};
    device.begin_label(commands, "copies");
    device.vk().vkCmdCopyBuffer(commands, upload.handle(), local.handle(), 1, &all);
    record_barrier(device, commands, VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                   VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_READ_BIT);
    device.vk().vkCmdCopyBuffer(commands, local.handle(), readback.handle(), 1, &all);
    record_barrier(device, commands, VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                   VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
    device.end_label(commands);
  });
  readback.invalidate();
  CHECK(std::memcmp(upload.mapped().data(), readback.mapped().data(), bytes) == 0);
  test::require_no_validation_messages();
}

TEST_CASE("direct memory exists exactly where memory is unified") {
  Device& device = *test::test_device().device;
  const Capabilities& capabilities = device.capabilities();
  for (const auto& [kind, exists] : {std::pair{BufferKind::direct, capabilities.unified_memory()},
                                     {BufferKind::direct_read, capabilities.unified_cached_memory()}}) {
    INFO(name_of(kind));
    if (exists) {
      const Buffer direct(device, kind, 4096, "direct");
      REQUIRE(direct.mapped().size() == 4096);
      direct.mapped()[4095] = std::byte{42};
      direct.flush();
      direct.invalidate();
      CHECK(direct.mapped()[4095] == std::byte{42});
    } else {
      CHECK_THAT(failure_of(device, kind, 4096), ContainsSubstring("no memory that is both"));
    }
  }
}

TEST_CASE("buffers have addresses where the device has them") {
  Device& device = *test::test_device().device;
  const Buffer buffer(device, BufferKind::device, 4096, "addressed");
  CHECK((buffer.address() != 0) == device.capabilities().supports(Need::addresses));
}

TEST_CASE("memory in use and its peak are counted, and moves don't count twice") {
  Device& device = *test::test_device().device;
  device.reset_peaks();
  const MemoryStatistics before = device.memory();
  {
    Buffer first(device, BufferKind::device, 1000, "first");
    Buffer moved = std::move(first);
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): that is the point
    Buffer staging(device, BufferKind::upload, 500, "staging");
    {
      const Buffer second(device, BufferKind::device, 3000, "second");
      CHECK(device.memory().device.bytes == before.device.bytes + 4000);
    }
    moved = Buffer(device, BufferKind::device, 2000, "replacement");
    CHECK(device.memory().device.bytes == before.device.bytes + 2000);
    CHECK(device.memory().host.bytes == before.host.bytes + 500);
  }
  const MemoryStatistics after = device.memory();
  CHECK(after.device.bytes == before.device.bytes);
  CHECK(after.device.peak_bytes == before.device.bytes + 4000);
  CHECK(after.host.peak_bytes == before.host.bytes + 500);
  CHECK(after.buffers_made == before.buffers_made + 4);
  CHECK(device.heap_budgets().size() == device.capabilities().heaps.size());
}

TEST_CASE("running out of memory names what was needed and what is free") {
  test::TestDevice& shared = test::test_device();
  const std::vector<PhysicalDevice> devices = shared.instance->devices();
  const auto same = std::ranges::find_if(devices, [&](const PhysicalDevice& physical) {
    return physical.capabilities.device_uuid == shared.device->capabilities().device_uuid;
  });
  REQUIRE(same != devices.end());
  constexpr uint64_t limit = uint64_t{64} << 20;
  Device device(shared.instance, *same, {.heap_limit = limit});
  constexpr uint64_t piece = uint64_t{40} << 20;
  // One fits into each heap that is the device's own: into the window of a discrete card as well.
  std::vector<Buffer> fitting;
  for (const MemoryHeap& heap : device.capabilities().heaps) {
    if (heap.device_local) fitting.emplace_back(device, BufferKind::device, piece, "fits");
  }
  const std::string failure = failure_of(device, BufferKind::device, piece);
  CHECK_THAT(failure, ContainsSubstring("out of memory") && ContainsSubstring("'too much'") &&
                          ContainsSubstring("needs 41943040 bytes") && ContainsSubstring("are free"));
  // The failed one left nothing behind.
  CHECK(device.memory().device.bytes == fitting.size() * piece);
  CHECK(device.memory().buffers_made == fitting.size());

  const Capabilities& capabilities = device.capabilities();
  const uint64_t largest = std::min(capabilities.max_buffer_bytes, capabilities.max_allocation);
  CHECK_THAT(failure_of(device, BufferKind::device, largest + 1), ContainsSubstring("in one piece"));
  CHECK_THAT(failure_of(device, BufferKind::device, 0), ContainsSubstring("0 bytes"));
  test::require_no_validation_messages();
}

}  // namespace vitrine

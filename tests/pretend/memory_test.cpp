// What forgotten flushes, invalidations, barriers and memory types look like on a make-believe device: the
// mistakes that drivers with one memory for all forgive.
#include <volk.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "runtime/graph/bound_dispatch.h"
#include "runtime/graph/conversion.h"
#include "runtime/graph/executable.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/util/error.h"
#include "tests/pretend/pretend_device.h"
#include "tests/support/constants.h"
#include "tests/support/op_test.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr uint64_t bytes = 4096;

std::vector<std::byte> pattern() {
  std::vector<std::byte> all(bytes);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i * 7919 >> 3);
  return all;
}

void write(const Buffer& buffer, const std::vector<std::byte>& values) {
  std::memcpy(buffer.mapped().data(), values.data(), values.size());
}

bool holds(const Buffer& buffer, const std::vector<std::byte>& values) {
  return std::ranges::equal(buffer.mapped().first(values.size()), values);
}

void hand_over(Device& device, VkCommandBuffer commands) {
  VkCommandBufferSubmitInfo one{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO};
  one.commandBuffer = commands;
  VkSubmitInfo2 info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2};
  info.commandBufferInfoCount = 1;
  info.pCommandBufferInfos = &one;
  device.submit({&info, 1});
  device.wait_idle();
}

// Submits as run_once() does, without the barriers around: those are the caller's.
void submit(Device& device, const std::function<void(VkCommandBuffer)>& record) {
  CommandPool pool(device);
  const VkCommandBuffer commands = pool.begin(VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
  record(commands);
  pool.end(commands);
  hand_over(device, commands);
}

void copy(Device& device, VkCommandBuffer commands, const Buffer& from, const Buffer& to) {
  const VkBufferCopy all{0, 0, bytes};
  device.vk().vkCmdCopyBuffer(commands, from.handle(), to.handle(), 1, &all);
}

// The host's and the device's sides of memory that isn't coherent, on each device that has some.
struct Ways {
  OpenedDevice opened;
  Buffer upload, readback;

  explicit Ways(const std::string& profile) : opened(open_pretended(profile)) {
    upload = Buffer(*opened.device, BufferKind::upload, bytes, "upload");
    readback = Buffer(*opened.device, BufferKind::readback, bytes, "readback");
  }
  Device& device() { return *opened.device; }
};

// Barriers to the host are left out of what is recorded between these.
PFN_vkCmdPipelineBarrier2 real_barrier = nullptr;
VKAPI_ATTR void VKAPI_CALL barrier_but_to_host(VkCommandBuffer commands, const VkDependencyInfo* info) {
  if ((info->pMemoryBarriers[0].dstStageMask & VK_PIPELINE_STAGE_2_HOST_BIT) == 0)
    real_barrier(commands, info);
}

struct Product {
  RandomConstants constants{3};
  WeightStore weights;
  std::unique_ptr<Executable> executable;

  // x [4, 64] times a matrix, as one dispatch that writes the result.
  explicit Product(PipelineStore& pipelines, const char* variant) : weights(pipelines, constants) {
    auto graph = std::make_shared<Graph>();
    const ValueId x = graph->input("x", {4, 64}, DType::f32);
    graph->output(matmul(*graph, "y", x, graph->constant("w", {32, 64}, DType::f32)), "y");
    PlanOptions options;
    options.variants = parse_variants(variant);
    executable =
        std::make_unique<Executable>(weights, make_plan(graph, pipelines.device().capabilities(), options));
  }
  std::vector<double> run() {
    const auto values = encode(random_tensor({4, 64}, DType::f32, 7));
    std::memcpy(executable->input(0).data(), values.data(), values.size());
    executable->run();
    return decode(executable->output(0), DType::f32);
  }
};

}  // namespace

TEST_CASE("a write that isn't flushed never reaches the device") {
  Ways ways("discrete_card");
  write(ways.upload, pattern());
  const auto round_trip = [&] {
    run_once(ways.device(), [&](VkCommandBuffer c) { copy(ways.device(), c, ways.upload, ways.readback); });
    ways.readback.invalidate();
  };
  round_trip();
  CHECK_FALSE(holds(ways.readback, pattern()));
  ways.upload.flush();
  round_trip();
  CHECK(holds(ways.readback, pattern()));
  ways.opened.require_silence();
}

TEST_CASE("a part that is flushed is the part that arrives") {
  Ways ways("discrete_card");
  const uint64_t atom = 128;
  write(ways.upload, pattern());
  ways.upload.flush(atom, atom);
  run_once(ways.device(), [&](VkCommandBuffer c) { copy(ways.device(), c, ways.upload, ways.readback); });
  ways.readback.invalidate();
  const std::vector<std::byte> all = pattern();
  const auto seen = ways.readback.mapped();
  CHECK(std::equal(all.begin() + atom, all.begin() + 2 * atom, seen.begin() + atom));
  CHECK_FALSE(std::equal(all.begin(), all.begin() + atom, seen.begin()));
  CHECK_FALSE(std::equal(all.begin() + 2 * atom, all.begin() + 3 * atom, seen.begin() + 2 * atom));
}

TEST_CASE("what the device wrote is not seen without an invalidation") {
  for (const char* profile : {"discrete_card", "integrated", "phone", "own_memory"}) {
    INFO(profile);
    Ways ways(profile);
    const bool unified = ways.device().capabilities().unified_cached_memory();
    const Buffer seen(ways.device(), unified ? BufferKind::direct_read : BufferKind::readback, bytes, "seen");
    write(ways.upload, pattern());
    ways.upload.flush();
    run_once(ways.device(), [&](VkCommandBuffer c) { copy(ways.device(), c, ways.upload, seen); });
    CHECK_FALSE(holds(seen, pattern()));
    seen.invalidate();
    CHECK(holds(seen, pattern()));
    ways.opened.require_silence();
  }
}

TEST_CASE("without a barrier to the host an invalidation shows old bytes, and is told of") {
  Ways ways("discrete_card");
  write(ways.upload, pattern());
  ways.upload.flush();
  submit(ways.device(), [&](VkCommandBuffer c) { copy(ways.device(), c, ways.upload, ways.readback); });
  ways.readback.invalidate();
  CHECK_FALSE(holds(ways.readback, pattern()));
  const std::vector<std::string> told = ways.opened.messages->take();
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], ContainsSubstring("pretend-host-read") && ContainsSubstring("bytes 0 to 4096"));

  // A barrier in a later submission is as good.
  submit(ways.device(), [&](VkCommandBuffer c) {
    record_barrier(ways.device(), c, VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                   VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
  });
  ways.readback.invalidate();
  CHECK(holds(ways.readback, pattern()));
  ways.opened.require_silence();
}

TEST_CASE("a barrier to the host in front of the write is none") {
  Ways ways("discrete_card");
  write(ways.upload, pattern());
  ways.upload.flush();
  submit(ways.device(), [&](VkCommandBuffer c) {
    record_barrier(ways.device(), c, VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                   VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
    copy(ways.device(), c, ways.upload, ways.readback);
  });
  ways.readback.invalidate();
  CHECK_FALSE(holds(ways.readback, pattern()));
  CHECK(count_of(ways.opened.messages->take(), "pretend-host-read") == 1);
}

TEST_CASE("a recording is judged by every submission of it") {
  Ways ways("discrete_card");
  Device& device = ways.device();
  CommandPool pool(device);
  const VkCommandBuffer fill = pool.begin();
  device.vk().vkCmdFillBuffer(fill, ways.readback.handle(), 0, VK_WHOLE_SIZE, 0x01020304);
  pool.end(fill);
  const VkCommandBuffer lead_to_host = pool.begin();
  record_barrier(device, lead_to_host, VK_PIPELINE_STAGE_2_CLEAR_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                 VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
  // And to the next filling of the same bytes.
  record_barrier(device, lead_to_host, VK_PIPELINE_STAGE_2_CLEAR_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                 VK_PIPELINE_STAGE_2_CLEAR_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT);
  pool.end(lead_to_host);
  for (int i = 0; i < 2; ++i) {
    hand_over(device, fill);
    ways.readback.invalidate();
    CHECK(count_of(ways.opened.messages->take(), "pretend-host-read") == 1);
    hand_over(device, lead_to_host);
    ways.readback.invalidate();
    CHECK(ways.readback.mapped()[0] == std::byte{4});
  }
  ways.opened.require_silence();
}

TEST_CASE("a dispatch whose result the host reads needs its barrier, too") {
  // On these the host reads the very buffer that the shader writes: through a descriptor on the phone, and
  // through its address on the integrated GPU.
  for (const auto& [profile, variant] : {std::pair{"phone", "matmul=tiled"},
                                         {"integrated", "matmul=tiled"},
                                         {"integrated", "matmul=cpu_direct"}}) {
    INFO(profile << " " << variant);
    const OpenedDevice opened = open_pretended(profile);
    Product right(*opened.pipelines, variant);
    const std::vector<double> expected = right.run();
    opened.require_silence();
    const bool by_address =
        right.executable->plan().steps.front().dispatch.shader->bind == BindMode::addresses;
    CHECK(by_address == (std::string(variant) == "matmul=cpu_direct"));

    VolkDeviceTable& vk = opened.device->vk();
    real_barrier = std::exchange(vk.vkCmdPipelineBarrier2, barrier_but_to_host);
    Product wrong(*opened.pipelines, variant);
    vk.vkCmdPipelineBarrier2 = real_barrier;
    CHECK(wrong.run() != expected);
    CHECK(count_of(opened.messages->take(), "pretend-host-read") >= 1);
  }
}

TEST_CASE("memory that the host can't see can't be mapped") {
  const OpenedDevice opened = open_pretended("discrete_card");
  Device& device = *opened.device;
  VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.allocationSize = bytes;
  info.memoryTypeIndex = 0;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  REQUIRE(device.vk().vkAllocateMemory(device.handle(), &info, nullptr, &memory) == VK_SUCCESS);
  void* data = nullptr;
  CHECK(device.vk().vkMapMemory(device.handle(), memory, 0, bytes, 0, &data) == VK_ERROR_MEMORY_MAP_FAILED);
  const auto told = opened.messages->take();
  CHECK(count_of(told, "pretend-map") == 1);
  CHECK(count_of(told, "VUID-vkMapMemory-memory-00682") ==
        1);  // the validation layer knows these limits as well
  device.vk().vkFreeMemory(device.handle(), memory, nullptr);
}

TEST_CASE("a buffer in memory of a type that isn't for it is told of") {
  const OpenedDevice opened = open_pretended("phone");
  Device& device = *opened.device;
  VkBufferCreateInfo buffer_info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  buffer_info.size = bytes;
  buffer_info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  REQUIRE(device.vk().vkCreateBuffer(device.handle(), &buffer_info, nullptr, &buffer) == VK_SUCCESS);
  VkMemoryRequirements needs{};
  device.vk().vkGetBufferMemoryRequirements(device.handle(), buffer, &needs);
  CHECK(needs.memoryTypeBits == 0b110);  // not the lazily allocated one
  VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.allocationSize = needs.size;
  info.memoryTypeIndex = 0;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  REQUIRE(device.vk().vkAllocateMemory(device.handle(), &info, nullptr, &memory) == VK_SUCCESS);
  device.vk().vkBindBufferMemory(device.handle(), buffer, memory, 0);
  CHECK(count_of(opened.messages->take(), "pretend-memory-type") == 1);
  device.vk().vkDestroyBuffer(device.handle(), buffer, nullptr);
  device.vk().vkFreeMemory(device.handle(), memory, nullptr);
}

TEST_CASE("flushes and invalidations that cut atoms or leave the mapping are told of") {
  const OpenedDevice opened = open_pretended("discrete_card");
  Device& device = *opened.device;
  VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.allocationSize = 1000;
  info.memoryTypeIndex = 1;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  REQUIRE(device.vk().vkAllocateMemory(device.handle(), &info, nullptr, &memory) == VK_SUCCESS);
  const auto told_of = [&](uint64_t offset, uint64_t size) {
    VkMappedMemoryRange range{.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE};
    range.memory = memory;
    range.offset = offset;
    range.size = size;
    opened.messages->take();
    device.vk().vkFlushMappedMemoryRanges(device.handle(), 1, &range);
    const size_t flushed = count_of(opened.messages->take(), "pretend-mapped-range");
    device.vk().vkInvalidateMappedMemoryRanges(device.handle(), 1, &range);
    CHECK(count_of(opened.messages->take(), "pretend-mapped-range") == flushed);
    return flushed;
  };
  CHECK(told_of(0, 128) == 1);  // not mapped yet
  void* data = nullptr;
  REQUIRE(device.vk().vkMapMemory(device.handle(), memory, 0, VK_WHOLE_SIZE, 0, &data) == VK_SUCCESS);
  CHECK(told_of(0, 128) == 0);
  CHECK(told_of(0, VK_WHOLE_SIZE) == 0);
  CHECK(told_of(896, 104) == 0);  // up to the end of the memory
  CHECK(told_of(64, 128) == 1);
  CHECK(told_of(0, 100) == 1);
  CHECK(told_of(896, 200) == 1);
  device.vk().vkFreeMemory(device.handle(), memory, nullptr);
}

TEST_CASE("the budget ends, in a sentence, and what was freed can be had again") {
  const OpenedDevice opened = open_pretended("phone");
  Device& device = *opened.device;
  constexpr uint64_t piece = uint64_t{900} << 20;
  std::vector<Buffer> held;
  for (int i = 0; i < 2; ++i) held.emplace_back(device, BufferKind::device, piece, "a piece");
  std::string failure;
  try {
    held.emplace_back(device, BufferKind::device, piece, "one too many");
  } catch (const Error& error) {
    failure = error.what();
  }
  CHECK_THAT(failure, ContainsSubstring("out of memory on device 'Make-believe phone'") &&
                          ContainsSubstring("'one too many'") && ContainsSubstring("are free"));
  CHECK(device.heap_budgets()[0].used_bytes >= 2 * piece);
  held.pop_back();
  CHECK_NOTHROW(held.emplace_back(device, BufferKind::device, piece, "again"));
  opened.require_silence();
}

}  // namespace vitrine::test

// When the host may see what the device wrote: the rules alone, without a device.
#include "tests/pretend/layer/host_view.h"

#include <catch2/catch_test_macros.hpp>

using namespace vitrine::pretend;

namespace {

using Parts = std::vector<std::pair<uint64_t, uint64_t>>;

const auto memory = reinterpret_cast<VkDeviceMemory>(uintptr_t{16});
const auto other = reinterpret_cast<VkDeviceMemory>(uintptr_t{32});

DeviceWrite shader_write(uint64_t begin, uint64_t end) {
  return {{memory, begin, end}, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT};
}
DeviceWrite copy(uint64_t begin, uint64_t end) {
  return {{memory, begin, end}, VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT};
}
Barrier to_host(VkPipelineStageFlags2 stages, VkAccessFlags2 access) {
  return {stages, access, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT, {}};
}

// What stays hidden of bytes 0 to 100.
Parts after(const std::vector<Event>& events) {
  HostView view;
  for (const Event& event : events) view.apply(event);
  return view.hidden({memory, 0, 100});
}

Parts without(uint64_t begin, uint64_t end, const Parts& holes) {
  Parts parts;
  visit_without(begin, end, holes, [&](uint64_t from, uint64_t to) { parts.emplace_back(from, to); });
  return parts;
}

const Barrier compute_to_host =
    to_host(VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT);
const Barrier copies_to_host = to_host(VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT);

}  // namespace

TEST_CASE("a write is hidden until a barrier that waits for it leads to the host") {
  CHECK(after({}).empty());
  CHECK(after({shader_write(10, 20)}) == Parts{{10, 20}});
  CHECK(after({shader_write(10, 20), compute_to_host}).empty());
  CHECK(after({compute_to_host, shader_write(10, 20)}) == Parts{{10, 20}});
  CHECK(after({shader_write(10, 20), copies_to_host}) == Parts{{10, 20}});
  CHECK(after({copy(10, 20), copies_to_host}).empty());
  CHECK(after({copy(10, 20), compute_to_host}) == Parts{{10, 20}});
}

TEST_CASE("stages and accesses that stand for several count as these") {
  CHECK(
      after({copy(0, 4), to_host(VK_PIPELINE_STAGE_2_TRANSFER_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT)}).empty());
  CHECK(after({copy(0, 4), to_host(VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, VK_ACCESS_2_MEMORY_WRITE_BIT)})
            .empty());
  CHECK(after({shader_write(0, 4),
               to_host(VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_WRITE_BIT)})
            .empty());
  const Barrier all_reads{VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                          VK_ACCESS_2_MEMORY_WRITE_BIT,
                          VK_PIPELINE_STAGE_2_HOST_BIT,
                          VK_ACCESS_2_MEMORY_READ_BIT,
                          {}};
  CHECK(after({copy(0, 4), all_reads}).empty());
  // The host is no command.
  const Barrier commands{VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                         VK_ACCESS_2_MEMORY_WRITE_BIT,
                         VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                         VK_ACCESS_2_MEMORY_READ_BIT,
                         {}};
  CHECK(after({copy(0, 4), commands}) == Parts{{0, 4}});
  const Barrier writes_alone{VK_PIPELINE_STAGE_2_COPY_BIT,
                             VK_ACCESS_2_TRANSFER_WRITE_BIT,
                             VK_PIPELINE_STAGE_2_HOST_BIT,
                             VK_ACCESS_2_HOST_WRITE_BIT,
                             {}};
  CHECK(after({copy(0, 4), writes_alone}) == Parts{{0, 4}});
}

TEST_CASE("a barrier that doesn't name the write's access leaves it hidden") {
  CHECK(after({shader_write(0, 4), to_host(VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                                           VK_ACCESS_2_SHADER_STORAGE_READ_BIT)}) == Parts{{0, 4}});
}

TEST_CASE("barriers lead on from one to the next") {
  const Barrier to_copies{VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                          VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
                          VK_PIPELINE_STAGE_2_COPY_BIT,
                          VK_ACCESS_2_TRANSFER_READ_BIT,
                          {}};
  CHECK(after({shader_write(0, 4), to_copies, copies_to_host}).empty());
  CHECK(after({shader_write(0, 4), to_copies}) == Parts{{0, 4}});
}

TEST_CASE("barriers of a range concern what lies in it") {
  Barrier part = compute_to_host;
  part.range = MemoryRange{memory, 0, 50};
  CHECK(after({shader_write(0, 50), shader_write(60, 70), part}) == Parts{{60, 70}});
  part.range = MemoryRange{memory, 0, 40};
  CHECK(after({shader_write(0, 50), part}) == Parts{{0, 50}});
  part.range = MemoryRange{other, 0, 100};
  CHECK(after({shader_write(0, 50), part}) == Parts{{0, 50}});
}

TEST_CASE("hidden parts are joined, clipped, and of one memory") {
  CHECK(after({shader_write(30, 40), copy(0, 10), shader_write(5, 20), shader_write(90, 200)}) ==
        Parts{{0, 20}, {30, 40}, {90, 100}});
  HostView view;
  view.apply(shader_write(0, 10));
  CHECK(view.hidden({other, 0, 100}).empty());
  CHECK(view.hidden({memory, 10, 20}).empty());
  view.forget(other);
  CHECK_FALSE(view.hidden({memory, 0, 10}).empty());
  view.forget(memory);
  CHECK(view.hidden({memory, 0, 10}).empty());
  // A second write of the same bytes is the one that counts.
  CHECK(after({shader_write(0, 10), copy(0, 10), copies_to_host}).empty());
  CHECK(after({copy(0, 10), shader_write(0, 10), copies_to_host}) == Parts{{0, 10}});
}

TEST_CASE("what holes leave of a range") {
  CHECK(without(0, 10, Parts{}) == Parts{{0, 10}});
  CHECK(without(0, 10, Parts{{0, 10}}).empty());
  CHECK(without(0, 10, Parts{{2, 3}, {5, 7}}) == Parts{{0, 2}, {3, 5}, {7, 10}});
  CHECK(without(0, 10, Parts{{0, 3}, {8, 10}}) == Parts{{3, 8}});
}

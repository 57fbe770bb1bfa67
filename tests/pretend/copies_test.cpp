// Copies beside computation, on queues that are as late as they may be: what is forgotten to be waited for
// isn't there.
#include <volk.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/graph/executable.h"
#include "runtime/ops/products/matmul.h"
#include "tests/pretend/pretend_device.h"
#include "tests/support/constants.h"
#include "tests/support/op_test.h"

namespace vitrine::test {
namespace {

constexpr uint64_t rows = 96;
constexpr uint64_t width = 256;

// So many products one behind the other, each in a submission of its own.
struct Chain {
  RandomConstants constants{3};
  WeightStore weights;
  std::unique_ptr<Executable> executable;

  Chain(PipelineStore& pipelines, int products) : weights(pipelines, constants) {
    auto graph = std::make_shared<Graph>();
    ValueId x = graph->input("x", {rows, width});
    for (int i = 0; i < products; ++i) {
      const std::string name = "product" + std::to_string(i);
      x = matmul(*graph, name, x, graph->constant(name + ".weight", {width, width}),
                 {.activation = Activation::tanh});
    }
    graph->output(x, "y");
    executable = std::make_unique<Executable>(
        weights, make_plan(graph, pipelines.device().capabilities(),
                           {.fusions = {}, .layouts = false, .slice_seconds = 1e-9}));
  }

  void fill(uint64_t seed, uint32_t set) {
    const auto values = encode(random_tensor({rows, width}, DType::f32, seed));
    std::memcpy(executable->input(0, set).data(), values.data(), values.size());
  }
  std::vector<std::byte> read(uint32_t set) const {
    const auto bytes = executable->output(0, set);
    return {bytes.begin(), bytes.end()};
  }
  std::vector<std::byte> run(uint64_t seed, uint32_t set = 0) {
    fill(seed, set);
    executable->run(set);
    return read(set);
  }
};

// What is submitted while one of these lives, and what of it is changed.
struct Submission {
  VkQueue queue = VK_NULL_HANDLE;
  std::vector<std::pair<VkSemaphore, uint64_t>> waits, signals;
};
std::vector<Submission> submissions;
VkQueue forgetful_queue = VK_NULL_HANDLE;  // its submissions wait for nothing
PFN_vkQueueSubmit2 real_submit = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL noted_submit(VkQueue queue, uint32_t count, const VkSubmitInfo2* infos,
                                            VkFence fence) {
  std::vector<VkSubmitInfo2> changed(infos, infos + count);
  for (VkSubmitInfo2& one : changed) {
    Submission& noted = submissions.emplace_back(Submission{queue, {}, {}});
    for (uint32_t i = 0; i < one.waitSemaphoreInfoCount; ++i)
      noted.waits.emplace_back(one.pWaitSemaphoreInfos[i].semaphore, one.pWaitSemaphoreInfos[i].value);
    for (uint32_t i = 0; i < one.signalSemaphoreInfoCount; ++i)
      noted.signals.emplace_back(one.pSignalSemaphoreInfos[i].semaphore, one.pSignalSemaphoreInfos[i].value);
    if (queue == forgetful_queue) one.waitSemaphoreInfoCount = 0;
  }
  return real_submit(queue, count, changed.data(), fence);
}

class NotedSubmissions {
 public:
  explicit NotedSubmissions(Device& device) : device_(device) {
    submissions.clear();
    forgetful_queue = VK_NULL_HANDLE;
    real_submit = std::exchange(device.vk().vkQueueSubmit2, &noted_submit);
  }
  ~NotedSubmissions() { device_.vk().vkQueueSubmit2 = real_submit; }
  NotedSubmissions(const NotedSubmissions&) = delete;
  NotedSubmissions& operator=(const NotedSubmissions&) = delete;

 private:
  Device& device_;
};

VkQueue copy_queue_of(const Device& device) {
  VkQueue queue = VK_NULL_HANDLE;
  device.vk().vkGetDeviceQueue(device.handle(), device.copy_queue_family(), 0, &queue);
  return queue;
}

void wait_for(const Device& device, const std::pair<VkSemaphore, uint64_t>& signal) {
  VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &signal.first;
  info.pValues = &signal.second;
  REQUIRE(device.vk().vkWaitSemaphores(device.handle(), &info, UINT64_MAX) == VK_SUCCESS);
}

}  // namespace

TEST_CASE("copies have a queue of their own where something is staged and there is one") {
  for (const auto& [profile, apart] : {std::pair{"discrete_card", true},
                                       {"own_memory", true},
                                       {"integrated", false},
                                       {"phone", false},
                                       {"least", false}}) {
    INFO(profile);
    const OpenedDevice opened = open_pretended(profile);
    CHECK(opened.device->copies_apart() == apart);
    CHECK((opened.device->copy_queue_family() != opened.device->queue_family()) == apart);
    opened.require_silence();
  }
}

TEST_CASE("two sets in flight give the bits of one run after another, however late the copies are") {
  for (const char* profile : {"discrete_card", "own_memory", "least", "integrated"}) {
    INFO(profile);
    const OpenedDevice opened = open_pretended(profile);
    const OpenedDevice plain = open_plain_with_capabilities_of(opened.device->capabilities());
    Chain there(*opened.pipelines, 3), here(*plain.pipelines, 3);
    constexpr uint64_t runs = 9;
    std::vector<std::vector<std::byte>> expected, got(runs);
    for (uint64_t run = 0; run < runs; ++run) expected.push_back(here.run(run));
    for (uint64_t run = 0; run < runs + Executable::io_sets; ++run) {
      const auto set = static_cast<uint32_t>(run % Executable::io_sets);
      const uint64_t landing = run - Executable::io_sets;
      if (run >= Executable::io_sets && landing < runs) {
        there.executable->wait(set);
        got[landing] = there.read(set);
      }
      if (run >= runs) continue;
      there.fill(run, set);
      there.executable->submit(set);
    }
    for (uint64_t run = 0; run < runs; ++run) {
      INFO(run);
      CHECK(got[run] == expected[run]);
      if (run > 0) CHECK(expected[run] != expected[run - 1]);
    }
    opened.require_silence();
    plain.require_silence();
  }
}

TEST_CASE("an upload waits for nothing, a run for its own upload, a download for its own run") {
  const OpenedDevice opened = open_pretended("discrete_card");
  Device& device = *opened.device;
  Chain chain(*opened.pipelines, 2);
  const uint32_t slices = chain.executable->plan().slice_count;
  REQUIRE(slices >= 2);
  const NotedSubmissions noted(device);
  for (const uint32_t set : {0, 1}) {
    chain.fill(5 + set, set);
    chain.executable->submit(set);
  }
  for (const uint32_t set : {0, 1}) chain.executable->wait(set);

  // The first download comes behind the second upload: before it, it would hold that up on their queue.
  std::vector<size_t> copies, computations;
  for (size_t i = 0; i < submissions.size(); ++i)
    (submissions[i].queue == device.queue() ? computations : copies).push_back(i);
  REQUIRE(copies.size() == 4);
  REQUIRE(computations.size() == 2 * slices);
  const auto at = [&](const std::vector<size_t>& places, size_t i) { return submissions[places[i]]; };
  const Submission up_0 = at(copies, 0), up_1 = at(copies, 1), down_0 = at(copies, 2), down_1 = at(copies, 3);
  CHECK(up_0.waits.empty());
  CHECK(up_1.waits.empty());
  for (const uint32_t set : {0, 1}) {
    INFO(set);
    CHECK(at(computations, set * slices).waits == (set == 0 ? up_0 : up_1).signals);
    CHECK((set == 0 ? down_0 : down_1).waits == at(computations, set * slices + slices - 1).signals);
    for (uint32_t slice = 1; slice < slices; ++slice)
      CHECK(at(computations, set * slices + slice).waits.empty());
  }
  opened.require_silence();
}

TEST_CASE("a run that doesn't wait for its upload computes old bytes") {
  // No validation above, which would say so first.
  const OpenedDevice opened = open_pretended("discrete_card", Validation::off);
  Device& device = *opened.device;
  Chain chain(*opened.pipelines, 2);
  const auto old = chain.run(1), expected = chain.run(2);
  REQUIRE(old != expected);
  REQUIRE(chain.run(1) == old);
  for (const bool forgets : {false, true}) {
    INFO(forgets);
    REQUIRE(chain.run(1) == old);
    const NotedSubmissions noted(device);
    if (forgets) forgetful_queue = device.queue();
    chain.fill(2, 0);
    chain.executable->submit();
    // Its end is waited for, its upload by nobody.
    wait_for(device, submissions.back().signals.front());
    chain.executable->wait();
    CHECK((chain.read(0) == (forgets ? old : expected)));
  }
}

TEST_CASE("a download that doesn't wait for its run brings old bytes") {
  const OpenedDevice opened = open_pretended("discrete_card", Validation::off);
  Device& device = *opened.device;
  Chain chain(*opened.pipelines, 60);  // long enough for a thread to wake up meanwhile
  const auto old = chain.run(1), expected = chain.run(2);
  REQUIRE(old != expected);
  for (const bool forgets : {false, true}) {
    INFO(forgets);
    REQUIRE(chain.run(1) == old);
    const NotedSubmissions noted(device);
    if (forgets) forgetful_queue = copy_queue_of(device);
    chain.fill(2, 0);
    chain.executable->submit();
    chain.executable->wait();
    CHECK((chain.read(0) == expected) == !forgets);
    device.wait_idle();
  }
}

}  // namespace vitrine::test

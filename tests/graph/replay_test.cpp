// After the first run, Executable::run() only submits and waits: no recording, no allocation, no
// descriptor write, on the device's side or ours.
#include <volk.h>

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "model/files/weights.h"
#include "runtime/graph/executable.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/products/matmul.h"
#include "tests/support/constants.h"
#include "tests/support/test_device.h"
#include "train/trainer.h"

namespace {

// Allocations of this thread while `counting` is on. Everything in this program, drivers and layers
// included, allocates through these operators, so the counting pauses inside Vulkan calls.
thread_local bool counting = false;
thread_local size_t allocations = 0;

void* allocate(size_t bytes) noexcept {
  if (counting) ++allocations;
  return std::malloc(bytes ? bytes : 1);
}
void* allocate_or_throw(size_t bytes) {
  if (void* memory = allocate(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t bytes) { return allocate_or_throw(bytes); }
void* operator new[](size_t bytes) { return allocate_or_throw(bytes); }
// Those of a sanitizer don't call the ones above, and what they give isn't for free().
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace vitrine::test {
namespace {

VolkDeviceTable real;

VKAPI_ATTR void VKAPI_CALL forbidden() {
  std::abort();  // its real signature is unknown, so the program can't go on, and the test case fails
}

size_t submissions = 0, waits = 0;
VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo2* infos,
                                      VkFence fence) {
  counting = false;
  ++submissions;
  const VkResult result = real.vkQueueSubmit2(queue, count, infos, fence);
  counting = true;
  return result;
}
VKAPI_ATTR VkResult VKAPI_CALL wait(VkDevice device, const VkSemaphoreWaitInfo* info, uint64_t timeout) {
  counting = false;
  ++waits;
  const VkResult result = real.vkWaitSemaphores(device, info, timeout);
  counting = true;
  return result;
}

// Every device function but submitting and waiting stops the program while this lives.
class OnlySubmitAndWait {
 public:
  explicit OnlySubmitAndWait(VolkDeviceTable& table) : table_(table) {
    real = table;
    static_assert(sizeof(VolkDeviceTable) % sizeof(PFN_vkVoidFunction) == 0);
    std::vector<PFN_vkVoidFunction> all(sizeof(VolkDeviceTable) / sizeof(PFN_vkVoidFunction), &forbidden);
    std::memcpy(static_cast<void*>(&table), all.data(), sizeof(VolkDeviceTable));
    table.vkQueueSubmit2 = &submit;
    table.vkWaitSemaphores = &wait;
  }
  ~OnlySubmitAndWait() { table_ = real; }
  OnlySubmitAndWait(const OnlySubmitAndWait&) = delete;
  OnlySubmitAndWait& operator=(const OnlySubmitAndWait&) = delete;

 private:
  VolkDeviceTable& table_;
};

TEST_CASE("a run after the first one only submits and waits") {
  TestDevice& device = test_device();
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {2, 50, 48});
  const ValueId gamma = graph->constant("gamma", {48}), beta = graph->constant("beta", {48});
  const ValueId weight = graph->constant("weight", {96, 48});
  const ValueId normed = layer_norm(*graph, "norm", x, gamma, beta);
  graph->output(matmul(*graph, "matmul", normed, weight, {.activation = Activation::gelu}), "y");

  RandomConstants constants(5);
  WeightStore weights(*device.pipelines, constants);
  Executable executable(weights, make_plan(graph, device.device->capabilities()));
  for (uint32_t set = 0; set < Executable::io_sets; ++set) {
    for (std::byte& byte : executable.input(0, set)) byte = std::byte{0x3c};
    executable.run(set);
  }
  submissions = waits = 0;
  {
    const OnlySubmitAndWait guard(device.device->vk());
    allocations = 0;
    counting = true;
    for (uint32_t i = 0; i < 6; ++i) executable.run(i % Executable::io_sets);
    counting = false;
  }
  // What is staged takes a submission either way.
  const Capabilities& caps = device.device->capabilities();
  const size_t copies = (caps.unified_memory() ? 0 : 1) + (caps.unified_cached_memory() ? 0 : 1);
  CHECK(submissions == 6 * (executable.plan().slice_count + copies));
  CHECK(waits == 6);
  CHECK(allocations == 0);
  require_no_validation_messages();
}

void train_six_steps(uint64_t accumulation) {
  TestDevice& device = test_device();
  TrainConfig config{.clip_norm = 1, .batch_size = 4, .accumulation = accumulation};
  config.model = {.image_height = 8,
                  .image_width = 8,
                  .patch_height = 4,
                  .patch_width = 4,
                  .dim = 24,
                  .depth = 2,
                  .heads = 2,
                  .classes = 5,
                  .dropout = 0.1,
                  .attention_dropout = 0.1,
                  .stochastic_depth = 0.1};
  Trainer trainer(*device.pipelines, config, 100);
  trainer.initialize(*random_weights(config.model, 1));
  std::vector<BatchResult> results;
  results.reserve(16);
  const auto step = [&](uint64_t number) {
    const Trainer::Slot slot = trainer.slot();
    for (float& value : slot.images) value = 0.25f * static_cast<float>(number % 3);
    for (uint32_t& label : slot.labels) label = static_cast<uint32_t>(number % 5);
    trainer.submit(4, 4 * accumulation, (number + 1) % accumulation == 0);
    trainer.take_results(results);
  };
  for (uint64_t i = 0; i < 2 * accumulation; ++i) step(i);
  trainer.finish();
  trainer.take_results(results);
  submissions = 0;
  {
    const OnlySubmitAndWait guard(device.device->vk());
    allocations = 0;
    counting = true;
    for (uint64_t i = 0; i < 6 * accumulation; ++i) step(i);
    trainer.finish();
    counting = false;
  }
  trainer.take_results(results);
  REQUIRE(!results.empty());
  CHECK(std::isfinite(results.back().loss));
  CHECK(submissions >= 6 * accumulation);
  CHECK(allocations == 0);
  require_no_validation_messages();
}

TEST_CASE("a training step after the first ones only submits and waits") { train_six_steps(1); }
TEST_CASE("so does one that accumulates gradients") { train_six_steps(3); }

}  // namespace
}  // namespace vitrine::test

// Runs that leave room for others on the same queue, and can be stopped, as what comes before them can.
#include <volk.h>

#include <array>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/graph/executable.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/products/matmul.h"
#include "tests/support/constants.h"
#include "tests/support/op_test.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

// Ten products, one behind the other, each in slices of its own.
Plan ten_slices() {
  auto graph = std::make_shared<Graph>();
  ValueId x = graph->input("x", {19, 48});
  for (int i = 0; i < 10; ++i) {
    const std::string name = "product" + std::to_string(i);
    x = matmul(*graph, name, x, graph->constant(name + ".weight", {48, 48}),
               {.activation = Activation::tanh});
  }
  graph->output(x, "y");
  Plan plan = make_plan(graph, test_device().device->capabilities(),
                        {.fusions = {}, .layouts = false, .slice_seconds = 1e-5});
  REQUIRE(plan.slice_count >= 10);
  return plan;
}

void set_input(Executable& executable, uint64_t seed, uint32_t set = 0) {
  const auto bytes = encode(random_tensor({19, 48}, DType::f32, seed));
  std::memcpy(executable.input(0, set).data(), bytes.data(), bytes.size());
}

std::vector<std::byte> result_of(const Executable& executable, uint32_t set = 0) {
  const auto bytes = executable.output(0, set);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("a run slice by slice asks between the slices and gives the same bits") {
  TestDevice& device = test_device();
  RandomConstants constants(3);
  WeightStore weights(*device.pipelines, constants);
  Executable executable(weights, ten_slices());
  for (uint32_t set = 0; set < Executable::io_sets; ++set) {
    set_input(executable, 5 + set, set);
    executable.run(set);
    const std::vector<std::byte> expected = result_of(executable, set);
    executable.fill_memory(0x7fcd7fcd);
    std::vector<double> shares;
    const auto note = [&](double share) {
      shares.push_back(share);
      return true;
    };
    CHECK(executable.run_sliced(note, set));
    CHECK(result_of(executable, set) == expected);
    REQUIRE(shares.size() + 1 == executable.plan().slice_count);
    CHECK(shares.front() > 0);
    CHECK(shares.back() < 1);
    for (size_t i = 1; i < shares.size(); ++i) CHECK(shares[i] > shares[i - 1]);
  }
  require_no_validation_messages();
}

TEST_CASE("a run that was stopped leaves an executable that runs") {
  TestDevice& device = test_device();
  RandomConstants constants(3);
  WeightStore weights(*device.pipelines, constants);
  Executable executable(weights, ten_slices());
  set_input(executable, 5);
  executable.run();
  const std::vector<std::byte> expected = result_of(executable);
  for (const int slices : {1, 4, 9}) {
    set_input(executable, 6);
    int asked = 0;
    CHECK_FALSE(executable.run_sliced([&](double) { return ++asked < slices; }));
    CHECK(asked == slices);
    set_input(executable, 5);
    CHECK(executable.run_sliced([](double) { return true; }));
    CHECK(result_of(executable) == expected);
  }
  // What the callback throws passes through, and the executable can still run, or go.
  CHECK_THROWS(executable.run_sliced([](double) -> bool { throw std::runtime_error("enough"); }));
  executable.run();
  CHECK(result_of(executable) == expected);
  executable.submit();
  require_no_validation_messages();
}

TEST_CASE("a profile slice by slice times every step and can be stopped") {
  skip_without_timestamps();
  TestDevice& device = test_device();
  RandomConstants constants(3);
  WeightStore weights(*device.pipelines, constants);
  Executable executable(weights, ten_slices());
  set_input(executable, 5);
  executable.run();
  const std::vector<std::byte> expected = result_of(executable);
  int asked = 0;
  CHECK_FALSE(executable.profile([&](double) { return ++asked < 3; }).has_value());
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  double asking = 0;
  const auto start = Clock::now();
  const std::optional<Profile> profile = executable.profile([&](double) {
    const auto asked_at = Clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    asking += seconds_since(asked_at);
    return true;
  });
  const double all = seconds_since(start);
  REQUIRE(profile.has_value());
  REQUIRE(profile->step_seconds.size() == executable.plan().steps.size());
  CHECK(profile->total_seconds > 0);
  CHECK(profile->total_seconds < all - asking);  // what passes while it asks is no step's time
  executable.run();
  CHECK(result_of(executable) == expected);
  require_no_validation_messages();
}

namespace {

std::atomic<int> pipelines_made = 0;
PFN_vkCreateComputePipelines make_pipelines;
VKAPI_ATTR VkResult VKAPI_CALL count_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                               const VkComputePipelineCreateInfo* infos,
                                               const VkAllocationCallbacks* callbacks, VkPipeline* made) {
  pipelines_made += static_cast<int>(count);
  return make_pipelines(device, cache, count, infos, callbacks, made);
}

// Each needs a pipeline of its own.
constexpr std::array activations{Activation::gelu, Activation::gelu_tanh, Activation::gelu_quick,
                                 Activation::silu, Activation::tanh};
std::vector<Dispatch> activation_dispatches() {
  std::vector<Dispatch> all;
  for (const Activation activation : activations) {
    auto graph = std::make_shared<Graph>();
    graph->output(activate(*graph, "y", graph->input("x", {4, 32}), activation), "y");
    all.push_back(make_plan(graph, test_device().device->capabilities()).steps.front().dispatch);
  }
  return all;
}

}  // namespace

TEST_CASE("compiling stops between two pipelines, and those that are made stay") {
  TestDevice& device = test_device();
  const std::vector<Dispatch> dispatches = activation_dispatches();
  std::vector<const Dispatch*> wanted;
  for (const Dispatch& dispatch : dispatches) wanted.push_back(&dispatch);
  PipelineStore pipelines(*device.device);
  auto& call = device.device->vk().vkCreateComputePipelines;
  make_pipelines = std::exchange(call, &count_pipelines);
  pipelines_made = 0;
  std::atomic<int> asked = 0;
  CHECK_THROWS_AS(pipelines.get(wanted, [&](double) { return ++asked <= 2; }), Interrupted);
  CHECK(pipelines_made == 2);
  CHECK(pipelines.get(wanted, [](double) { return true; }).size() == wanted.size());
  CHECK(pipelines_made == static_cast<int>(wanted.size()));
  // There is nothing left to ask for.
  CHECK(pipelines.get(wanted, [](double) { return false; }).size() == wanted.size());
  call = make_pipelines;
  require_no_validation_messages();
}

TEST_CASE("an executable may be stopped while it is made, leaves nothing behind, and is made later") {
  TestDevice& device = test_device();
  const uint64_t before = device.device->allocations();
  RandomConstants constants(3);
  std::vector<std::byte> expected;
  {
    WeightStore weights(*device.pipelines, constants);
    Executable executable(weights, ten_slices());
    set_input(executable, 5);
    executable.run();
    expected = result_of(executable);
  }
  PipelineStore pipelines(*device.device);
  WeightStore weights(pipelines, constants);
  bool made = false;
  for (int most = 0; !made; ++most) {
    REQUIRE(most < 100'000);
    int asked = 0;
    try {
      Executable executable(weights, ten_slices(), nullptr, [&](double share) {
        CHECK(share >= 0);
        CHECK(share <= 1);
        return ++asked <= most;
      });
      made = true;
      set_input(executable, 5);
      executable.run();
      CHECK(result_of(executable) == expected);
    } catch (const Interrupted&) {
      CHECK(asked == most + 1);
      // Once a constant; then all of them are there, and stay.
      CHECK((weights.bytes() == 0) == (most < 10));
      CHECK((device.device->allocations() == before) == (most < 10));
    }
  }
  // Where all is there somebody is asked, too.
  CHECK_THROWS_AS(Executable(weights, ten_slices(), nullptr, [](double) { return false; }), Interrupted);
  // What the callback throws passes through.
  RandomConstants others(4);
  WeightStore more(pipelines, others);
  CHECK_THROWS_AS(
      Executable(more, ten_slices(), nullptr, [](double) -> bool { throw std::runtime_error("enough"); }),
      std::runtime_error);
  CHECK(more.bytes() == 0);
  require_no_validation_messages();
}

namespace {

std::atomic<int> whole_device_waits = 0;
VolkDeviceTable real;
VKAPI_ATTR VkResult VKAPI_CALL count_device_wait(VkDevice device) {
  ++whole_device_waits;
  return real.vkDeviceWaitIdle(device);
}
VKAPI_ATTR VkResult VKAPI_CALL count_queue_wait(VkQueue queue) {
  ++whole_device_waits;
  return real.vkQueueWaitIdle(queue);
}

class CountedWaits {
 public:
  explicit CountedWaits(VolkDeviceTable& table) : table_(table) {
    real = table;
    table.vkDeviceWaitIdle = &count_device_wait;
    table.vkQueueWaitIdle = &count_queue_wait;
    whole_device_waits = 0;
  }
  ~CountedWaits() { table_ = real; }
  CountedWaits(const CountedWaits&) = delete;
  CountedWaits& operator=(const CountedWaits&) = delete;

 private:
  VolkDeviceTable& table_;
};

// All that an owner of executables and states does.
void work(TestDevice& device, uint64_t seed, bool& right) {
  RandomConstants constants(seed);
  WeightStore weights(*device.pipelines, constants);
  StateStore states(*device.device);
  states.make("y", 19 * 48 * sizeof(float));
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {19, 48});
  graph->store(add(*graph, "sum", x, graph->constant("c", {19, 48})), {"y"});
  for (int round = 0; round < 3; ++round) {
    Executable executable(weights, make_plan(graph, device.device->capabilities()), &states);
    set_input(executable, seed);
    executable.run_sliced([](double) { return true; });
    std::vector<float> values(19 * 48);
    states.read("y", 0, std::as_writable_bytes(std::span(values)));
    const auto a = random_tensor({19, 48}, DType::f32, seed).values;
    const auto b = constants.tensor("c", {19, 48}, DType::f32).values;
    for (size_t i = 0; i < values.size(); ++i)
      right = right && values[i] == static_cast<float>(a[i]) + static_cast<float>(b[i]);
    executable.submit();  // still at work when it goes
  }
}

}  // namespace

TEST_CASE("threads share a device, and none waits for the work of another") {
  TestDevice& device = test_device();
  const CountedWaits counted(device.device->vk());
  constexpr int count = 3;
  std::array<bool, count> right;
  right.fill(true);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back(
        [&, i] { work(device, static_cast<uint64_t>(10 + i), right[static_cast<size_t>(i)]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const bool each : right) CHECK(each);
  CHECK(whole_device_waits == 0);
  require_no_validation_messages();
}

}  // namespace vitrine::test

// What a step of training takes, before any device is asked.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "model/vit/presets.h"
#include "runtime/graph/plan.h"
#include "runtime/util/error.h"
#include "runtime/vk/device_choice.h"
#include "tests/support/made_up/made_up_device.h"
#include "train/training_graph.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

Plan plan_of(const TrainConfig& config, bool recompute, const Capabilities& device) {
  return make_plan(make_step_graph(config, layout_of(config.model), {.recompute = recompute}), device);
}

TEST_CASE("a training step's memory is its largest live set, and computing again halves it") {
  TrainConfig config{.batch_size = 8};
  config.model = find_preset("vit_small_patch16_224").value();
  for (const Capabilities& device : {test::plain_gpu(), test::rich_gpu(), test::software_driver()}) {
    const Plan kept = plan_of(config, false, device), again = plan_of(config, true, device);
    for (const Plan* plan : {&kept, &again}) {
      CHECK(static_cast<double>(plan->arena_bytes()) <= 1.15 * static_cast<double>(plan->largest_live_set));
    }
    CHECK(2 * again.arena_bytes() <= kept.arena_bytes());
  }
}

TEST_CASE("what binds more buffers than the device takes is passed over, or refused by name") {
  TrainConfig config{.batch_size = 8};
  config.model = find_preset("vit_tiny_patch16_224").value();
  const auto plan = [&](const Capabilities& device, const StepGraphOptions& options) {
    return make_plan(make_step_graph(config, layout_of(config.model), options), device);
  };
  const auto gradient_kernel = [&](const Capabilities& device) {
    const Plan made = plan(device, {.update = false});
    const auto step = std::ranges::find_if(made.steps, [&](const Step& each) {
      return made.graph->nodes()[each.node].op->name == "attention_gradient";
    });
    REQUIRE(step != made.steps.end());
    return step->kernel;
  };
  Capabilities few = test::rich_gpu();
  CHECK(gradient_kernel(few) == "tiled");
  few.max_storage_buffers = required_storage_buffers;
  REQUIRE_FALSE(why_unusable(few));
  CHECK(gradient_kernel(few) != "tiled");
  // What is reached by address binds nothing: the step of Adam that CPUs like is left.
  CHECK_FALSE(plan(few, {}).steps.empty());
  Capabilities without_addresses = test::plain_gpu();
  CHECK_FALSE(plan(without_addresses, {}).steps.empty());
  // One more than inference needs is all that training without addresses takes: with a table of scores'
  // biases, too.
  without_addresses.max_storage_buffers = required_storage_buffers + 1;
  CHECK_FALSE(plan(without_addresses, {}).steps.empty());
  without_addresses.max_storage_buffers = required_storage_buffers;
  try {
    plan(without_addresses, {});
    FAIL("a plan was made");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("can't be run on this device") &&
                                 ContainsSubstring(" binds 9 buffers, the device takes 8"));
  }
  // Inference needs no more.
  CHECK_FALSE(
      make_plan(make_test_graph(config, layout_of(config.model), 8), without_addresses).steps.empty());
}

}  // namespace
}  // namespace vitrine

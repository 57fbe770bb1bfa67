// What a step of training takes, before any device is asked.
#include <catch2/catch_test_macros.hpp>

#include "model/presets.h"
#include "runtime/graph/plan.h"
#include "tests/support/made_up_device.h"
#include "train/training_graph.h"

namespace vitrine {
namespace {

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

}  // namespace
}  // namespace vitrine

// The self-test runs the code that trainings run: on devices that are made up, whatever a step, the sums of
// several and a test choose is certified when all self-tests of the device have passed.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <set>

#include "runtime/graph/fusion.h"
#include "tests/support/certified.h"
#include "tests/support/made_up_device.h"
#include "train/training_graph.h"

namespace vitrine {
namespace {

std::vector<TrainConfig> shipped() {
  std::vector<TrainConfig> configs;
  for (const auto& entry : std::filesystem::directory_iterator(VITRINE_TEST_DATA "/../configs")) {
    TrainConfig& config = configs.emplace_back(read_train_config(entry.path()));
    config.model.depth = 2;                                         // the blocks are alike
    config.batch_size = std::min<uint64_t>(config.batch_size, 16);  // what any device can bind
  }
  return configs;
}

}  // namespace

TEST_CASE("certificates: what a training chooses is what the self-test runs") {
  for (const Capabilities& device : test::devices_of_all_kinds()) {
    const KernelChoices known = test::all_self_tests_passed(device);
    std::set<std::string> missing;
    for (const TrainConfig& config : shipped()) {
      const ParameterLayout layout = layout_of(config.model);
      for (const auto& graph :
           {make_step_graph(config, layout, {}), make_step_graph(config, layout, {.recompute = true}),
            make_first_sum_graph(layout), make_add_sum_graph(layout), make_update_graph(config, layout),
            make_test_graph(config, layout, config.batch_size)}) {
        missing.merge(test::certified(*fuse(graph, all_fusions()).graph, device, known).missing);
      }
    }
    INFO(device.name);
    CHECK(missing == std::set<std::string>{});
  }
}

}  // namespace vitrine

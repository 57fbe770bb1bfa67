// The self-test runs the code that trainings run: on devices that are made up, whatever a step, the sums of
// several and a test choose is certified when all self-tests of the device have passed.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <set>

#include "runtime/graph/fusion.h"
#include "tests/support/made_up/certified.h"
#include "tests/support/made_up/made_up_device.h"
#include "train/training_graph.h"

namespace vitrine {
namespace {

std::vector<TrainConfig> shipped() {
  std::vector<TrainConfig> configs;
  for (const auto& entry : std::filesystem::directory_iterator(VITRINE_TEST_DATA "/../configs")) {
    TrainConfig& config = configs.emplace_back(read_train_config(entry.path()));
    config.model.depth = 2;  // the blocks are alike
    // What any device can bind of the largest.
    if (config.model.dim >= 768) config.batch_size = 16;
  }
  for (size_t i = 0, count = configs.size(); i < count; ++i) {
    configs.push_back(configs[i]);
    configs.back().precision = Precision::f16;
  }
  return configs;
}

// What the shipped ones have not: each thing that a configuration may switch on, in a small model.
std::vector<TrainConfig> others() {
  const TrainConfig digits = read_train_config(VITRINE_TEST_DATA "/../configs/digits.json");
  std::vector<TrainConfig> configs;
  const auto add = [&](const auto& change) {
    TrainConfig& config = configs.emplace_back(digits);
    config.model.depth = 2;
    change(config);
  };
  add([](TrainConfig& c) { c.model.dropout = c.model.attention_dropout = c.model.stochastic_depth = 0.1; });
  add([](TrainConfig& c) { c.model.distillation_token = c.model.distilled_head = true; });
  add([](TrainConfig& c) {
    c.model.pool = Pool::mean;
    c.model.class_token = false;
    c.model.registers = 0;
  });
  add([](TrainConfig& c) { c.model.registers = 4; });
  add([](TrainConfig& c) { c.optimizer = Optimizer::sgd; });
  add([](TrainConfig& c) {
    c.optimizer = Optimizer::sgd;
    c.momentum = 0;
    c.clip_norm = 0;
  });
  add([](TrainConfig& c) {
    c.optimizer = Optimizer::adam;
    c.accumulation = 2;
  });
  add([](TrainConfig& c) { c.precision = Precision::f16; });
  add([](TrainConfig& c) {
    c.layer_decay = 0.75;
    c.ema_decay = 0.999;
  });
  add([](TrainConfig& c) { c.train = "last:1"; });
  add([](TrainConfig& c) { c.train = "blocks.0.norm1.*,head.*"; });
  add([](TrainConfig& c) { c.train = "head"; });
  add([](TrainConfig& c) { c.batch_size = 37; });  // no number of rows is a multiple of anything
  return configs;
}

// What the steps of these configurations choose and have no certificate for.
std::set<std::string> missing_for(const std::vector<TrainConfig>& configs, const Capabilities& device,
                                  const KernelChoices& known) {
  std::set<std::string> missing;
  for (const TrainConfig& config : configs) {
    const ParameterLayout layout = layout_of(config);
    for (const auto& graph :
         {make_step_graph(config, layout, {}), make_step_graph(config, layout, {.recompute = true}),
          make_first_sum_graph(layout), make_add_sum_graph(layout), make_update_graph(config, layout),
          make_test_graph(config, layout, config.batch_size)}) {
      missing.merge(test::certified(*fuse(graph, all_fusions()).graph, device, known).missing);
    }
  }
  return missing;
}

}  // namespace

TEST_CASE("certificates: what a training chooses is what the self-test runs") {
  for (const Capabilities& device : test::devices_of_all_kinds()) {
    INFO(device.name);
    const KernelChoices known = test::all_self_tests_passed(device);
    CHECK(missing_for(shipped(), device, known) == std::set<std::string>{});
    std::set<std::string> missing = missing_for(others(), device, known);
    // That kernel is unrolled over keys, whose number follows from the tokens: no case can have all of them.
    std::erase_if(missing, [](const std::string& key) { return key.starts_with("attention=cpu_lanes: "); });
    CHECK(missing == std::set<std::string>{});
  }
}

}  // namespace vitrine

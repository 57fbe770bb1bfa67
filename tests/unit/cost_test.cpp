// The model of costs, and what it makes of devices that are not here.
#include "runtime/ops/cost.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <map>
#include <sstream>

#include "model/vit/presets.h"
#include "model/vit/vit_graph.h"
#include "runtime/graph/fusion.h"
#include "runtime/graph/kernel_choice.h"
#include "runtime/graph/plan.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/occupancy.h"
#include "runtime/ops/plan_cost.h"
#include "runtime/ops/products/matmul.h"
#include "tests/support/made_up/device_profiles.h"
#include "tests/support/made_up/made_up_device.h"

namespace vitrine {
namespace {

using Profiles = std::vector<std::pair<std::string, Capabilities>>;

Profiles all_profiles() {
  Profiles all = test::published_cards();
  const Profiles zoo = test::zoo_devices();
  all.insert(all.end(), zoo.begin(), zoo.end());
  return all;
}

// 64 x 64 tiles of a product with K = 768, about as the kernels state it.
Work some_work(double groups) {
  Work work;
  work.groups = groups;
  work.threads = 128;
  work.registers = 80;
  work.shared_bytes = 8192;
  work.multiply_adds = 64 * 64 * 768;
  work.instructions = work.multiply_adds / 8;
  work.shared_traffic = work.multiply_adds;
  work.moved = 2 * 64 * 768 * 4;
  work.rounds = 48;
  work.constant_bytes = 768 * 768 * 4;
  work.resident_bytes = groups * 64 * 64 * 4;
  return work;
}

std::shared_ptr<const Graph> block_of(const char* arch, uint64_t batch, DType dtype) {
  ViTConfig config = preset(arch);
  config.depth = 1;  // the blocks are alike
  return fuse(make_vit_graph(config, {.batch = batch, .dtype = dtype}), all_fusions()).graph;
}

constexpr const char* archs[] = {"vit_tiny_patch16_224", "vit_base_patch16_224", "vit_large_patch16_224"};
constexpr uint64_t batches[] = {1, 8, 32};

// The time of a node in one configuration of one of its kernels.
double seconds_of(const LowerContext& context, const Candidate& candidate) {
  double seconds = 0;
  for (const Dispatch& dispatch : lower_as(context, candidate).dispatches) {
    REQUIRE(dispatch.work.groups > 0);
    seconds += estimate(dispatch.work, context.device()).seconds;
  }
  return seconds;
}

}  // namespace

TEST_CASE("cost: more of anything is never slower") {
  for (const auto& [name, device] : all_profiles()) {
    INFO(name);
    for (const double groups : {1., 7., 48., 133., 1000., 20000.}) {
      CAPTURE(groups);
      const Work work = some_work(groups);
      const double seconds = estimate(work, device).seconds;
      const auto now = static_cast<uint32_t>(compute_units(device));
      for (uint32_t units = now; units <= 2 * now; ++units) {
        Capabilities more = device;
        more.multiprocessors = units;
        CHECK(estimate(work, more).seconds <= seconds);
      }
      const auto twice = [&](double PublishedRates::* rate) {
        Capabilities more = device;
        // What isn't published is guessed: the double of that.
        const DeviceRates rates = rates_of(device);
        if (more.published.*rate == 0 && rate == &PublishedRates::memory_gb_per_second)
          more.published.*rate = rates.memory_bytes * rates.hertz / 1e9;
        more.published.*rate *= 2;
        return estimate(work, more).seconds;
      };
      CHECK(twice(&PublishedRates::memory_gb_per_second) <= seconds);
      CHECK(twice(&PublishedRates::multiply_adds) <= seconds);
      CHECK(twice(&PublishedRates::shared_bytes) <= seconds);
      CHECK(twice(&PublishedRates::registers) <= seconds);
      CHECK(twice(&PublishedRates::shared_kib) <= seconds);
      CHECK(twice(&PublishedRates::cache_mib) <= seconds);
      CHECK(twice(&PublishedRates::cache_bytes) <= seconds);
      CHECK(estimate(some_work(groups + 1), device).seconds >= seconds);
      Work lighter = work;
      lighter.ahead = 1;
      CHECK(estimate(lighter, device).seconds <= seconds);
      lighter.ahead = 2;
      CHECK(estimate(lighter, device).seconds <= seconds);
      Work pausing = lighter;
      pausing.pause = 100;
      CHECK(estimate(pausing, device).seconds >= estimate(lighter, device).seconds);
    }
  }
}

TEST_CASE("cost: what takes longest is named") {
  Capabilities device = test::plain_gpu();
  device.multiprocessors = 10;
  device.published = {.clock_ghz = 1,
                      .memory_gb_per_second = 100,
                      .cache_mib = 1,
                      .multiply_adds = 64,
                      .matrix_multiply_adds = 512,
                      .shared_bytes = 128,
                      .schedulers = 4,
                      .shared_kib = 64,
                      .registers = 65536};
  const auto work = [](auto change) {
    Work some{.groups = 1000, .threads = 128, .registers = 64, .multiply_adds = 1e6};
    change(some);
    return some;
  };
  const auto nothing = [](Work&) {};
  // 100 workgroups a unit of 10^6 multiply-adds, 64 a cycle of 1 GHz, behind the launch.
  const Estimate plain = estimate(work(nothing), device);
  CHECK(plain.bound == Bound::arithmetic);
  CHECK(plain.seconds == 100 * 1e6 / 64 / 1e9 + rates_of(device).launch);
  CHECK(plain.resident == 8);   // 512 lanes of 64 registers fill 65536 twice over
  CHECK(plain.subgroups == 8);  // of each scheduler, with a fraction where another tile leaves one
  CHECK(estimate(work([](Work& w) { w.registers = 80; }), device).subgroups == 6.4);
  // Two a scheduler hide half of what four do, unless loads are ahead.
  const auto crowded = [&](double ahead) {
    const auto change = [&](Work& w) { w.registers = 256, w.rounds = 1, w.ahead = ahead; };
    return estimate(work(change), device).seconds - rates_of(device).launch;
  };
  CHECK(crowded(0) == 2 * crowded(1));
  const auto bound = [&](auto change) { return estimate(work(change), device).bound; };
  CHECK(bound([](Work& w) { w.matrix_multiply_adds = 1e7; }) == Bound::matrix_units);
  CHECK(bound([](Work& w) { w.instructions = 4e6; }) == Bound::instructions);
  CHECK(bound([](Work& w) { w.shared_traffic = 3e6; }) == Bound::shared_memory);
  CHECK(bound([](Work& w) { w.moved = 2e6; }) == Bound::cache);
  CHECK(bound([](Work& w) { w.constant_bytes = 1e9; }) == Bound::memory);
  CHECK(bound([](Work& w) { w.resident_bytes = 1e9; }) == Bound::memory);
  CHECK(bound([](Work& w) { w.resident_bytes = 1e6; }) == Bound::arithmetic);  // fits the cache
  CHECK(bound([](Work& w) { w.rounds = 1000; }) == Bound::waiting);
  CHECK(bound([](Work& w) { w.shared_bytes = 60 << 10, w.rounds = 1000, w.ahead = 1; }) ==
        Bound::waiting);  // alone
  CHECK(bound([](Work& w) { w.multiply_adds = 1, w.groups = 1; }) == Bound::launch);
  // One workgroup more than there are units takes another turn.
  const auto seconds = [&](double groups) {
    return estimate(work([&](Work& w) { w.groups = groups, w.shared_bytes = 60 << 10; }), device).seconds;
  };
  CHECK(seconds(11) == seconds(20));
  CHECK(seconds(11) > 1.9 * (seconds(10) - rates_of(device).launch));
}

TEST_CASE("cost: what a workgroup takes of a compute unit crowds out others, by what there is least of") {
  const auto resident = [](const Capabilities& device, double shared_bytes, double registers,
                           uint32_t threads = 256) {
    return estimate({.groups = 1, .threads = threads, .registers = registers, .shared_bytes = shared_bytes},
                    device)
        .resident;
  };
  Capabilities device = test::plain_gpu();
  device.published.shared_kib = 64;
  device.published.registers = 65536;
  device.unit_subgroups = 48;
  CHECK(resident(device, 0, 16) == 6);  // 48 subgroups
  CHECK(resident(device, 0, 64) == 4);
  CHECK(resident(device, 0, 128) == 2);
  CHECK(resident(device, 20 << 10, 64) == 3);
  CHECK(resident(device, 64 << 10, 64) == 1);
  CHECK(resident(device, 0, 1000) == 1);  // it runs, however many it takes
  // Registers that a subgroup has to itself crowd nobody, however many are used.
  const Capabilities arc = test::arc_gpu();
  CHECK(resident(arc, 0, 30, 64) == resident(arc, 0, 300, 64));
  CHECK(resident(arc, 64 << 10, 30, 64) == 2);
}

TEST_CASE("cost: a kernel's first configuration is the fastest that it has") {
  for (const auto& [name, device] : all_profiles()) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      if (dtype == DType::f16 && !device.supports(Need::storage16)) continue;
      const auto graph = block_of("vit_base_patch16_224", 8, dtype);
      for (const Node& node : graph->nodes()) {
        if (node.op != &op_matmul && node.op != &op_attention) continue;
        const LowerContext context(*graph, node, device);
        std::map<const KernelDef*, double> least;
        for (const Candidate& candidate : candidates_of(context)) {
          if (candidate.configuration.empty() || candidate.kernel->target == Target::cpu) continue;
          INFO(name << " " << node.name << " " << candidate.name());
          const auto [first, is_first] = least.try_emplace(candidate.kernel, seconds_of(context, candidate));
          if (!is_first) CHECK(seconds_of(context, candidate) >= first->second);
        }
      }
    }
  }
}

// Where one fills them it has to be slower by more than the model errs: smaller tiles read more.
TEST_CASE("cost: no choice leaves three quarters of the units idle where another one fills them") {
  size_t looked_at = 0;
  for (const auto& [name, device] : all_profiles()) {
    for (const char* arch : archs) {
      for (const DType dtype : {DType::f32, DType::f16}) {
        if (dtype == DType::f16 && !device.supports(Need::storage16)) continue;
        const auto graph = block_of(arch, 1, dtype);
        for (const Node& node : graph->nodes()) {
          if (node.op != &op_matmul && node.op != &op_attention) continue;
          const LowerContext context(*graph, node, device);
          const std::vector<Candidate> candidates = candidates_of(context);
          const auto used = [&](const Candidate& candidate) {
            return estimate(lower_as(context, candidate).dispatches[0].work, device).used_units;
          };
          if (candidates[0].configuration.empty() || used(candidates[0]) > 0.25) continue;
          // What takes less than the way to it can't gain.
          if (seconds_of(context, candidates[0]) < 2 * rates_of(device).launch) continue;
          ++looked_at;
          for (const Candidate& other : candidates) {
            if (other.kernel != candidates[0].kernel) continue;
            INFO(name << " " << arch << " " << node.name << ": " << candidates[0].name() << " and not "
                      << other.name());
            CHECK((used(other) < 1 || seconds_of(context, other) > 1.1 * seconds_of(context, candidates[0])));
          }
        }
      }
    }
  }
  CAPTURE(looked_at);
}

TEST_CASE("cost: small products get smaller tiles or slices on large cards") {
  for (const auto& [name, device] : test::published_cards()) {
    INFO(name);
    const auto groups_of = [&](uint32_t units) {
      Capabilities other = device;
      other.multiprocessors = units;
      const auto graph = block_of("vit_base_patch16_224", 1, DType::f32);
      double most = 0;
      for (const Node& node : graph->nodes()) {
        if (node.op != &op_matmul || node.name != "blocks.0.mlp.fc2") continue;
        const LowerContext context(*graph, node, other);
        most = std::max(most, lower_as(context, candidates_of(context)[0]).dispatches[0].work.groups);
      }
      return most;
    };
    CHECK(groups_of(200) > groups_of(8));
  }
}

// Who changes a kernel or the model reviews what is chosen then: the table is written beside the tests'
// program, to be copied over the one that is checked in.
TEST_CASE("cost: what is chosen for ViT-Ti, -B and -L is what the table says") {
  std::ostringstream table;
  table << "What products and attention choose where nothing is known of the device but its profile: kernel, "
           "tile, "
           "workgroups.\ntests/unit/cost_test.cpp compares and writes it.\n";
  for (const auto& [name, device] : all_profiles()) {
    table << "\n" << name << ": " << device.name << ", " << compute_units(device) << " units\n";
    for (const DType dtype : {DType::f32, DType::f16}) {
      if (dtype == DType::f16 && !device.supports(Need::storage16)) continue;
      for (const char* arch : archs) {
        for (const uint64_t batch : batches) {
          const Plan plan = make_plan(block_of(arch, batch, dtype), device);
          table << "  " << std::string(arch).substr(4, std::string(arch).find('_', 4) - 4) << " "
                << name_of(dtype) << " batch " << batch << ":";
          for (const Step& step : plan.steps) {
            const Node& node = plan.graph->nodes()[step.node];
            if (!node.name.starts_with("blocks.0.") || step.dispatch.work.groups == 0) continue;
            if (&step != &plan.steps.front() && (&step - 1)->node == step.node) continue;  // adds up slices
            table << "  " << node.name.substr(node.name.rfind('.') + 1) << " " << step.kernel << " "
                  << step.configuration << " x" << step.dispatch.work.groups;
          }
          table << "\n";
        }
      }
    }
  }
  std::ifstream file(VITRINE_TEST_DATA "/unit/choices.txt");
  std::stringstream expected;
  expected << file.rdbuf();
  if (table.str() != expected.str()) std::ofstream("choices.txt") << table.str();
  INFO("build/release/tests/choices.txt, or that of this build, is what was chosen now");
  CHECK(table.str() == expected.str());
}

}  // namespace vitrine

// Dispatches that are cut into parts give the bits that they give whole.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "model/vit/vit_graph.h"
#include "runtime/graph/executable.h"
#include "tests/support/constants.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

std::shared_ptr<const Graph> small_model() {
  const ViTConfig config{.image_height = 40,
                         .image_width = 40,
                         .patch_height = 8,
                         .patch_width = 8,
                         .dim = 48,
                         .depth = 2,
                         .heads = 3,
                         .classes = 10};
  return make_vit_graph(config.resolved(), {.batch = 3});
}

std::vector<std::byte> result_of(Executable& executable, uint32_t set) {
  const HostTensor image = random_tensor({3, 3, 40, 40}, DType::f32, 11 + set);
  const auto bytes = encode(image);
  std::memcpy(executable.input(0, set).data(), bytes.data(), bytes.size());
  executable.fill_memory(0x7fcd7fcd);
  executable.run(set);
  const auto out = executable.output(0, set);
  return {out.begin(), out.end()};
}

size_t cut_steps(const Plan& plan) {
  return static_cast<size_t>(
      std::ranges::count_if(plan.steps, [](const Step& step) { return !step.parts.empty(); }));
}

// With the budgets, and on a device that takes rows of so many workgroups at most.
void check_in_parts(const char* variants, uint32_t most_groups = 0) {
  INFO(variants << " rows of " << most_groups);
  TestDevice& device = test_device();
  const auto graph = small_model();
  Capabilities planned = device.device->capabilities();
  if (most_groups != 0) planned.max_workgroup_count[0] = most_groups;
  RandomConstants constants(3);
  WeightStore weights(*device.pipelines, constants);
  PlanOptions options;
  options.variants = parse_variants(variants);
  options.slice_seconds = 100;
  Executable whole(weights, make_plan(graph, planned, options));
  REQUIRE(whole.plan().slice_count == 1);
  REQUIRE(cut_steps(whole.plan()) == 0);
  std::vector<std::vector<std::byte>> expected;
  for (uint32_t set = 0; set < Executable::io_sets; ++set) expected.push_back(result_of(whole, set));
  REQUIRE(expected[0] != expected[1]);
  // Each workgroup alone, and parts of several: a tenth of what a step is thought to take here, on average.
  double all = 0;
  for (const Step& step : whole.plan().steps) all += step.seconds;
  const double tenth = all / static_cast<double>(whole.plan().steps.size()) / 10;
  for (const double seconds : {1e-9, tenth}) {
    INFO(seconds << " s");
    options.slice_seconds = seconds;
    Executable cut(weights, make_plan(graph, planned, options));
    CHECK(cut_steps(cut.plan()) > cut.plan().steps.size() / 2);
    CHECK(cut.plan().slice_count > cut.plan().steps.size());
    for (uint32_t set = 0; set < Executable::io_sets; ++set) CHECK(result_of(cut, set) == expected[set]);
  }
  require_no_validation_messages();
}

}  // namespace

TEST_CASE("dispatches in parts: the kernels that are chosen here") { check_in_parts(""); }

TEST_CASE("dispatches in parts: the kernels for GPUs") {
  check_in_parts("matmul=tiled,attention=tiled,layer_norm=simple,patch_embed=tiled");
}

TEST_CASE("dispatches in parts: workgroups in several rows") {
  // The tiled kernels number their workgroups over both axes.
  check_in_parts("matmul=tiled,attention=tiled,layer_norm=simple,patch_embed=tiled", 5);
}

TEST_CASE("dispatches in parts: what was measured cuts anew, and runs with the same bits") {
  skip_without_timestamps();
  TestDevice& device = test_device();
  RandomConstants constants(3);
  WeightStore weights(*device.pipelines, constants);
  const auto graph = small_model();
  std::vector<std::byte> expected;
  // By the estimates and the budget they are cut or not, and the other way round by the measured seconds and
  // the budget of then.
  for (const auto& [before, then] : {std::pair{100.0, 1e-7}, {1e-7, 100.0}}) {
    PlanOptions options;
    options.slice_seconds = before;
    Plan plan = make_plan(graph, device.device->capabilities(), options);
    plan.options.slice_seconds = then;
    Executable executable(weights, std::move(plan));
    CHECK((cut_steps(executable.plan()) > 0) == (before < 1));
    if (expected.empty()) expected = result_of(executable, 0);
    const Profile profile = executable.profile();
    REQUIRE(profile.step_seconds.size() == executable.plan().steps.size());
    CHECK(std::ranges::all_of(profile.step_seconds, [](double seconds) { return seconds > 0; }));
    CHECK((cut_steps(executable.plan()) > 0) == (then < 1));
    CHECK(result_of(executable, 0) == expected);
    CHECK(executable.device_seconds() > 0);
    CHECK(executable.run_sliced([](double) { return true; }));
    CHECK(std::ranges::equal(executable.output(0), expected));
  }
  require_no_validation_messages();
}

}  // namespace vitrine::test

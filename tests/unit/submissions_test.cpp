// How a plan's dispatches are shared out over submissions, and which of them may be cut.
#include "runtime/graph/submissions.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "runtime/graph/plan.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/vk/group_reads.h"
#include "tests/support/made_up/made_up_device.h"
#include "tests/support/spirv_builder.h"

namespace vitrine {
namespace {

using Groups = std::array<uint32_t, 3>;
constexpr std::array<bool, 3> any_axis{true, true, true}, no_axis{false, false, false};

// Each workgroup is in one of the ranges.
bool cover(const std::vector<GroupRange>& ranges, const Groups& groups) {
  std::set<Groups> seen;
  for (const GroupRange& range : ranges) {
    for (uint32_t z = 0; z < range.groups[2]; ++z) {
      for (uint32_t y = 0; y < range.groups[1]; ++y) {
        for (uint32_t x = 0; x < range.groups[0]; ++x) {
          const Groups at{range.first[0] + x, range.first[1] + y, range.first[2] + z};
          if (at[0] >= groups[0] || at[1] >= groups[1] || at[2] >= groups[2]) return false;
          if (!seen.insert(at).second) return false;
        }
      }
    }
  }
  return seen.size() == size_t{groups[0]} * groups[1] * groups[2];
}

uint64_t largest(const std::vector<GroupRange>& ranges) {
  uint64_t most = 0;
  for (const GroupRange& range : ranges) most = std::max(most, range.count());
  return most;
}

}  // namespace

TEST_CASE("submissions: workgroups are cut into ranges of at most so many, each group once") {
  for (const Groups& groups : {Groups{1, 1, 1}, {2, 1, 1}, {17, 1, 1}, {7, 5, 3}, {3, 96, 1}, {1, 1, 13}}) {
    for (const uint64_t most : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{10},
                                uint64_t{100}, uint64_t{1000}, UINT64_MAX}) {
      INFO(groups[0] << "x" << groups[1] << "x" << groups[2] << " by " << most);
      const std::vector<GroupRange> ranges = cut_groups(groups, any_axis, most);
      CHECK(cover(ranges, groups));
      CHECK(largest(ranges) <= std::max<uint64_t>(1, most));
    }
  }
  // No more than it takes, and even: 17 groups by 6 are 5, 6 and 6.
  const std::vector<GroupRange> odd = cut_groups({17, 1, 1}, any_axis, 6);
  REQUIRE(odd.size() == 3);
  CHECK(odd[0] == GroupRange{{0, 0, 0}, {5, 1, 1}});
  CHECK(odd[2] == GroupRange{{11, 0, 0}, {6, 1, 1}});
}

TEST_CASE("submissions: an axis that may not be cut stays whole") {
  const Groups groups{9, 4, 2};
  CHECK(cut_groups(groups, no_axis, 1) == std::vector{GroupRange{{}, groups}});
  for (size_t axis = 0; axis < 3; ++axis) {
    std::array<bool, 3> only = no_axis;
    only[axis] = true;
    const std::vector<GroupRange> ranges = cut_groups(groups, only, 1);
    CHECK(cover(ranges, groups));
    CHECK(ranges.size() == groups[axis]);
  }
}

TEST_CASE("submissions: a shader may be cut along the axes whose number of workgroups it doesn't read") {
  const auto axes = [](const char* shader, const char* variant, const Groups& groups) {
    return cuttable_axes(find_shader(shader, variant).words, groups);
  };
  // gl_WorkGroupID alone.
  CHECK(axes("attention_rollout", "f32", {4, 3, 1}) == any_axis);
  // linear_group(): the length of a row must stay, unless there is one row only.
  for (const auto& [shader, variant] : {std::pair{"matmul_tiled", "f32"},
                                        {"matmul_few_rows", "f16"},
                                        {"attention_tiled", "f32"},
                                        {"layer_norm", "f32"},
                                        {"unary", "f32"}}) {
    INFO(shader);
    CHECK(axes(shader, variant, {4, 1, 1}) == any_axis);
    CHECK(axes(shader, variant, {4, 2, 1}) == std::array{false, true, true});
  }
  // Strides of as many invocations as there are.
  CHECK(axes("matmul_cpu_direct_rows", "f32", {4, 1, 1}) == std::array{false, true, true});
  // The last one does something else.
  CHECK(axes("matmul_cpu_direct_columns", "f32", {4, 4, 4}) == std::array{true, true, false});
  CHECK(axes("heat", "f32", {4, 3, 1}) == std::array{false, true, true});
}

TEST_CASE("submissions: a module that isn't understood is cut nowhere") {
  const std::vector<uint32_t> none;
  CHECK(cuttable_axes(none, {4, 1, 1}) == no_axis);
  // The whole vector of the numbers of workgroups goes into a call.
  test::SpirvBuilder module;
  module.op(test::spirv::OpDecorate, {7, test::spirv::BuiltIn, 24}).op(54, {1, 2, 0, 3});
  CHECK(cuttable_axes(module.words(), {4, 1, 1}) == any_axis);
  module.op(61, {5, 8, 7}).op(57, {1, 9, 2, 8});
  CHECK(cuttable_axes(module.words(), {4, 1, 1}) == no_axis);
}

namespace {

Plan two_products(double slice_seconds, const Capabilities& device) {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {1000, 192});
  const ValueId up = graph->constant("up", {768, 192}), again = graph->constant("again", {768, 768});
  const ValueId hidden = matmul(*graph, "first", x, up);
  graph->output(activate(*graph, "tanh", matmul(*graph, "second", hidden, again), Activation::tanh), "y");
  return make_plan(graph, device, {.fusions = {}, .layouts = false, .slice_seconds = slice_seconds});
}

}  // namespace

TEST_CASE("submissions: a step that takes longer than one may is cut into parts, each a slice") {
  const Capabilities device = test::plain_gpu();
  const Plan whole = two_products(10, device);
  CHECK(whole.slice_count == 1);
  for (const Step& step : whole.steps) CHECK(step.parts.empty());
  const double longest = std::ranges::max(whole.steps, {}, &Step::seconds).seconds;
  const Plan cut = two_products(longest / 2.5, device);
  REQUIRE(cut.steps.size() == whole.steps.size());
  size_t cut_steps = 0;
  uint32_t slice = 0;
  for (const Step& step : cut.steps) {
    CHECK(step.slice >= slice);
    CHECK(step.slice <= slice + 1);
    slice = step.slice;
    if (step.parts.empty()) continue;
    ++cut_steps;
    slice += to_u32(step.parts.size()) - 1;
    CHECK(cover(step.parts, step.dispatch.groups));
  }
  CHECK(cut_steps > 0);
  CHECK(cut.slice_count == slice + 1);
  const std::vector<double> seconds = seconds_of_slices(cut);
  CHECK(std::ranges::max(seconds) <= longest / 2.5 * 1.001);
  const double all = std::accumulate(whole.steps.begin(), whole.steps.end(), 0.0,
                                     [](double sum, const Step& step) { return sum + step.seconds; });
  CHECK(std::abs(std::accumulate(seconds.begin(), seconds.end(), 0.0) - all) < 1e-9);
  CHECK(overlong_steps(cut).empty());
}

TEST_CASE("submissions: a large model's product on a slow GPU stays below the watchdogs") {
  // fc1 of ViT-B/16 for 256 images, on an integrated GPU: by itself more than a second.
  Capabilities device = test::plain_gpu();
  device.type = DeviceType::integrated;
  device.max_storage_range = uint64_t{1} << 31;
  auto graph = std::make_shared<Graph>();
  graph->output(matmul(*graph, "fc1", graph->input("x", {256 * 197, 768}), graph->constant("w", {3072, 768})),
                "y");
  const Plan plan = make_plan(graph, device);
  REQUIRE(plan.steps.size() == 1);
  CHECK(plan.steps[0].seconds > 1);
  CHECK(plan.slice_count == plan.steps[0].parts.size());
  CHECK(std::ranges::max(seconds_of_slices(plan)) <= plan.options.slice_seconds);
  CHECK(overlong_steps(plan).empty());
}

TEST_CASE("submissions: what can't be cut any further is told by name") {
  // The packing of rows strides over all of them.
  Capabilities device = test::software_driver();
  const Plan plan = two_products(1e-9, device);
  const std::vector<std::string> sentences = overlong_steps(plan);
  CHECK(std::ranges::any_of(sentences, [](const std::string& sentence) {
    return sentence.starts_with("'second' (matmul_cpu_direct_rows, the longest of 2) takes about ") &&
           sentence.find("can't be cut") != std::string::npos;
  }));
  // A budget of less than a workgroup: each is alone, and that is as far as it goes.
  for (const Step& step : plan.steps) {
    for (const GroupRange& part : step.parts) CHECK(part.count() == 1);
  }
  CHECK(overlong_steps(two_products(10, device)).empty());

  // Nothing ends what takes long on a CPU, so nobody is told there.
  std::vector<std::string> told;
  PlanOptions options{.variants = parse_variants("matmul=cpu_direct"),
                      .fusions = {},
                      .layouts = false,
                      .slice_seconds = 1e-9,
                      .warn = [&](const std::string& text) { told.push_back(text); }};
  make_plan(plan.graph, device, options);
  CHECK(told.empty());
  device.type = DeviceType::integrated;
  const Plan elsewhere = make_plan(plan.graph, device, options);
  CHECK_FALSE(told.empty());
  CHECK(told == overlong_steps(elsewhere));
}

}  // namespace vitrine

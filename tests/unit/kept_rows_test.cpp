// How rows are shared out that subgroups keep in registers: decided from capabilities alone.
#include "runtime/ops/norms/kept_rows.h"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "runtime/graph/kernel_choice.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/norms/softmax.h"
#include "runtime/ops/occupancy.h"
#include "tests/support/made_up/made_up_device.h"

namespace vitrine {
namespace {

Capabilities with_subgroups(uint32_t least, uint32_t most) {
  Capabilities device = test::rich_gpu();
  device.subgroup_size = most;
  device.min_subgroup_size = least;
  device.max_subgroup_size = most;
  return device;
}

// The vec4s that a lane of the dispatch holds of each tensor.
uint64_t fours_of(const Dispatch& dispatch) {
  const uint64_t width = dispatch.constant("width"), row_lanes = dispatch.constant("row_lanes");
  const uint64_t piece = dispatch.constant("by_eights") ? 8 : 4;
  return ceil_div(ceil_div(width, piece), row_lanes) * piece / 4;
}

TEST_CASE("kept rows keep to every device's subgroups, workgroups and registers") {
  std::vector<Capabilities> devices = test::devices_of_all_kinds();
  for (const uint32_t lanes : {1u, 4u, 16u, 64u, 128u}) devices.push_back(with_subgroups(lanes, lanes));
  for (const Capabilities& device : devices) {
    for (uint64_t width = 1; width < 5000; width = width < 20 ? width + 1 : width * 11 / 8) {
      for (const bool halves : {false, true}) {
        for (const uint32_t tensors : {1u, 2u, 4u}) {
          const RowKeeping keeping{width, halves, tensors};
          const auto rows = kept_rows(device, keeping);
          INFO(device.name << ", subgroups of " << device.max_subgroup_size << ", width " << width);
          if (!rows) {
            // What 128 lanes of up to 32 values can't hold, or those of one.
            CHECK(width > 32);
            continue;
          }
          CHECK(std::has_single_bit(rows->lanes));
          CHECK((rows->lanes >= device.min_subgroup_size && rows->lanes <= device.max_subgroup_size));
          CHECK((rows->subgroups == 1 || rows->rows == 1));
          CHECK(rows->local_size() <= device.max_workgroup_invocations);
          if (device.max_workgroup_subgroups != 0)
            CHECK(rows->subgroups * rows->rows <= device.max_workgroup_subgroups);

          const Dispatch dispatch = keep_rows(device, "softmax_subgroups", "f32", keeping, 37);
          const uint64_t fours = fours_of(dispatch), each = dispatch.constant("by_eights") ? 2 : 1;
          CHECK(fours * 4 * rows->row_lanes() >= width);
          CHECK((fours <= each ||
                 static_cast<double>(4 * fours * tensors) <= register_budget(device, rows->lanes)));
          CHECK(dispatch.groups[0] * rows->rows >= 37);
          CHECK(dispatch.subgroup_size == rows->lanes);
          CHECK(dispatch.constant("by_fours") == (width % 4 == 0));
          CHECK(dispatch.constant("by_eights") == (halves && width % 8 == 0));
          CHECK(dispatch.constant("shares_rows") == (rows->subgroups > 1));
        }
      }
    }
  }
}

TEST_CASE(
    "a row has one subgroup where its registers hold it, of the size that leaves the fewest lanes idle") {
  const auto rows_of = [](const Capabilities& device, uint64_t width, uint32_t tensors = 3) {
    return kept_rows(device, {.width = width, .tensors = tensors}).value();
  };
  const Capabilities fixed = with_subgroups(32, 32), rdna = with_subgroups(32, 64);
  CHECK(rows_of(fixed, 768).local_size() == 64);
  CHECK(rows_of(fixed, 768).rows == 2);
  CHECK(rows_of(fixed, 1024).subgroups == 1);
  CHECK(rows_of(fixed, 1025).subgroups == 2);
  CHECK(rows_of(rdna, 768).lanes == 64);
  CHECK(rows_of(rdna, 64).lanes == 32);
  CHECK(rows_of(with_subgroups(64, 128), 768).lanes == 64);
  // Where lanes share registers, narrower subgroups hold as much with less idle.
  CHECK(rows_of(test::arc_gpu(), 192).subgroups == 1);
  CHECK(rows_of(test::arc_gpu(), 768).lanes < 32);
}

TEST_CASE("rows are kept where a device has subgroup arithmetic and isn't a CPU") {
  const auto chosen = [](const Capabilities& device, uint64_t width) {
    Graph graph;
    softmax(graph, "y", graph.input("x", {5, width}));
    return std::string(choose_kernel(graph, LowerContext(graph, graph.nodes()[0], device), "", nullptr)
                           .candidate.kernel->name);
  };
  CHECK(chosen(test::rich_gpu(), 197) == "subgroups");
  CHECK(chosen(test::arc_gpu(), 1000) == "subgroups");
  CHECK(chosen(test::plain_gpu(), 197) == "simple");
  CHECK(chosen(test::software_driver(), 197) == "simple");
  CHECK(chosen(test::software_driver(), 1000) == "cpu_lanes");
  CHECK(chosen(test::rich_gpu(), 70000) == "simple");

  Graph graph;
  softmax(graph, "y", graph.input("x", {5, 70000}));
  const LowerContext context(graph, graph.nodes()[0], test::rich_gpu());
  const KernelDef& kernel = *candidate_named(op_softmax, "subgroups").kernel;
  CHECK_THAT(kernel.refuses(context).value_or(""), Catch::Matchers::ContainsSubstring("70000 elements"));
  const LowerContext without(graph, graph.nodes()[0], test::plain_gpu());
  CHECK_THAT(kernel.refuses(without).value_or(""), Catch::Matchers::ContainsSubstring("subgroup_arithmetic"));
}

}  // namespace
}  // namespace vitrine

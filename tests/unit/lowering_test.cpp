#include "runtime/ops/lowering.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/graph/kernel_choice.h"
#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/elementwise/unary.h"
#include "tests/support/made_up/made_up_device.h"

namespace vitrine {
namespace {

Capabilities small_device() {
  Capabilities device;
  device.type = DeviceType::integrated;
  device.max_workgroup_count = {65535, 65535, 65535};
  device.max_workgroup_size = {128, 128, 64};
  device.max_workgroup_invocations = 128;
  device.subgroup_size = 32;
  return device;
}

TEST_CASE("workgroup_size keeps to both limits and to powers of two") {
  Capabilities device = small_device();
  CHECK(workgroup_size(device, 256) == 128);
  CHECK(workgroup_size(device, 100) == 64);
  device.max_workgroup_size[0] = 1000;
  device.max_workgroup_invocations = 1000;
  CHECK(workgroup_size(device, 1024) == 512);
}

TEST_CASE("row_workgroup_size follows the width on a GPU and is one subgroup on a CPU") {
  Capabilities device = small_device();
  CHECK(row_workgroup_size(device, 1) == 32);
  CHECK(row_workgroup_size(device, 197) == 64);
  CHECK(row_workgroup_size(device, 768) == 128);
  device.type = DeviceType::cpu;
  device.subgroup_size = 8;
  CHECK(row_workgroup_size(device, 768) == 8);
  device.subgroup_size = 1;
  CHECK(row_workgroup_size(device, 768) == 4);
}

TEST_CASE("spread_groups covers every count within the device's limit") {
  const Capabilities device = small_device();
  CHECK(spread_groups(device, 1) == std::array<uint32_t, 3>{1, 1, 1});
  CHECK(spread_groups(device, 65535) == std::array<uint32_t, 3>{65535, 1, 1});
  CHECK(spread_groups(device, 65536) == std::array<uint32_t, 3>{32768, 2, 1});
  for (const uint64_t count : {65537ull, 131071ull, 1000003ull, 16777259ull}) {
    const auto groups = spread_groups(device, count);
    CHECK(groups[0] <= 65535);
    CHECK(groups[1] <= 65535);
    CHECK(uint64_t{groups[0]} * groups[1] >= count);
    CHECK(uint64_t{groups[0]} * groups[1] < count + groups[1]);
  }
}

TEST_CASE("a dispatch's constants go by their names, whatever their order") {
  // shaders/elementwise/gated_product.comp: the workgroup's size is constant 0, activation 1, width 2.
  Dispatch dispatch;
  dispatch.shader = &find_shader("gated_product", "f32");
  dispatch.constants = {{"width", 67}, {"local_size", 64}};
  dispatch.add_constants({{"activation", 3}});
  CHECK(constants_by_id(dispatch) == std::vector<uint32_t>{64, 3, 67});
  dispatch.constant("width") = 68;
  CHECK(constants_by_id(dispatch) == std::vector<uint32_t>{64, 3, 68});
  CHECK_THROWS_WITH(dispatch.constant("height"),
                    "a dispatch of shader 'gated_product' is given no constant 'height'");
  SECTION("one that the shader doesn't have") {
    dispatch.add_constants({{"height", 1}});
    CHECK_THROWS_WITH(constants_by_id(dispatch),
                      "shader 'gated_product' (f32) has no specialization constant 'height'");
  }
  SECTION("one that is missing") {
    dispatch.constants.pop_back();
    CHECK_THROWS_WITH(constants_by_id(dispatch),
                      "shader 'gated_product' (f32) is not given its specialization constant 'activation'");
  }
  SECTION("one that is given twice") {
    dispatch.add_constants({{"width", 68}});
    CHECK_THROWS_WITH(constants_by_id(dispatch),
                      "shader 'gated_product' (f32) is given twice its specialization constant 'width'");
  }
}

TEST_CASE("storage_variant names both dtypes where they differ") {
  CHECK(storage_variant(DType::f32, DType::f32) == "f32");
  CHECK(storage_variant(DType::f32, DType::f16) == "f32_f16");
}

struct Chosen {
  std::string kernel;
  Dispatch dispatch;
};
Chosen chosen(const Graph& graph, const Capabilities& device) {
  const LowerContext context(graph, graph.nodes().front(), device);
  const Candidate candidate = choose_kernel(graph, context, "", nullptr).candidate;
  return {std::string(candidate.kernel->name), lower_as(context, candidate).dispatches.front()};
}

TEST_CASE("GPUs move 16 bytes an invocation through whole tensors, whatever their size") {
  for (const auto& [dtype, count, groups] : {std::tuple{DType::f32, 1024ull, 1u},
                                             {DType::f32, 1025ull, 2u},
                                             {DType::f16, 2048ull, 1u},
                                             {DType::f16, 2049ull, 2u}}) {
    Graph graph;
    scale(graph, "y", graph.input("x", {count}, dtype), 2);
    const auto [kernel, dispatch] = chosen(graph, test::rich_gpu());
    CHECK(kernel == "wide");
    CHECK(dispatch.constant("local_size") == 256);
    CHECK(dispatch.groups == std::array<uint32_t, 3>{groups, 1, 1});
    CHECK(dispatch.constant("whole_runs") == (count % 1024 == 0));
    CHECK(chosen(graph, test::software_driver()).kernel == (count % 4 == 0 ? "cpu_quads" : "simple"));
  }
  Graph conversion;  // 16 bytes of the wider side
  convert(conversion, "y", conversion.input("x", {2048}), DType::f16);
  CHECK(chosen(conversion, test::rich_gpu()).dispatch.groups[0] == 2);
  CHECK(chosen(conversion, test::software_driver()).kernel == "simple");
}

TEST_CASE("what repeats is moved by fours where it is made of these") {
  for (const auto& [width, kernel] : {std::pair{197ull, "simple"}, {196ull, "wide"}}) {
    Graph graph;
    add(graph, "y", graph.input("a", {5, width}), graph.input("b", {width}));
    CHECK(chosen(graph, test::rich_gpu()).kernel == kernel);
  }
}

TEST_CASE("attention_steps leaves few tokens over and keeps to what compiles") {
  using Steps = std::vector<uint32_t>;
  CHECK(attention_steps(197, 64, 896, 8, false) == Steps{14, 8, 4, 2});
  CHECK(attention_steps(197, 64, 896, 8, true) == Steps{12, 8, 4, 2});
  CHECK(attention_steps(197, 64, 256, 8, false) == Steps{8, 4, 2});
  CHECK(attention_steps(50, 4, 256, 8, false) == Steps{50, 8, 4, 2});
  CHECK(attention_steps(50, 4, 256, 8, true) == Steps{48, 8, 4, 2});
  CHECK(attention_steps(5, 64, 256, 8, false) == Steps{5, 8, 4, 2});
  CHECK(attention_steps(1, 8, 256, 8, false) == Steps{8, 4, 2});
  CHECK(attention_steps(197, 128, 896, 8, false) == Steps{4, 2});
  CHECK(attention_steps(197, 256, 896, 8, false) == Steps{2});
  CHECK(attention_steps(197, 64, 160, 2, false) == Steps{2, 8, 4});
  CHECK(attention_steps(50, 4, 160, 2, true) == Steps{24, 8, 4, 2});
}

}  // namespace
}  // namespace vitrine

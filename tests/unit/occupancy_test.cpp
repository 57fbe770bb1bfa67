// What the choice of tiles asks of a device, and what comes of it where registers are few.
#include "runtime/ops/occupancy.h"

#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <optional>

#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/ops/products/matrix_units/matrix_units.h"
#include "runtime/vk/facts/hardware.h"
#include "tests/support/made_up/device_profiles.h"
#include "tests/support/made_up/made_up_device.h"

namespace vitrine {
namespace {

Capabilities of_vendor(uint32_t vendor) {
  Capabilities device = test::plain_gpu();
  device.vendor_id = vendor;
  add_hardware_facts(device);
  return device;
}

Graph product(uint64_t m, uint64_t n, uint64_t k, DType dtype) {
  Graph graph;
  matmul(graph, "y", graph.input("x", {m, k}, dtype), graph.constant("w", {n, k}, dtype));
  return graph;
}

}  // namespace

TEST_CASE("occupancy: registers are those of the vendor, or of the kind of device") {
  CHECK(registers_of_lane(of_vendor(0x1002)) == 256);
  CHECK(registers_of_lane(of_vendor(0x1002), 64) == 256);
  CHECK(registers_of_lane(of_vendor(0x106b)) == 128);
  CHECK(registers_of_lane(of_vendor(0x13b5)) == 64);
  Capabilities unknown = of_vendor(0);
  CHECK(registers_of_lane(unknown) == 256);
  unknown.type = DeviceType::integrated;
  CHECK(registers_of_lane(unknown) == 128);
}

TEST_CASE("occupancy: where a subgroup's lanes share registers, fewer lanes have more each") {
  const Capabilities arc = test::arc_gpu(), xe2 = test::xe2_gpu();
  CHECK(registers_of_lane(arc, 8) == 128);
  CHECK(registers_of_lane(arc, 16) == 64);
  CHECK(registers_of_lane(arc, 32) == 32);
  CHECK(registers_of_lane(xe2, 16) == 128);
  // The driver's own choice is the size that spills last.
  CHECK(registers_of_lane(arc) == 128);
  CHECK(registers_of_lane(xe2) == 128);
  CHECK(register_budget(arc, 8) < 128);
  CHECK(register_budget(arc, 8) > 64);
  CHECK(register_budget(arc, 16) == register_budget(arc, 8) / 2);
}

TEST_CASE("occupancy: shapes beyond the budget are left out, but for the least when all are") {
  const auto itself = [](int registers) { return registers; };
  CHECK(within_registers(std::vector{40, 10, 30, 20}, 30, itself) == std::vector{10, 30, 20});
  CHECK(within_registers(std::vector{40, 10, 30}, 5, itself) == std::vector{10});
  CHECK(within_registers(std::vector<int>{}, 5, itself).empty());
}

TEST_CASE("occupancy: compute units are the driver's, or guessed by the kind of device") {
  Capabilities device = test::plain_gpu();
  const double guessed = compute_units(device);
  device.multiprocessors = 10;
  CHECK(compute_units(device) == 10);
  CHECK(guessed > 10);
  device.multiprocessors = 0;
  device.type = DeviceType::integrated;
  CHECK(compute_units(device) < guessed);
  device.type = DeviceType::cpu;
  CHECK(compute_units(device) == 4);
}

TEST_CASE("occupancy: products take larger tiles and fewer slices where the units are known to be few") {
  // 72 tiles of 128 x 128 leave 96 units idle, and fill 8 of them.
  REQUIRE(tiled_shapes()[0].tile_m == 128);
  REQUIRE(tiled_shapes()[0].tile_n == 128);
  const auto slices = [&](uint32_t units) {
    Capabilities device = test::plain_gpu();
    device.multiprocessors = units;
    return best_slices(tiled_shapes()[0].worth(), {12 * 128, 6 * 128, 3072}, device);
  };
  CHECK(slices(8) == 1);
  CHECK(slices(96) > 1);
}

TEST_CASE("occupancy: tiles keep to the registers that there are") {
  const Graph graph = product(64 * 197, 3072, 768, DType::f32);
  for (const Capabilities& device :
       {test::plain_gpu(), test::arc_gpu(), test::xe2_gpu(), of_vendor(0x13b5)}) {
    CAPTURE(device.name, device.vendor_id);
    const LowerContext context(graph, graph.nodes()[0], device);
    const Dispatch dispatch = lower_tiled(context).dispatches[0];
    const uint32_t sums = dispatch.constant("thread_m") * dispatch.constant("thread_n");
    // 8 x 8 sums where there are 256 registers, half where there are 128; of 64 the least there is.
    const double lane = registers_of_lane(device);
    CHECK(sums == (lane == 256 ? 64 : lane == 128 ? 32 : 16));
  }
}

TEST_CASE("occupancy: matrix units store f32 straight from the sums, and f16 never") {
  const auto stores_directly = [](DType out) {
    Graph graph;
    const ValueId x = graph.input("x", {64 * 197, 768}, DType::f16);
    const ValueId weight = graph.constant("weight", {3072, 768}, DType::f16);
    matmul(graph, "product", x, weight, {.out = out});
    const LowerContext context(graph, graph.nodes()[0], test::xe2_gpu());
    return lower_coopmat(context).dispatches[0].constant("store_directly") == 1;
  };
  CHECK(stores_directly(DType::f32));
  CHECK_FALSE(stores_directly(DType::f16));
}

TEST_CASE("occupancy: NVIDIA's caches are read by whole lines of a row, in one buffer") {
  for (const auto& [name, device] : test::zoo_devices()) {
    CAPTURE(name);
    const std::vector<CoopmatShape> shapes = coopmat_shapes(device);
    const auto in_one_buffer = std::ranges::count(shapes, 1u, &CoopmatShape::buffers);
    const auto rolled = std::ranges::count(shapes, true, &CoopmatShape::rolled);
    const bool nvidia = device.vendor_id == 0x10de;
    CHECK((nvidia ? in_one_buffer == std::ssize(shapes)
                  : shapes.empty() || in_one_buffer < std::ssize(shapes)));
    CHECK(rolled == (nvidia ? std::ssize(shapes) : 0));
  }
}

TEST_CASE(
    "occupancy: matrix units are asked for at their own number of lanes, and sums take half the registers") {
  for (const Capabilities& device : {test::arc_gpu(), test::xe2_gpu()}) {
    CAPTURE(device.min_subgroup_size);
    CHECK(matrix_subgroup_sizes(device) == std::vector{device.min_subgroup_size, 32u});
    const std::vector<CoopmatShape> shapes = coopmat_shapes(device);
    REQUIRE_FALSE(shapes.empty());
    uint32_t largest = 0;
    for (const CoopmatShape& shape : shapes) {
      const uint32_t sums =
          shape.matrices_m * shape.matrices_n * shape.matrix.m * shape.matrix.n / shape.subgroup_size;
      CHECK(sums <= registers_of_lane(device, shape.subgroup_size) / 2);
      largest = std::max(largest, shape.tile_m() * shape.tile_n());
    }
    // Many subgroups with little each still make a large tile.
    CHECK(largest == 128 * 128);
    const Graph graph = product(64 * 197, 3072, 768, DType::f16);
    const LowerContext context(graph, graph.nodes()[0], device);
    if (context.missing("matmul_coopmat", "f16")) continue;  // this glslang could not compile it
    CHECK(lower_coopmat(context).dispatches[0].subgroup_size == device.min_subgroup_size);
    for (const uint64_t width : {4u, 48u, 64u}) {
      for (const AttentionCoopmatShape& shape : attention_coopmat_shapes({.batch = 8,
                                                                          .queries = 197,
                                                                          .keys = 197,
                                                                          .heads = 12,
                                                                          .key_width = width,
                                                                          .value_width = width},
                                                                         device)) {
        const uint64_t values = round_up(width, shape.matrix.n);
        CHECK(shape.rows() * (shape.block_k + values) / shape.subgroup_size <=
              register_budget(device, shape.subgroup_size));
      }
    }
  }
}

TEST_CASE("occupancy: RDNA 4 is known by its matrices of 8-bit floats, and RDNA 3 repeats operands") {
  constexpr uint32_t amd = 0x1002;
  Capabilities device = test::rich_gpu();
  device.min_subgroup_size = 32;
  device.vendor_id = amd;
  device.cooperative_shapes = {{16, 16, 16, "f16", "f16", "f32", "f32"}};
  Capabilities newer = device;
  newer.cooperative_shapes.push_back({16, 16, 16, "e4m3", "e4m3", "f32", "f32"});
  Capabilities older = device;
  older.cooperative_shapes.clear();
  add_hardware_facts(device);
  add_hardware_facts(newer);
  add_hardware_facts(older);
  CHECK(device.matrix_operand_lanes == 16);
  CHECK(older.matrix_operand_lanes == 0);  // RDNA 2 has no operands to repeat
  CHECK(newer.matrix_operand_lanes == 0);
  CHECK(newer.published.matrix_multiply_adds == 2 * device.published.matrix_multiply_adds);
}

TEST_CASE("occupancy: how matrices lie in lanes is known of the drivers whose sources say it") {
  Capabilities device = test::rich_gpu();
  device.cooperative_shapes = {{16, 16, 16, "f16", "f16", "f32", "f32"}};
  const auto sums = [](Capabilities of) {
    add_hardware_facts(of);
    return of.matrix_sums;
  };
  for (const VkDriverId driver : {VK_DRIVER_ID_AMD_PROPRIETARY, VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA,
                                  VK_DRIVER_ID_NVIDIA_PROPRIETARY, VK_DRIVER_ID_MESA_NVK}) {
    device.driver_id = driver;
    CHECK(sums(device) == MatrixSums::unknown);
  }
  device.driver_id = VK_DRIVER_ID_MESA_LLVMPIPE;
  CHECK(sums(device) == MatrixSums::transposed);
  device.driver_id = VK_DRIVER_ID_MESA_RADV;
  CHECK(sums(device) == MatrixSums::alternate);
  device.cooperative_shapes.push_back({16, 16, 16, "e4m3", "e4m3", "f32", "f32"});
  CHECK(sums(device) == MatrixSums::operands);
  device.cooperative_shapes.clear();
  CHECK(sums(device) == MatrixSums::unknown);
}

TEST_CASE("occupancy: attention's queries in registers are two to one, unless lanes repeat each other's") {
  constexpr AttentionSizes sizes{
      .batch = 8, .queries = 197, .keys = 197, .heads = 12, .key_width = 64, .value_width = 64, .bytes = 2};
  // Of 32 rows: their queries, and with them all that a lane holds.
  const auto widest = [&](const Capabilities& device) -> std::optional<AttentionCoopmatShape> {
    for (const AttentionCoopmatShape& shape : attention_coopmat_shapes(sizes, device)) {
      if (shape.block_q() == 128 && shape.block_k == 32 && shape.subgroup_size == 32) return shape;
    }
    return std::nullopt;
  };
  for (const auto& [name, device] : test::zoo_devices()) {
    CAPTURE(name);
    if (name == "turing" || name == "ampere-172" || name == "gfx1201") {
      const auto shape = widest(device);
      REQUIRE(shape);
      CHECK(shape->keep_queries);
      CHECK(shape->registers == 32 * (32 + 64) / 32 + 16 + 32 * 64 / 2 / 32);
      // Two workgroups fit what Turing has.
      CHECK(2 * shape->shared_bytes(sizes) <= 64 << 10);
    }
    if (name == "navi31") CHECK_FALSE(widest(device));
  }
}

}  // namespace vitrine

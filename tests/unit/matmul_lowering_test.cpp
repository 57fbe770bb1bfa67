// What matmul and attention choose on devices that are made up.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/cost.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/util/error.h"
#include "runtime/vk/shared_memory.h"
#include "shaders/products/cpu/matmul_cpu_chunk.h"
#include "shaders/products/matmul.h"

namespace vitrine {
namespace {

// No more than Vulkan promises, and the storage buffers that Vitrine asks for.
Capabilities least_device() {
  Capabilities device;
  device.type = DeviceType::integrated;
  device.has = Need::storage16;
  device.max_workgroup_count = {65535, 65535, 65535};
  device.max_workgroup_size = {128, 128, 64};
  device.max_workgroup_invocations = 128;
  device.max_shared_bytes = 16 * 1024;
  device.max_storage_buffers = 8;
  device.max_storage_range = 1u << 27;
  device.subgroup_size = 32;
  return device;
}

Capabilities discrete_device(uint32_t subgroup_size) {
  Capabilities device = least_device();
  device.type = DeviceType::discrete;
  device.has = Need::storage16 | Need::fp16 | Need::coopmat | Need::subgroup_control;
  device.max_workgroup_size = {1024, 1024, 64};
  device.max_workgroup_invocations = 1024;
  device.max_shared_bytes = 48 * 1024;
  device.max_storage_range = 1u << 31;
  device.subgroup_size = subgroup_size;
  device.cooperative_shapes = {{16, 8, 8, "f16", "f16", "f32", "f32"},
                               {16, 16, 32, "s8", "s8", "s32", "s32"},
                               {16, 16, 16, "f16", "f16", "f16", "f16"},
                               {16, 8, 16, "f16", "f16", "f32", "f32"}};
  return device;
}

Graph matmul_graph(uint64_t m, uint64_t n, uint64_t k, DType dtype, DType out) {
  Graph graph;
  matmul(graph, "y", graph.input("x", {m, k}, dtype), graph.constant("w", {n, k}, dtype), {.out = out});
  return graph;
}

Graph matmul_graph(uint64_t m, uint64_t n, uint64_t k, DType dtype) {
  return matmul_graph(m, n, k, dtype, dtype);
}

LowerContext context_of(const Graph& graph, const Capabilities& device) {
  return {graph, graph.nodes()[0], device};
}

template <typename Params = shader::MatmulParams>
Params params_of(const Dispatch& dispatch) {
  Params params{};
  REQUIRE(dispatch.params.size() == sizeof params);
  std::memcpy(&params, dispatch.params.data(), sizeof params);
  return params;
}

const KernelDef& kernel(std::string_view name) {
  return *std::ranges::find(op_matmul.kernels, name, &KernelDef::name);
}

TEST_CASE("matmul's tiled kernel fits the device and covers the product") {
  for (const Capabilities& device : {least_device(), discrete_device(32), discrete_device(64)}) {
    for (const uint64_t m : {1u, 17u, 197u, 1576u}) {
      for (const uint64_t n : {3u, 192u, 3072u}) {
        const Graph graph = matmul_graph(m, n, 768, DType::f32);
        const LowerContext context = context_of(graph, device);
        REQUIRE(!refuse_tiled(context));
        const Lowered lowered = lower_tiled(context);
        const Dispatch& dispatch = lowered.dispatches[0];
        const uint32_t threads = dispatch.constant("local_size"), tile_m = dispatch.constant("tile_m"),
                       tile_n = dispatch.constant("tile_n");
        CHECK(threads <= device.max_workgroup_invocations);
        CHECK(threads == tile_m / dispatch.constant("thread_m") * (tile_n / dispatch.constant("thread_n")));
        const shader::MatmulParams params = params_of(dispatch);
        CHECK(params.tiles == params.tiles_m * ceil_div(n, tile_n));
        CHECK(uint64_t{params.tiles_m} * tile_m >= m);
        CHECK(dispatch.groups[0] * dispatch.groups[1] >= params.tiles * params.slices);
        // Slices cover K, none is empty, and each starts at a step.
        CHECK(uint64_t{params.slices} * params.slice_k >= 768);
        CHECK(uint64_t{params.slices - 1} * params.slice_k < 768);
        CHECK(params.slice_k % dispatch.constant("step_k") == 0);
        CHECK(lowered.dispatches.size() == (params.slices > 1 ? 2 : 1));
        if (params.slices > 1) CHECK(lowered.scratch == std::vector<uint64_t>{4 * m * n * params.slices});
      }
    }
  }
  for (const TiledShape& shape : tiled_shapes()) {
    CHECK(shape.tile_m % shape.thread_m == 0);
    CHECK(shape.tile_n % shape.thread_n == 0);
    CHECK(shape.step_k % 4 == 0);
  }
}

TEST_CASE("matmul takes large tiles for large products and small ones for a few rows") {
  const Capabilities device = discrete_device(32);
  const auto tile = [&](uint64_t m, uint64_t n) {
    const Graph graph = matmul_graph(m, n, 768, DType::f32);
    return lower_tiled(context_of(graph, device)).dispatches[0].note;
  };
  CHECK(tile(64 * 197, 3072) == "128x128");
  CHECK(tile(12, 32).starts_with("16x32"));
}

TEST_CASE("matmul cuts K where the grid leaves a GPU idle, and only there") {
  const Capabilities device = discrete_device(32);
  const auto slices = [&](const Capabilities& on, uint64_t m, uint64_t n, uint64_t k) {
    const Graph graph = matmul_graph(m, n, k, DType::f32);
    return params_of(lower_tiled(context_of(graph, on)).dispatches[0]).slices;
  };
  CHECK(slices(device, 197, 192, 768) > 1);
  CHECK(slices(device, 197, 768, 3072) > 1);
  CHECK(slices(device, 64 * 197, 768, 3072) == 1);
  CHECK(slices(device, 197, 768, 100) == 1);  // too short to cut
  Capabilities narrow = device;
  narrow.max_storage_range = 4 * 197 * 768 * 2 - 1;  // two slices would not fit
  CHECK(slices(narrow, 197, 768, 3072) == 1);
  Capabilities cpu = device;
  cpu.type = DeviceType::cpu;
  CHECK(slices(cpu, 197, 192, 768) == 1);
}

TEST_CASE("K is cut into whole steps") {
  CHECK(cut_k(768, 1, 16).count == 1);
  CHECK(cut_k(768, 3, 16).length == 256);
  const KSlices uneven = cut_k(203, 8, 16);
  CHECK(uneven.count == 7);
  CHECK(uneven.length == 32);
  CHECK(cut_k(1, 8, 16).count == 1);
}

TEST_CASE("a handful of rows has a kernel of its own on GPUs") {
  const Capabilities device = discrete_device(32);
  for (const DType dtype : {DType::f32, DType::f16}) {
    const Graph few = matmul_graph(8, 1000, 768, dtype), many = matmul_graph(9, 1000, 768, dtype);
    REQUIRE_FALSE(refuse_few_rows(context_of(few, device)));
    CHECK(refuse_few_rows(context_of(many, device)) == "9 rows are more than the 8 it is made for");
    for (const KernelDef& other : op_matmul.kernels) {
      if (other.name == "few_rows" || other.refuses(context_of(few, device))) continue;
      CHECK(prefer_few_rows(context_of(few, device)) > other.preference(context_of(few, device)));
    }
  }
  const Graph head = matmul_graph(3, 1000, 768, DType::f32);
  const Dispatch dispatch = lower_few_rows(context_of(head, device)).dispatches.at(0);
  CHECK(dispatch.constant("rows") == 4);  // a power of two
  CHECK(dispatch.groups[0] == 125);
}

TEST_CASE("matmul's registers are spared where there are few") {
  Capabilities device = discrete_device(64);
  device.type = DeviceType::integrated;
  const Graph graph = matmul_graph(64 * 197, 3072, 768, DType::f32);
  CHECK(lower_tiled(context_of(graph, device)).dispatches[0].note == "64x64");
  // GCN has 256 registers a lane for all the subgroups of a SIMD.
  Capabilities gcn = discrete_device(64);
  gcn.vendor_id = 0x1002;
  gcn.min_subgroup_size = 64;
  CHECK(lower_tiled(context_of(graph, gcn)).dispatches[0].note == "64x64");
  // Nor has it shared memory for two halves of the tiles.
  for (const uint64_t rows : {12u, 64u, 197u, 1576u}) {
    const Graph some = matmul_graph(rows, 768, 768, DType::f32);
    const Dispatch dispatch = lower_tiled(context_of(some, gcn)).dispatches[0];
    CHECK(dispatch.constant("ahead") == 0);
    CHECK(dispatch.constant("local_size") >= 64);  // a whole subgroup
  }
}

TEST_CASE("f16 tiles are kept as halves where a multiply-add converts them for nothing") {
  Capabilities rdna = discrete_device(64);
  rdna.vendor_id = 0x1002;
  rdna.min_subgroup_size = 32;
  rdna.cooperative_shapes.clear();
  const auto variant = [](const Capabilities& device, DType dtype) {
    const Graph graph = matmul_graph(64 * 197, 3072, 768, dtype);
    return lower_tiled(context_of(graph, device)).dispatches[0].shader->variant;
  };
  CHECK(variant(rdna, DType::f16) == "mixed_f16");
  CHECK(variant(rdna, DType::f32) == "f32");
  Capabilities apple = least_device();
  apple.has = Need::storage16 | Need::fp16;
  apple.driver_id = 26;  // Honeykrisp
  CHECK(variant(apple, DType::f16) == "mixed_f16");
  Capabilities storage_only = rdna;
  storage_only.has = Need::storage16;
  CHECK(variant(storage_only, DType::f16) == "f16");
  Capabilities gcn = rdna;
  gcn.min_subgroup_size = 64;
  CHECK(variant(gcn, DType::f16) == "f16");
  Capabilities with_matrices = rdna;
  with_matrices.cooperative_shapes = discrete_device(64).cooperative_shapes;
  CHECK(variant(with_matrices, DType::f16) == "f16");
}

TEST_CASE(
    "matmul's matrix units may take every listed matrix of the right types, and begin with the largest") {
  for (const uint32_t subgroup_size : {32u, 64u}) {
    const Capabilities device = discrete_device(subgroup_size);
    const Graph graph = matmul_graph(197, 768, 768, DType::f16);
    const LowerContext context = context_of(graph, device);
    std::vector<CooperativeShape> matrices;
    for (const CoopmatShape& shape : coopmat_shapes(device)) {
      if (std::ranges::find(matrices, shape.matrix) == matrices.end()) matrices.push_back(shape.matrix);
      CHECK(shape.shared_bytes() <= device.max_shared_bytes);
      CHECK(shape.subgroup_size == subgroup_size);
      CHECK(shape.threads() % subgroup_size == 0);
      CHECK(shape.step_k % shape.matrix.k == 0);
      CHECK((shape.buffers == 1 || shape.buffers == 2));
    }
    CHECK(matrices == std::vector{device.cooperative_shapes[3], device.cooperative_shapes[0]});
    if (context.missing("matmul_coopmat", "f16")) continue;  // this glslang could not compile it
    REQUIRE(!refuse_coopmat(context));
    CHECK(prefer_coopmat(context) > prefer_tiled(context));
    const Dispatch dispatch = lower_coopmat(context).dispatches.at(0);
    CHECK(dispatch.subgroup_size == subgroup_size);
    CHECK(dispatch.constant("subgroup_size") == subgroup_size);
    CHECK(dispatch.constant("matrix_m") == 16);
    CHECK(dispatch.constant("matrix_n") == 8);
    CHECK(dispatch.constant("matrix_k") == 16);
  }
}

// As RADV lists RDNA 3: two subgroup sizes, all of a compute unit's shared memory.
Capabilities rdna3() {
  Capabilities device = discrete_device(64);
  device.vendor_id = 0x1002;
  device.min_subgroup_size = 32;
  device.max_subgroup_size = 64;
  device.max_shared_bytes = 64 * 1024;
  device.multiprocessors = 96;
  device.matrix_subgroup_size = 32;
  device.cooperative_shapes = {{16, 16, 16, "f16", "f16", "f32", "f32"}};
  device.subgroup_operations = 0xff;
  return device;
}

// With all of VK_NV_cooperative_matrix2; the granularities are made up.
Capabilities hopper() {
  Capabilities device = discrete_device(32);
  device.multiprocessors = 132;
  device.min_subgroup_size = device.max_subgroup_size = 32;
  device.has = device.has | Need::coopmat2 | Need::coopmat2_elements | Need::coopmat2_reductions |
               Need::coopmat2_conversions | Need::coopmat2_tensors | Need::coopmat2_workgroups;
  device.flexible_max_dimension = 1024;
  device.subgroup_operations = 0xff;
  device.flexible_shapes = {{16, 16, 16, "f16", "f16", "f32", "f32", 128},
                            {32, 32, 16, "f16", "f16", "f32", "f32", 256},
                            {16, 16, 16, "f16", "f16", "f16", "f16", 0}};
  return device;
}

TEST_CASE("matmul's matrix units leave an AMD GPU four waves a SIMD, and begin with 32 lanes") {
  const Capabilities device = rdna3();
  std::vector<uint32_t> sizes;
  for (const CoopmatShape& shape : coopmat_shapes(device)) {
    const uint32_t waves = shape.subgroups_m * shape.subgroups_n;
    CHECK(device.max_shared_bytes / shape.shared_bytes() * waves >= 8);  // two SIMDs a compute unit
    if (std::ranges::find(sizes, shape.subgroup_size) == sizes.end()) sizes.push_back(shape.subgroup_size);
  }
  CHECK(sizes == std::vector{32u, 64u});
}

TEST_CASE("matmul takes large matrix tiles for large products and small ones where units would idle") {
  const auto tile_of = [](const Capabilities& device, auto lower, uint64_t m, uint64_t n, uint64_t k) {
    const Graph graph = matmul_graph(m, n, k, DType::f16);
    const auto params = params_of<shader::MatmulParams>(lower(context_of(graph, device)).dispatches.at(0));
    return std::pair(ceil_div(m, params.tiles_m), params.tiles);
  };
  const Capabilities device = hopper();
  const Graph probe = matmul_graph(16, 16, 16, DType::f16);
  if (!context_of(probe, device).missing("matmul_coopmat", "f16")) {
    CHECK(tile_of(device, lower_coopmat, 50432, 3072, 768).first >= 127);
    CHECK(tile_of(device, lower_coopmat, 197, 768, 768).second >= 24);
  }
  if (context_of(probe, device).missing("matmul_coopmat2", "f16")) return;
  REQUIRE(!refuse_coopmat2(context_of(probe, device)));
  const auto is_preferred = [&](uint64_t m, DType out) {
    const Graph graph = matmul_graph(m, 768, 3072, DType::f16, out);
    return prefer_coopmat2(context_of(graph, device)) > prefer_coopmat(context_of(graph, device));
  };
  for (const DType out : {DType::f32, DType::f16}) CHECK_FALSE(is_preferred(8 * 197, out));
  const Graph large = matmul_graph(50432, 3072, 768, DType::f16);
  CHECK(lower_coopmat2(context_of(large, device)).dispatches[0].note == "128x256");
  CHECK(tile_of(device, lower_coopmat2, 197, 768, 768).second >= 48);
  Capabilities without = device;
  without.flexible_shapes.clear();
  CHECK(refuse_coopmat2(context_of(probe, without)));
  without = device;
  without.has = Need::storage16 | Need::fp16 | Need::coopmat | Need::coopmat2 | Need::subgroup_control;
  CHECK(refuse_coopmat2(context_of(probe, without)));
}

TEST_CASE("matmul's matrix units have as many steps on their way as take the time that memory does") {
  for (const bool rounded : {false, true}) {
    for (const Capabilities& device : {hopper(), rdna3()}) {
      const DeviceRates rates = rates_of(device);
      size_t further = 0;
      const std::vector<CoopmatShape> shapes = coopmat_shapes(device, rounded);
      for (size_t i = 0; i < shapes.size(); ++i) {
        const CoopmatShape& shape = shapes[i];
        CAPTURE(shape.name());
        const double step =
            static_cast<double>(shape.tile_m()) * shape.tile_n() * shape.step_k / rates.matrix_multiply_adds;
        if (shape.ahead == 1) continue;
        ++further;
        // Behind the one that is like it, whose only step doesn't suffice, and no more of them than suffice.
        REQUIRE(i > 0);
        CHECK(shape.name().starts_with(shapes[i - 1].name() + "/ahead"));
        CHECK(shape.registers > shapes[i - 1].registers);
        CHECK(shape.shared_bytes() == shapes[i - 1].shared_bytes());
        CHECK(step * (shape.ahead - 1) < rates.memory_latency);
      }
      CHECK(further > 0);
    }
  }
  Capabilities cpu = discrete_device(8);
  cpu.type = DeviceType::cpu;
  CHECK(std::ranges::all_of(coopmat_shapes(cpu), [](const CoopmatShape& shape) { return shape.ahead == 1; }));

  const Capabilities device = hopper();
  const auto ahead = [&](uint64_t m, uint64_t n, uint64_t k) {
    const Graph graph = matmul_graph(m, n, k, DType::f16);
    return lower_coopmat(context_of(graph, device)).dispatches.at(0).constant("ahead");
  };
  const Graph probe = matmul_graph(16, 16, 16, DType::f16);
  if (context_of(probe, device).missing("matmul_coopmat", "f16")) return;
  CHECK(ahead(197, 192, 768) > 1);      // few workgroups, each waits alone
  CHECK(ahead(50432, 3072, 768) == 1);  // so many that they fill each other's gaps
}

TEST_CASE("attention's matrix units fit every width up to 256") {
  for (const Capabilities& device : {rdna3(), hopper()}) {
    for (uint64_t width = 1; width <= 256; ++width) {
      Graph graph;
      const ValueId x = graph.input("x", {2, 197, 3 * width}, DType::f16);
      attention(graph, "y", x, x, x, {.key_width = width, .k_offset = width, .v_offset = 2 * width});
      const LowerContext context = context_of(graph, device);
      if (context.missing("attention_coopmat", "f16")) return;  // this glslang could not compile it
      CAPTURE(width);
      REQUIRE(!refuse_attention_coopmat(context));
      CHECK(prefer_attention_coopmat(context) > prefer_attention_tiled(context));
      const AttentionSizes sizes = attention_sizes(context);
      for (const AttentionCoopmatShape& shape : attention_coopmat_shapes(sizes, device)) {
        CHECK(shape.shared_bytes(sizes) <= device.max_shared_bytes);
        CHECK(shape.block_k % shape.matrix.k == 0);
        CHECK(shape.block_k % shape.matrix.n == 0);
      }
      if (!device.supports(Need::coopmat2_tensors) || context.missing("attention_coopmat2", "f16")) continue;
      REQUIRE(!refuse_attention_coopmat2(context));
      for (const AttentionCoopmat2Shape& shape : attention_coopmat2_shapes(sizes, device)) {
        CHECK(shape.key_depth(sizes) >= width);
        CHECK(shape.key_depth(sizes) % 16 == 0);
        CHECK(shape.value_columns(sizes) % (shape.threads == 128 ? 16 : 32) == 0);
      }
    }
  }
}

TEST_CASE("attention keeps scores in registers where it is known how matrices lie in lanes") {
  Capabilities device = rdna3();
  for (uint64_t width = 1; width <= 256; ++width) {
    Graph graph;
    const ValueId x = graph.input("x", {2, 197, 3 * width}, DType::f16);
    attention(graph, "y", x, x, x, {.key_width = width, .k_offset = width, .v_offset = 2 * width});
    if (context_of(graph, device).missing("attention_coopmat_columns", "f16")) return;
    CAPTURE(width);
    device.matrix_sums = MatrixSums::unknown;
    CHECK(refuse_attention_columns(context_of(graph, device)).value().ends_with("lie in its lanes"));
    device.matrix_sums = MatrixSums::transposed;  // which subgroups of 32 aren't
    CHECK(refuse_attention_columns(context_of(graph, device)).value().starts_with("no block"));
    for (const MatrixSums sums : {MatrixSums::operands, MatrixSums::alternate}) {
      device.matrix_sums = sums;
      device.matrix_operand_lanes = sums == MatrixSums::alternate ? 16 : 0;
      const LowerContext context = context_of(graph, device);
      const AttentionSizes sizes = attention_sizes(context);
      const auto shapes = attention_columns_shapes(sizes, device);
      CHECK((!shapes.empty() || width > 128));
      CHECK(shapes.empty() == refuse_attention_columns(context).has_value());
      for (const AttentionColumnsShape& shape : shapes) {
        CHECK(shape.subgroup_size == 32);
        CHECK(shape.block_k % shape.matrix.k == 0);
        const Dispatch dispatch = lower_attention_columns_as(context, shape).dispatches[0];
        CHECK(shared_bytes_of(dispatch.shader->words, constants_by_id(dispatch)) ==
              shape.shared_bytes(sizes));
        CHECK(shape.shared_bytes(sizes) <= device.max_shared_bytes);
      }
    }
  }
}

TEST_CASE("matmul's matrix units say why they can't") {
  const Graph f32 = matmul_graph(16, 16, 16, DType::f32), f16 = matmul_graph(16, 16, 16, DType::f16);
  Capabilities device = discrete_device(32);
  CHECK(refuse_coopmat(context_of(f32, device)) == "matrix units multiply f16, x is f32");
  CHECK(kernel("coopmat").refuses(context_of(f16, least_device())));
  if (context_of(f16, device).missing("matmul_coopmat", "f16")) return;
  device.cooperative_shapes.resize(3);
  device.cooperative_shapes.erase(device.cooperative_shapes.begin());
  CHECK(refuse_coopmat(context_of(f16, device)) == "the device lists no matrix of f16 x f16 + f32");
  device = discrete_device(32);
  device.max_workgroup_invocations = 32;
  CHECK(refuse_coopmat(context_of(f16, device)) == "no tile of its matrices fits the device's workgroups");
  device = discrete_device(32);
  device.type = DeviceType::cpu;
  CHECK(prefer_coopmat(context_of(f16, device)) < prefer_tiled(context_of(f16, device)));
}

TEST_CASE("matmul's kernel for CPUs packs a column a lane, and leaves wide subgroups alone") {
  Capabilities device = discrete_device(8);
  device.type = DeviceType::cpu;
  device.has = device.has | Need::addresses | Need::int64;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const Graph graph = matmul_graph(197, 21, 100, dtype);
    REQUIRE_FALSE(refuse_direct(context_of(graph, device)));
    const Lowered lowered = lower_direct(context_of(graph, device));
    REQUIRE(lowered.packs.size() == 1);
    CHECK(lowered.packs[0].bytes == 24 * 112 * size_of(dtype));
    CHECK(lowered.dispatches.back().groups[1] == 3);
    CHECK(lowered.dispatches.back().subgroup_size == 8);
  }
  const Graph graph = matmul_graph(197, 21, 100, DType::f32);
  Capabilities wide = device;
  wide.subgroup_size = 64;
  CHECK(refuse_direct(context_of(graph, wide)));
  Capabilities unsteady = device;
  unsteady.has = Need::storage16 | Need::addresses | Need::int64;
  CHECK(refuse_direct(context_of(graph, unsteady)));
}

TEST_CASE("where loops gather, matmul takes the depth in chunks, each value of it once") {
  Capabilities device = least_device();
  device.type = DeviceType::cpu;
  device.has = Need::addresses | Need::int64 | Need::subgroup_control | Need::storage16;
  device.subgroup_size = 8;
  for (const auto& [m, n, k] :
       {std::tuple{197u, 768u, 3072u}, {197u, 192u, 588u}, {1u, 1000u, 37u}, {3u, 5u, 1u}}) {
    CAPTURE(m, n, k);
    const Graph graph = matmul_graph(m, n, k, DType::f32);
    device.loops_gather = false;
    CHECK(prefer_chunks(context_of(graph, device)) < prefer_direct(context_of(graph, device)));
    CHECK_FALSE(refuse_direct(context_of(graph, device)));
    device.loops_gather = true;
    CHECK(prefer_chunks(context_of(graph, device)) > prefer_tiled(context_of(graph, device)));
    CHECK(refuse_direct(context_of(graph, device)));

    REQUIRE_FALSE(refuse_chunks(context_of(graph, device)));
    const Lowered lowered = lower_chunks(context_of(graph, device));
    uint32_t steps = 0;
    for (const Dispatch& dispatch : lowered.dispatches) {
      if (dispatch.shader->shader != "matmul_cpu_chunk") continue;
      const auto params = params_of<shader::MatmulChunkParams>(dispatch);
      CHECK(params.first_step == steps);
      CHECK(params.go_on == (steps > 0 ? 1u : 0u));
      CHECK(params.steps == (k + 15) / 16);
      for (uint32_t digit = 0; digit < 16; ++digit) CHECK(params.digits[digit] == digit);
      steps += dispatch.constant("steps");
      CHECK(dispatch.groups[0] * dispatch.constant("block_rows") >= m);
      CHECK(dispatch.groups[1] * dispatch.constant("lanes") >= n);
    }
    CHECK(steps == (k + 15) / 16);
    CHECK(lowered.dispatches.back().shader->shader == "matmul_cpu_chunk_end");
  }
  // More blocks than the shader can look up in four digits.
  CHECK(refuse_chunks(context_of(matmul_graph(12 * 65537, 8, 16, DType::f32), device)));
}

TEST_CASE("matmul refuses shapes that do not go together") {
  Graph graph;
  const ValueId x = graph.input("x", {2, 5, 8}), weight = graph.constant("w", {7, 8});
  CHECK(graph.value(matmul(graph, "y", x, weight)).shape == Shape{2, 5, 7});
  CHECK_THROWS_AS(matmul(graph, "k", x, graph.constant("narrow", {7, 9})), Error);
  CHECK_THROWS_AS(matmul(graph, "t", x, graph.constant("half", {7, 8}, DType::f16)), Error);
  CHECK_THROWS_AS(matmul(graph, "b", x, weight, {.bias = graph.constant("bias", {8})}), Error);
  CHECK_THROWS_AS(matmul(graph, "r", x, weight, {.residual = x}), Error);
  CHECK_THROWS_AS(matmul(graph, "o", x, weight, {.out = DType::f16}), Error);
}

TEST_CASE("attention's tiled kernel fits every width up to 256 on every device") {
  for (const Capabilities& device : {least_device(), discrete_device(32), discrete_device(64)}) {
    for (uint64_t width = 1; width <= 256; ++width) {
      Graph graph;
      const ValueId x = graph.input("x", {2, 197, 3 * width});
      attention(graph, "y", x, x, x, {.key_width = width, .k_offset = width, .v_offset = 2 * width});
      const LowerContext context = context_of(graph, device);
      REQUIRE(!refuse_attention_tiled(context));
      const Dispatch dispatch = lower_attention_tiled(context).dispatches.at(0);
      const AttentionTile tile{dispatch.constant("threads"), dispatch.constant("columns"),
                               dispatch.constant("block_q"), dispatch.constant("block_k"),
                               dispatch.constant("chunk4"),  dispatch.constant("slice")};
      REQUIRE(tile.threads <= device.max_workgroup_invocations);
      REQUIRE(shared_bytes(tile, attention_sizes(context)) <= device.max_shared_bytes);
      // The shader divides these without a rest.
      REQUIRE(tile.threads % tile.columns == 0);
      REQUIRE(tile.block_q % tile.rows() == 0);
      REQUIRE(tile.block_k % tile.slice == 0);
      REQUIRE(tile.slice % tile.columns == 0);
      REQUIRE(tile.slice % 4 == 0);
    }
  }
}

TEST_CASE("attention refuses what it can't run") {
  Graph graph;
  const ValueId x = graph.input("x", {2, 5, 771});
  attention(graph, "y", x, x, x, {.key_width = 257, .k_offset = 257, .v_offset = 514});
  CHECK(refuse_attention_tiled(context_of(graph, discrete_device(32))) ==
        "heads are 257 wide, at most 256 is possible");
  CHECK_THROWS_AS(attention(graph, "wide", x, x, x, {.heads = 4, .key_width = 193}), Error);
  CHECK_THROWS_AS(attention(graph, "far", x, x, x, {.key_width = 64, .q_offset = 708}), Error);
  CHECK_THROWS_AS(attention(graph, "none", x, x, x, {.key_width = 0}), Error);
  const ValueId short_v = graph.input("v", {2, 4, 771});
  CHECK_THROWS_AS(attention(graph, "tokens", x, x, short_v, {.key_width = 8}), Error);
}

}  // namespace
}  // namespace vitrine

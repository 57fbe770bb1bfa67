#include "runtime/vk/shared_memory.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/vk/shader_table.h"
#include "tests/support/spirv_builder.h"

namespace vitrine {
namespace {

using namespace test::spirv;

// shared vec4 a[constant_0 * 3], b[constant_0 / constant_0]; and a private array, which doesn't count.
std::vector<uint32_t> module_words() {
  test::SpirvBuilder module;
  module.op(OpDecorate, {10, SpecId, 0})
      .op(OpTypeFloat, {2, 32})
      .op(OpTypeInt, {3, 32, 0})
      .op(OpTypeVector, {4, 2, 4})
      .op(OpSpecConstant, {3, 10, 5})
      .op(OpConstant, {3, 11, 3})
      .op(OpSpecConstantOp, {3, 12, IMul, 10, 11})
      .op(OpSpecConstantOp, {3, 13, UDiv, 10, 10})
      .op(OpTypeArray, {5, 4, 12})
      .op(OpTypeArray, {6, 4, 13})
      .op(OpTypePointer, {7, Workgroup, 5})
      .op(OpTypePointer, {8, Workgroup, 6})
      .op(OpTypePointer, {9, Private, 5})
      .op(OpVariable, {7, 20, Workgroup})
      .op(OpVariable, {8, 21, Workgroup})
      .op(OpVariable, {9, 22, Private});
  return module.words();
}

}  // namespace

TEST_CASE("shared memory is counted with the constants' values, or their defaults") {
  const std::vector<uint32_t> words = module_words();
  CHECK(shared_bytes_of(words, {}) == 16 * 15 + 16);
  CHECK(shared_bytes_of(words, std::vector<uint32_t>{7}) == 16 * 21 + 16);
}

TEST_CASE("what can't be counted is nothing") {
  const std::vector<uint32_t> words = module_words();
  CHECK_FALSE(shared_bytes_of(words, std::vector<uint32_t>{0}));  // 0 / 0
  test::SpirvBuilder loop;                                        // an array of itself
  loop.op(OpTypeInt, {3, 32, 0})
      .op(OpConstant, {3, 4, 2})
      .op(OpTypeArray, {5, 5, 4})
      .op(OpTypePointer, {6, Workgroup, 5})
      .op(OpVariable, {6, 7, Workgroup});
  CHECK_FALSE(shared_bytes_of(loop.words(), {}));
}

// The lowerings choose tiles by a formula of their own: it has to say what the shader takes.
TEST_CASE("tiles take as much shared memory as their shaders declare") {
  Capabilities device;
  device.type = DeviceType::discrete;
  device.has = Need::storage16;
  device.max_workgroup_count = {65535, 65535, 65535};
  device.max_workgroup_size = {1024, 1024, 64};
  device.max_workgroup_invocations = 1024;
  device.max_shared_bytes = 64 * 1024;
  device.max_storage_range = 1u << 31;
  device.subgroup_size = 32;
  for (const DType dtype : {DType::f32, DType::f16}) {
    Graph graph;
    matmul(graph, "y", graph.input("x", {197, 100}, dtype), graph.constant("w", {300, 100}, dtype));
    const LowerContext product(graph, graph.nodes()[0], device);
    for (const TiledShape& shape : tiled_shapes()) {
      const Dispatch dispatch = lower_tiled_as(product, shape).dispatches[0];
      CAPTURE(dispatch.note);
      CHECK(shared_bytes_of(dispatch.shader->words, constants_by_id(dispatch)) == shape.shared_bytes());
    }
    for (const uint64_t width : {7, 64, 80, 256}) {
      Graph heads;
      const ValueId qkv = heads.input("qkv", {1, 50, 3 * width}, dtype);
      attention(heads, "y", qkv, qkv, qkv,
                {.heads = 1, .key_width = width, .k_offset = width, .v_offset = 2 * width});
      const LowerContext context(heads, heads.nodes()[0], device);
      for (const AttentionTile& tile : attention_tiles()) {
        const Dispatch dispatch = lower_attention_tiled_as(context, tile).dispatches[0];
        CAPTURE(dispatch.note, width);
        CHECK(shared_bytes_of(dispatch.shader->words, constants_by_id(dispatch)) ==
              shared_bytes(tile, attention_sizes(context)));
      }
    }
  }
}

}  // namespace vitrine

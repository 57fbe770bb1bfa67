#include "runtime/ops/attention/attention.h"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/attention/plain_attention.h"
#include "tests/support/op_test.h"
#include "tests/support/reference_matmul.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

struct Size {
  uint64_t batch, heads, queries, keys, key_width, value_width;
};

// q, k and v, each in a tensor of its own whose rows hold more than the heads.
struct Inputs {
  Size size;
  AttentionOptions options;
  HostTensor q, k, v;
  double& q_at(uint64_t token, uint64_t element) { return at(q, token, options.q_offset + element); }
  double& k_at(uint64_t token, uint64_t element) { return at(k, token, options.k_offset + element); }
  double& v_at(uint64_t token, uint64_t element) { return at(v, token, options.v_offset + element); }

 private:
  static double& at(HostTensor& t, uint64_t token, uint64_t element) {
    return t.values[token * t.shape[2] + element];
  }
};

Inputs random_inputs(Size s, DType dtype, uint64_t seed, uint64_t offset = 0, uint64_t margin = 0) {
  Inputs in;
  in.size = s;
  in.options.heads = s.heads;
  in.options.key_width = s.key_width;
  in.options.value_width = s.value_width;
  in.options.q_offset = offset;
  in.options.k_offset = 2 * offset;
  in.options.v_offset = 3 * offset;
  in.options.store_lse = true;
  in.q = random_tensor({s.batch, s.queries, offset + s.heads * s.key_width + margin}, dtype, seed, -2, 2);
  in.k =
      random_tensor({s.batch, s.keys, 2 * offset + s.heads * s.key_width + margin}, dtype, seed + 1, -2, 2);
  in.v = random_tensor({s.batch, s.keys, 3 * offset + s.heads * s.value_width + margin}, dtype, seed + 2);
  return in;
}

reference::Attention refer(const Inputs& in) {
  const Size& s = in.size;
  const double scale =
      in.options.scale != 0 ? in.options.scale : 1 / std::sqrt(static_cast<double>(s.key_width));
  return reference::attention({in.q.values, s.queries, in.q.shape[2], in.options.q_offset, s.key_width},
                              {in.k.values, s.keys, in.k.shape[2], in.options.k_offset, s.key_width},
                              {in.v.values, s.keys, in.v.shape[2], in.options.v_offset, s.value_width},
                              s.batch, s.heads, scale);
}

OpCase case_of(const Inputs& in) {
  const Size& s = in.size;
  OpCase c;
  c.label = std::to_string(s.batch) + "x" + std::to_string(s.heads) + " heads of " +
            std::to_string(s.key_width) + " and " + std::to_string(s.value_width) + ", " +
            std::to_string(s.queries) + " queries, " + std::to_string(s.keys) + " keys, " +
            std::string(name_of(in.q.dtype));
  c.inputs = {{in.q}, {in.k}, {in.v}};
  return c;
}

// Fused attention with its log-sum-exp; `op` is op_attention, or one whose kernels are a choice of its own.
OpCase fused(const Inputs& in, const OpDef& op = op_attention) {
  OpCase c = case_of(in);
  c.build = [options = in.options, &op](Graph& graph, std::span<const ValueId> ids) -> std::vector<ValueId> {
    if (&op == &op_attention) {
      const AttentionResult result = attention(graph, "y", ids[0], ids[1], ids[2], options);
      return {result.out, result.lse};
    }
    return graph.add(op, "y", {ids[0], ids[1], ids[2]}, attention_attributes(options));
  };
  reference::Attention expected = refer(in);
  c.expected = {std::move(expected.out), std::move(expected.lse)};
  return c;
}

OpCase plain(const Inputs& in) {
  OpCase c = case_of(in);
  c.build = [options = in.options](Graph& graph, std::span<const ValueId> ids) -> std::vector<ValueId> {
    const PlainAttentionResult result = plain_attention(graph, "y", ids[0], ids[1], ids[2], options);
    return {result.out, result.scores, result.weights};
  };
  reference::Attention expected = refer(in);
  c.expected = {std::move(expected.out), std::move(expected.scores), std::move(expected.weights)};
  return c;
}

// One kernel a tile, whatever lower_attention_tiled would choose.
template <size_t index>
std::optional<std::string> refuse_tile(const LowerContext& context) {
  if (!fits(attention_tiles()[index], attention_sizes(context), context.device())) return "does not fit";
  return refuse_attention_tiled(context);
}
template <size_t index>
Lowered lower_tile(const LowerContext& context) {
  return lower_attention_tiled_as(context, attention_tiles()[index]);
}
template <size_t... indices>
constexpr auto tile_kernels(std::index_sequence<indices...>) {
  constexpr std::array names{"0", "1", "2", "3", "4", "5", "6", "7"};
  return std::array{
      KernelDef{names[indices], Target::any, refuse_tile<indices>, no_preference, lower_tile<indices>}...};
}
constexpr auto all_tiles = tile_kernels(std::make_index_sequence<8>());
const OpDef op_attention_tiles{"attention_tiles", infer_attention, attention_flops, all_tiles};

// Likewise for the blocks of matrix units, of which a device may be able to run only some.
template <auto shapes_of, auto refuse_kernel, size_t index>
std::optional<std::string> refuse_block(const LowerContext& context) {
  if (auto reason = refuse_kernel(context)) return reason;
  const auto shapes = shapes_of(attention_sizes(context), context.device());
  if (shapes.size() <= index) return "the device takes fewer blocks";
  return std::nullopt;
}
template <auto shapes_of, auto lower_as, size_t index>
Lowered lower_block(const LowerContext& context) {
  return lower_as(context, shapes_of(attention_sizes(context), context.device())[index]);
}
constexpr size_t most_blocks = 40;
template <size_t index>
constexpr std::array<char, 2> block_name{'0' + index / 10, '0' + index % 10};
template <auto shapes_of, auto refuse_kernel, auto lower_as, size_t... indices>
constexpr auto block_kernels(std::index_sequence<indices...>) {
  return std::array{KernelDef{{block_name<indices>.data(), 2},
                              Target::matrix_units,
                              refuse_block<shapes_of, refuse_kernel, indices>,
                              no_preference,
                              lower_block<shapes_of, lower_as, indices>}...};
}
using EveryBlock = std::make_index_sequence<most_blocks>;
constexpr auto all_coopmat =
    block_kernels<attention_coopmat_shapes, refuse_attention_coopmat, lower_attention_coopmat_as>(
        EveryBlock());
constexpr auto all_columns =
    block_kernels<attention_columns_shapes, refuse_attention_columns, lower_attention_columns_as>(
        EveryBlock());
constexpr auto all_flexible =
    block_kernels<attention_flexible_shapes, refuse_attention_flexible, lower_attention_coopmat2_as>(
        EveryBlock());
constexpr auto all_coopmat2 =
    block_kernels<attention_coopmat2_shapes, refuse_attention_coopmat2, lower_attention_coopmat2_as>(
        EveryBlock());
const OpDef op_attention_coopmat{"attention_coopmat_blocks", infer_attention, attention_flops, all_coopmat};
const OpDef op_attention_columns{"attention_columns_blocks", infer_attention, attention_flops, all_columns};
const OpDef op_attention_flexible{"attention_flexible_blocks", infer_attention, attention_flops,
                                  all_flexible};
const OpDef op_attention_coopmat2{"attention_coopmat2_blocks", infer_attention, attention_flops,
                                  all_coopmat2};

// Rows by eight and by single values, a last block of a few keys, several blocks, D_v other than D_k.
void check_blocks(const OpDef& op) {
  check_op(op, fused(random_inputs({1, 2, 37, 43, 24, 16}, DType::f16, 1), op));
  check_op(op, fused(random_inputs({1, 1, 35, 33, 7, 21}, DType::f16, 2, 1), op));
  check_op(op, fused(random_inputs({2, 1, 19, 80, 16, 40}, DType::f16, 3, 8), op));
}

}  // namespace

TEST_CASE("attention matches the float64 reference in f32") {
  uint64_t seed = 10;
  for (const Size size : {Size{1, 1, 1, 1, 4, 4},
                          {2, 3, 2, 2, 4, 4},
                          {1, 2, 5, 5, 8, 8},
                          {2, 2, 17, 17, 48, 48},
                          {1, 3, 50, 50, 64, 64},
                          {1, 2, 65, 65, 72, 72},
                          {1, 1, 197, 197, 80, 80},
                          {1, 1, 65, 65, 88, 88},
                          {1, 1, 50, 50, 96, 96},
                          {1, 1, 17, 65, 128, 128},
                          {1, 1, 37, 33, 256, 256},
                          {1, 2, 257, 257, 64, 64}}) {
    OpCase c = fused(random_inputs(size, DType::f32, seed += 10));
    check_op(op_attention, c);
  }
}

TEST_CASE("attention matches the float64 reference in f16") {
  uint64_t seed = 10;
  for (const Size size : {Size{1, 1, 2, 1, 4, 4},
                          {1, 2, 5, 17, 8, 8},
                          {2, 1, 50, 50, 48, 48},
                          {1, 2, 197, 197, 64, 64},
                          {1, 1, 65, 65, 88, 88},
                          {1, 1, 17, 50, 256, 256}}) {
    // Which a CPU's driver compiles for half a minute; in f32 it has to.
    if (size.key_width == 256 && test_device().device->capabilities().type == DeviceType::cpu) continue;
    check_op(op_attention, fused(random_inputs(size, DType::f16, seed += 10)));
  }
}

TEST_CASE("attention takes values of another width, other token counts and unaligned rows") {
  uint64_t seed = 10;
  for (const DType dtype : {DType::f32, DType::f16}) {
    check_op(op_attention, fused(random_inputs({1, 2, 17, 65, 64, 48}, dtype, seed += 10)));
    check_op(op_attention, fused(random_inputs({2, 1, 65, 5, 8, 72}, dtype, seed += 10)));
    check_op(op_attention, fused(random_inputs({1, 2, 50, 17, 48, 7}, dtype, seed += 10, 3, 2)));
    check_op(op_attention, fused(random_inputs({1, 3, 5, 50, 5, 64}, dtype, seed += 10, 1, 0)));
  }
  check_op(op_attention, fused(random_inputs({1, 1, 1, 197, 64, 64}, DType::f32, seed += 10, 4, 8)));
}

TEST_CASE("attention runs over as many tokens as models have") {
  uint64_t seed = 10;
  for (const uint64_t tokens : {197, 257, 577, 1370, 4096}) {
    check_op(op_attention, fused(random_inputs({1, 1, tokens, tokens, 4, 4}, DType::f32, seed += 10)));
    check_op(op_attention, fused(random_inputs({1, 1, 67, tokens, 64, 64}, DType::f32, seed += 10)));
    check_op(op_attention, fused(random_inputs({1, 1, tokens, 67, 64, 64}, DType::f16, seed += 10)));
  }
  check_op(op_attention, fused(random_inputs({1, 1, 577, 577, 64, 64}, DType::f32, seed += 10)));
}

TEST_CASE("attention takes heads of every width from 4 to 256") {
  uint64_t seed = 10;
  for (const uint64_t width : {4, 12, 33, 48, 72, 80, 96, 128, 160, 255, 256}) {
    const DType dtype = width % 8 == 4 ? DType::f16 : DType::f32;
    const bool shown_by_others = width == 12 || width == 96 || width == 160 || width == 256;
    if (shown_by_others && compiles_slowly()) continue;
    check_op(op_attention, fused(random_inputs({1, 2, 67, 67, width, width}, dtype, seed += 10)));
  }
}

TEST_CASE("attention reads q, k and v where a projection wrote them") {
  constexpr uint64_t batch = 2, tokens = 50, heads = 3, width = 24;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const HostTensor qkv = random_tensor({batch, tokens, 3 * heads * width}, dtype, 5, -2, 2);
    const auto part = [&](uint64_t i) {
      return reference::Heads{qkv.values, tokens, 3 * heads * width, i * heads * width, width};
    };
    OpCase c;
    c.label = "qkv in one tensor";
    c.inputs = {{qkv}};
    c.build = [](Graph& graph, std::span<const ValueId> ids) -> std::vector<ValueId> {
      const AttentionOptions options{.heads = heads,
                                     .key_width = width,
                                     .k_offset = heads * width,
                                     .v_offset = 2 * heads * width,
                                     .scale = 0.25};
      return {attention(graph, "y", ids[0], ids[0], ids[0], options).out};
    };
    c.expected = {reference::attention(part(0), part(1), part(2), batch, heads, 0.25).out};
    check_op(op_attention, c);
  }
}

// Whole numbers and a scale of 4 make scores of several thousand that are exact in f32: what is left is the
// softmax, which must neither overflow nor lose the rows whose maximum comes late.
TEST_CASE("attention's softmax is stable for large scores") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    Inputs in = random_inputs({1, 2, 65, 113, 64, 64}, dtype, 3);
    for (HostTensor* tensor : {&in.q, &in.k}) {
      for (double& value : tensor->values) value = std::round(value * 4);
    }
    in.options.scale = 4;
    check_op(op_attention, fused(in));
    check_op(op_plain_attention, plain(in));
  }
}

TEST_CASE("attention takes a negative scale, and zero") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    // Small scores on one side would go unseen, large ones overflow.
    for (const float scale : {-4.0f, 0.0f}) {
      Inputs in = random_inputs({1, 2, 19, 43, 16, 16}, dtype, 9);
      in.options.scale = scale;
      check_op(op_attention, fused(in));
    }
  }
}

TEST_CASE("attention gives keys with a score of -inf no weight") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    Inputs in = random_inputs({1, 1, 37, 77, 16, 16}, dtype, 4);
    for (uint64_t n = 0; n < 37; ++n) in.q_at(n, 3) = 1;
    for (uint64_t m = 0; m < 70; ++m) in.k_at(m, 3) = -inf;  // whole blocks of keys
    check_op(op_attention, fused(in));
    OpCase c = plain(in);
    c.allow_nonfinite = true;  // the scores themselves
    check_op(op_plain_attention, c);
  }
}

TEST_CASE("attention lets NaN and infinity through, and only where they belong") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {DType::f32, DType::f16}) {
    const auto check = [](const Inputs& in) {
      OpCase c = fused(in);
      c.allow_nonfinite = true;
      check_op(op_attention, c);
      c = plain(in);
      c.allow_nonfinite = true;
      check_op(op_plain_attention, c);
    };
    const Size size{1, 1, 37, 77, 16, 16};
    Inputs query = random_inputs(size, dtype, 5);
    query.q_at(36, 15) = nan;  // one row
    query.q_at(2, 0) = inf;    // scores of both signs
    check(query);

    Inputs key = random_inputs(size, dtype, 6);
    key.k_at(76, 0) = nan;  // every row, through the last key
    check(key);

    Inputs value = random_inputs(size, dtype, 7);
    value.v_at(40, 5) = nan;  // one column
    value.v_at(76, 9) = inf;
    check(value);

    Inputs all_masked = random_inputs(size, dtype, 8);
    for (uint64_t n = 0; n < 37; ++n) all_masked.q_at(n, 3) = 1;
    for (uint64_t m = 0; m < 77; ++m) all_masked.k_at(m, 3) = -inf;
    check(all_masked);
  }
}

TEST_CASE("attention makes NaN of a row with a NaN, wherever it stands") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const Inputs in = random_inputs({1, 2, 35, 77, 16, 12}, dtype, 5);
    check_nan(op_attention, fused(in), [in](auto values) {
      Inputs changed = in;
      changed.q.values = values[0];
      changed.k.values = values[1];
      changed.v.values = values[2];
      reference::Attention expected = refer(changed);
      return std::vector{std::move(expected.out), std::move(expected.lse)};
    });
  }
}

TEST_CASE("every tile of attention's tiled kernel is right at its edges") {
  REQUIRE(attention_tiles().size() == all_tiles.size());
  check_op(op_attention_tiles,
           fused(random_inputs({1, 2, 37, 43, 20, 12}, DType::f32, 1), op_attention_tiles));
  check_op(op_attention_tiles,
           fused(random_inputs({1, 1, 35, 33, 7, 70}, DType::f16, 2, 1), op_attention_tiles));
  check_op(op_attention_tiles,
           fused(random_inputs({1, 1, 67, 131, 64, 64}, DType::f32, 3), op_attention_tiles));
}

TEST_CASE("every block of attention's cooperative matrices is right at its edges") {
  const Capabilities& device = test_device().device->capabilities();
  if (!device.supports(Need::coopmat))
    SKIP("attention coopmat not run: the device has no cooperative matrices");
  check_blocks(op_attention_coopmat);
}

TEST_CASE("every block of attention whose scores stay in registers is right at its edges") {
  const Capabilities& device = test_device().device->capabilities();
  if (!device.supports(Need::coopmat))
    SKIP("attention coopmat_columns not run: the device has no cooperative matrices");
  if (device.matrix_sums == MatrixSums::unknown)
    SKIP("attention coopmat_columns not run: it isn't known how the device's matrices lie in its lanes");
  check_blocks(op_attention_columns);
}

TEST_CASE("every block of attention's flexible matrices is right at its edges") {
  const Capabilities& device = test_device().device->capabilities();
  const Need needs = Need::coopmat2_elements | Need::coopmat2_reductions | Need::coopmat2_conversions;
  if (!device.supports(needs)) {
    SKIP("attention coopmat_flexible not run: it needs " << to_string(needs) << ", the device has "
                                                         << to_string(device.has));
  }
  check_blocks(op_attention_flexible);
}

TEST_CASE("every block of attention's workgroup matrices is right at its edges") {
  const Capabilities& device = test_device().device->capabilities();
  const Need needs = Need::coopmat2_elements | Need::coopmat2_reductions | Need::coopmat2_conversions |
                     Need::coopmat2_tensors | Need::coopmat2_workgroups;
  if (!device.supports(needs)) {
    SKIP("attention coopmat2 not run: it needs " << to_string(needs) << ", the device has "
                                                 << to_string(device.has));
  }
  check_blocks(op_attention_coopmat2);
}

TEST_CASE("plain_attention matches the float64 reference") {
  uint64_t seed = 10;
  for (const DType dtype : {DType::f32, DType::f16}) {
    check_op(op_plain_attention, plain(random_inputs({1, 1, 2, 3, 4, 4}, dtype, seed += 10)));
    check_op(op_plain_attention, plain(random_inputs({2, 3, 17, 50, 48, 20}, dtype, seed += 10, 3, 2)));
    check_op(op_plain_attention, plain(random_inputs({1, 2, 65, 65, 64, 64}, dtype, seed += 10)));
  }
}

}  // namespace vitrine::test

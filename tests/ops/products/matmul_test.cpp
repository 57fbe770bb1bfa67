#include "runtime/ops/products/matmul.h"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/check/reference_gradients.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "tests/ops/products/arrangements.h"
#include "tests/support/op_test.h"
#include "tests/support/reference_matmul.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

struct Size {
  uint64_t m, n, k;
};
struct Types {
  DType in, out;
};
constexpr Types f32{DType::f32, DType::f32}, f16{DType::f16, DType::f16}, f16_f32{DType::f16, DType::f32};

struct Parts {
  bool bias = false, scale = false, residual = false;
  Activation activation = Activation::none;
};
// Activations have a test of their own. What other tests ask for is then the same kernels as here.
constexpr Parts all_parts{.bias = true, .scale = true, .residual = true};

// Operands that lie column by column.
struct Transposed {
  bool x = false, weight = false;
};

// The inputs of a case before its reference is computed, so that a test can change them.
struct Inputs {
  Size size;
  Types types;
  Parts parts;
  HostTensor x, weight, bias, scale, residual;
};

Inputs random_inputs(Size size, Types types, Parts parts, uint64_t seed = 1) {
  return {size,
          types,
          parts,
          random_tensor({size.m, size.k}, types.in, seed),
          random_tensor({size.n, size.k}, types.in, seed + 1),
          random_tensor({size.n}, DType::f32, seed + 2),
          random_tensor({size.n}, DType::f32, seed + 3),
          random_tensor({size.m, size.n}, DType::f32, seed + 4)};
}

// `op` is op_matmul, or one whose kernels are a choice of matmul's.
OpCase make_case(const Inputs& in, const OpDef& op = op_matmul, Role weight = Role::constant,
                 Transposed transposed = {}) {
  const auto [m, n, k] = in.size;
  const Parts parts = in.parts;
  OpCase c;
  c.label = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " " +
            std::string(name_of(in.types.in)) + " to " + std::string(name_of(in.types.out)) +
            ", activation " + std::string(name_of(parts.activation)) + (parts.bias ? ", bias" : "") +
            (parts.scale ? ", scale" : "") + (parts.residual ? ", residual" : "");
  c.inputs = {{in.x, Role::input}, {in.weight, weight}};
  if (transposed.x) c.inputs[0].tensor = {{k, m}, in.types.in, reference::transpose(in.x.values, m, k)};
  if (transposed.weight) {
    c.inputs[1].tensor = {{k, n}, in.types.in, reference::transpose(in.weight.values, n, k)};
  }
  if (transposed.x || transposed.weight) {
    c.label +=
        std::string(", transposed") + (transposed.x ? " x" : "") + (transposed.weight ? " weight" : "");
  }
  reference::Epilogue epilogue{.activation = parts.activation};
  if (parts.bias) {
    c.inputs.push_back({in.bias, Role::constant});
    epilogue.bias = in.bias.values;
  }
  if (parts.scale) {
    c.inputs.push_back({in.scale, Role::constant});
    epilogue.scale = in.scale.values;
  }
  if (parts.residual) {
    c.inputs.push_back({in.residual, Role::input});
    epilogue.residual = in.residual.values;
  }
  c.build = [parts, transposed, out = in.types.out, &op](
                Graph& graph, std::span<const ValueId> ids) -> std::vector<ValueId> {
    size_t at = 2;
    const ValueId bias = parts.bias ? ids[at++] : ValueId{};
    const ValueId scale = parts.scale ? ids[at++] : ValueId{};
    const ValueId residual = parts.residual ? ids[at++] : ValueId{};
    Attributes attributes{{"activation", static_cast<int64_t>(parts.activation)},
                          {"out", static_cast<int64_t>(out)}};
    if (transposed.x) attributes.set("transposed_x", int64_t{1});
    if (transposed.weight) attributes.set("transposed_weight", int64_t{1});
    if (&op == &op_matmul && !transposed.x && !transposed.weight) {
      return {matmul(
          graph, "y", ids[0], ids[1],
          {.bias = bias, .activation = parts.activation, .scale = scale, .residual = residual, .out = out})};
    }
    return graph.add(op, "y", {ids[0], ids[1], bias, scale, residual}, attributes);
  };
  c.expected = {reference::matmul(in.x.values, in.weight.values, m, n, k, epilogue)};
  return c;
}

void check(Size size, Types types, Parts parts, uint64_t seed = 1) {
  check_op(op_matmul, make_case(random_inputs(size, types, parts, seed)));
}

// One kernel a tile and number of slices of K, whatever lower_tiled would choose for the shape.
constexpr std::array slice_counts{1u, 2u, 3u, 5u, 8u};
constexpr size_t tile_count = 10;
template <size_t index>
constexpr std::array tile_name{static_cast<char>('0' + index / slice_counts.size()), '/',
                               static_cast<char>('0' + slice_counts[index % slice_counts.size()])};
template <bool mixed, size_t index>
std::optional<std::string> refuse_tile(const LowerContext& context) {
  if (!fits(tiled_shapes()[index / slice_counts.size()], context.device())) return "does not fit";
  if (mixed) return refuse_mixed(context);
  return refuse_tiled(context);
}
template <bool mixed, size_t index>
Lowered lower_tile(const LowerContext& context) {
  TiledShape shape = tiled_shapes()[index / slice_counts.size()];
  shape.slices = slice_counts[index % slice_counts.size()];
  shape.mixed = mixed;
  shape.one_way = index / slice_counts.size() % 2 == 1;
  return lower_tiled_as(context, shape);
}
template <bool mixed, size_t... indices>
constexpr auto tile_kernels(std::index_sequence<indices...>) {
  return std::array{KernelDef{{tile_name<indices>.data(), tile_name<indices>.size()},
                              Target::any,
                              refuse_tile<mixed, indices>,
                              no_preference,
                              lower_tile<mixed, indices>}...};
}
using tile_indices = std::make_index_sequence<tile_count * slice_counts.size()>;
constexpr auto all_tiles = tile_kernels<false>(tile_indices());
constexpr auto all_mixed_tiles = tile_kernels<true>(tile_indices());
const OpDef op_matmul_tiles{"matmul_tiles", infer_matmul, matmul_flops, all_tiles};
const OpDef op_matmul_mixed{"matmul_mixed", infer_matmul, matmul_flops, all_mixed_tiles};
// One tile is enough for what all have in common. A software driver compiles each for a second or more.
constexpr auto one_tile = std::span(all_tiles).subspan(4 * slice_counts.size(), slice_counts.size());
constexpr auto one_mixed_tile =
    std::span(all_mixed_tiles).subspan(4 * slice_counts.size(), slice_counts.size());
const OpDef op_matmul_slices{"matmul_slices", infer_matmul, matmul_flops, one_tile};
const OpDef op_matmul_mixed_slices{"matmul_mixed_slices", infer_matmul, matmul_flops, one_mixed_tile};

// Likewise for the arrangements of cooperative matrices, of which a device may be able to run only some.
constexpr size_t most_arrangements = 99;
// Every arrangement with steps of each length, one buffer and two, one and three steps on their way, and a
// step's products one by one and in a loop.
std::vector<CoopmatShape> staged_in_every_way(const std::vector<CoopmatShape>& shapes,
                                              const Capabilities& device) {
  struct Staging {
    uint32_t step_k, buffers, ahead;
  };
  std::vector<CoopmatShape> out;
  for (CoopmatShape shape : shapes) {
    if (shape.ahead > 1) continue;  // another one's arrangement
    for (const auto& [step_k, buffers, ahead] : {Staging{32, 2, 1}, {64, 1, 1}, {shape.matrix.k, 2, 3}}) {
      if (step_k % shape.matrix.k != 0) continue;
      shape.rolled = buffers == 1;
      shape.step_k = step_k;
      shape.buffers = buffers;
      shape.ahead = ahead;
      if (shape.shared_bytes() <= device.max_shared_bytes) out.push_back(shape);
    }
  }
  return out;
}
// And some whose K is cut, also into more slices than it has steps.
std::vector<CoopmatShape> with_slices(std::vector<CoopmatShape> shapes) {
  for (const uint32_t slices : {2u, 3u, 8u}) {
    if (shapes.empty()) break;
    CoopmatShape sliced = shapes[slices % shapes.size()];
    sliced.slices = slices;
    shapes.push_back(sliced);
  }
  return shapes;
}
std::vector<CoopmatShape> staged_coopmat(const Capabilities& device) {
  return with_slices(staged_in_every_way(coopmat_shapes(device), device));
}
std::vector<CoopmatShape> staged_flexible(const Capabilities& device) {
  return with_slices(staged_in_every_way(coopmat_flexible_shapes(device), device));
}

using EveryArrangement = std::make_index_sequence<most_arrangements>;
constexpr auto all_coopmat =
    arrangement_kernels<staged_coopmat, refuse_coopmat, lower_coopmat_as>(EveryArrangement());
constexpr auto all_flexible =
    arrangement_kernels<staged_flexible, refuse_coopmat_flexible, lower_coopmat_flexible_as>(
        EveryArrangement());
constexpr auto all_coopmat2 =
    arrangement_kernels<coopmat2_shapes, refuse_coopmat2, lower_coopmat2_as>(EveryArrangement());
const OpDef op_matmul_coopmat{"matmul_coopmat_shapes", infer_matmul, matmul_flops, all_coopmat};
const OpDef op_matmul_flexible{"matmul_flexible_shapes", infer_matmul, matmul_flops, all_flexible};
const OpDef op_matmul_coopmat2{"matmul_coopmat2_shapes", infer_matmul, matmul_flops, all_coopmat2};

// Edges in every direction, rows that allow wide accesses and rows that don't, and with nothing fused whole
// parts that are stored straight from the accumulators.
void check_at_odd_edges(const OpDef& op) {
  check_op(op, make_case(random_inputs({75, 69, 37}, f16_f32, all_parts), op));
}
void check_at_wide_edges(const OpDef& op) {
  check_op(op, make_case(random_inputs({67, 136, 72}, f16, {}), op));
}
// Some subgroups store without strips, others with.
void check_at_mixed_edges(const OpDef& op) {
  check_op(op, make_case(random_inputs({40, 36, 64}, f16_f32, {}), op));
}
void check_arrangements(const OpDef& op) {
  check_at_odd_edges(op);
  check_at_wide_edges(op);
  check_at_mixed_edges(op);
}

// Those of matrices as the device lists them are many: three tests, which several processors share.
void require_listed_arrangements() {
  const Capabilities& device = test_device().device->capabilities();
  if (coopmat_shapes(device).empty()) SKIP("the device lists no cooperative matrix of f16 x f16 + f32");
  REQUIRE(staged_coopmat(device).size() <= most_arrangements);
}

}  // namespace

TEST_CASE("matmul matches the float64 reference in f32") {
  uint64_t seed = 10;
  for (const Size size : {Size{1, 1, 1},
                          {1, 3, 7},
                          {3, 1, 17},
                          {7, 31, 3},
                          {17, 7, 48},
                          {31, 65, 1},
                          {48, 17, 31},
                          {64, 48, 65},
                          {65, 113, 64},
                          {113, 64, 113},
                          {192, 31, 197},
                          {197, 192, 48},
                          {1, 197, 768},
                          {3, 768, 192},
                          {197, 113, 192}}) {
    check(size, f32, all_parts, seed += 10);
  }
}

TEST_CASE("matmul matches the float64 reference in f16") {
  uint64_t seed = 10;
  for (const Size size : {Size{1, 1, 1},
                          {3, 7, 17},
                          {17, 31, 3},
                          {31, 48, 64},
                          {65, 17, 113},
                          {113, 65, 48},
                          {64, 197, 31},
                          {197, 192, 65},
                          {1, 192, 768}}) {
    check(size, f16, all_parts, seed += 10);
  }
}

TEST_CASE("matmul matches the float64 reference from f16 to f32") {
  uint64_t seed = 10;
  for (const Size size : {Size{1, 3, 1}, {7, 17, 31}, {48, 65, 7}, {65, 64, 48}, {197, 113, 192}}) {
    check(size, f16_f32, all_parts, seed += 10);
  }
}

TEST_CASE("matmul takes weights that are computed") {
  uint64_t seed = 10;
  for (const Types types : {f32, f16, f16_f32}) {
    for (const Size size : {Size{1, 1, 1}, {17, 7, 48}, {113, 64, 113}}) {
      OpCase c = make_case(random_inputs(size, types, all_parts, seed += 10), op_matmul, Role::input);
      c.label += ", weight computed";
      check_op(op_matmul, c);
    }
  }
}

constexpr Transposed in_every_way[] = {{true, false}, {false, true}, {true, true}};

TEST_CASE("matmul reads transposed operands") {
  uint64_t seed = 10, number = 0;
  for (const Transposed transposed : in_every_way) {
    for (const Role role : {Role::input, Role::constant}) {
      for (const Size size : {Size{1, 1, 1},
                              {3, 1, 17},
                              {17, 7, 48},
                              {31, 65, 1},
                              {64, 48, 65},
                              {113, 64, 113},
                              {68, 36, 400},
                              {137, 70, 150},
                              {197, 192, 35}}) {
        if (compiles_slowly() && number++ % 4 != 0) continue;  // each size in some way
        check_op(op_matmul,
                 make_case(random_inputs(size, f32, all_parts, seed += 10), op_matmul, role, transposed));
      }
    }
    for (const Types types : {f16, f16_f32}) {
      check_op(op_matmul, make_case(random_inputs({33, 68, 70}, types, all_parts, seed += 10), op_matmul,
                                    Role::input, transposed));
    }
  }
}

TEST_CASE("every tile of matmul's tiled kernel reads transposed operands") {
  for (const Transposed transposed : in_every_way) {
    check_op(op_matmul_slices, make_case(random_inputs({137, 135, 203}, f32, all_parts), op_matmul_slices,
                                         Role::input, transposed));
    check_op(op_matmul_slices,
             make_case(random_inputs({132, 68, 64}, f16, {}), op_matmul_slices, Role::input, transposed));
  }
  check_op(op_matmul_tiles, make_case(random_inputs({68, 70, 35}, f32, {}), op_matmul_tiles, Role::input,
                                      {.x = true, .weight = true}));
}

TEST_CASE("transposed operands let NaN and infinity through, and only where they belong") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const Transposed transposed : in_every_way) {
    Inputs inputs = random_inputs({37, 35, 41}, f32, {});
    inputs.x.values[2 * 41 + 40] = nan;
    inputs.x.values[36 * 41] = inf;
    inputs.weight.values[34 * 41 + 40] = inf;
    inputs.weight.values[7 * 41 + 3] = nan;
    OpCase c = make_case(inputs, op_matmul, Role::input, transposed);
    c.allow_nonfinite = true;
    check_op(op_matmul, c);
  }
}

TEST_CASE("matmul runs a ViT's layers") {
  check({197, 192, 192}, f32, {.bias = true, .residual = true});
  check({197, 768, 192}, f16, {.bias = true, .activation = Activation::gelu});
  check({197, 768, 768}, f32, {.bias = true, .residual = true});
}

TEST_CASE("matmul keeps its precision over 4096 products") {
  OpCase c = make_case(random_inputs({33, 31, 4096}, f32, all_parts));
  c.tolerance = 5e-6;
  check_op(op_matmul, c);
}

TEST_CASE("matmul applies every set of epilogue parts and every activation in f32") {
  const auto check_parts = [](int parts, int activation) {
    check({5, 7, 9}, f32,
          {(parts & 1) != 0, (parts & 2) != 0, (parts & 4) != 0, static_cast<Activation>(activation)},
          static_cast<uint64_t>(parts * 10 + activation));
  };
  // Parts know nothing of the activation: with all of them each activation, and each other set with one.
  for (int activation = 0; activation < VITRINE_ACTIVATION_COUNT; ++activation) check_parts(7, activation);
  for (int parts = 0; parts < 7; ++parts) check_parts(parts, parts % VITRINE_ACTIVATION_COUNT);
}

TEST_CASE("matmul applies epilogue parts in f16") {
  check({5, 7, 9}, f16, {});
  check({5, 7, 9}, f16, {.scale = true, .residual = true, .activation = Activation::gelu});
  check({5, 7, 9}, f16, {.bias = true, .activation = Activation::gelu_tanh});
  check({5, 7, 9}, f16_f32, {.bias = true, .scale = true, .residual = true, .activation = Activation::silu});
}

// Small multiples of a quarter: every product and sum is exact in f32, and so is the result in f16.
TEST_CASE("matmul is exact where float arithmetic is") {
  for (const Types types : {f32, f16, f16_f32}) {
    for (const Size size : {Size{65, 48, 31}, {197, 65, 48}}) {
      Inputs inputs = random_inputs(size, types, {.bias = true, .scale = true, .residual = true});
      for (HostTensor* tensor : {&inputs.x, &inputs.weight, &inputs.bias, &inputs.residual}) {
        for (double& value : tensor->values) value = std::round(value * 4) / 4;
      }
      for (double& value : inputs.scale.values) value = value < 0 ? -0.5 : 1;
      OpCase c = make_case(inputs);
      c.exact = true;
      check_op(op_matmul, c);
    }
  }
}

TEST_CASE("matmul lets NaN and infinity through, and only where they belong") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const Types types : {f32, f16, f16_f32}) {
    Inputs inputs = random_inputs({37, 35, 33}, types, {.bias = true, .scale = true, .residual = true});
    inputs.x.values[2 * 33 + 32] = nan;        // row 2
    inputs.x.values[36 * 33] = inf;            // row 36: signs follow the weights
    inputs.weight.values[34 * 33 + 31] = nan;  // column 34
    inputs.bias.values[7] = -inf;              // column 7
    inputs.residual.values[4 * 35 + 5] = nan;
    OpCase c = make_case(inputs);
    c.allow_nonfinite = true;
    check_op(op_matmul, c);
  }
}

TEST_CASE("every tile of matmul's tiled kernel is right at its edges, K whole and in slices") {
  REQUIRE(tiled_shapes().size() == tile_count);
  check_op(op_matmul_tiles, make_case(random_inputs({137, 135, 203}, f32, all_parts), op_matmul_tiles));
  check_op(op_matmul_tiles, make_case(random_inputs({70, 133, 100}, f16, all_parts), op_matmul_tiles));
}

TEST_CASE("every tile of matmul's tiled kernel runs a ViT's layer, K whole and in slices") {
  check_op(op_matmul_tiles, make_case(random_inputs({197, 192, 192}, f32, all_parts), op_matmul_tiles));
}

void require_half_arithmetic() {
  if (!test_device().device->capabilities().supports(Need::storage16 | Need::fp16)) {
    SKIP("the device has no arithmetic on halves");
  }
}

TEST_CASE("every tile of halves is right at its edges, K whole and in slices") {
  require_half_arithmetic();
  check_op(op_matmul_mixed, make_case(random_inputs({129, 68, 203}, f16, all_parts), op_matmul_mixed));
  for (const Types types : {f16, f16_f32}) {
    check_op(op_matmul_mixed_slices,
             make_case(random_inputs({70, 135, 100}, types, {}), op_matmul_mixed_slices));
    check_op(op_matmul_mixed_slices,
             make_case(random_inputs({197, 68, 192}, types, {}), op_matmul_mixed_slices));
  }
}

// Products of halves reach 65504 squared, and sums of them have more digits than a half: both are f32's.
TEST_CASE("products of halves neither overflow nor lose digits") {
  for (const uint64_t rows : {3u, 33u}) {
    Inputs inputs = random_inputs({rows, 37, 100}, f16_f32, {});
    for (HostTensor* tensor : {&inputs.x, &inputs.weight}) {
      for (double& value : tensor->values) value = round_to(DType::f16, value * 60000);
    }
    check_op(op_matmul, make_case(inputs));
    check_op(op_matmul_slices, make_case(inputs, op_matmul_slices));
    if (test_device().device->capabilities().supports(Need::storage16 | Need::fp16)) {
      check_op(op_matmul_mixed_slices, make_case(inputs, op_matmul_mixed_slices));
    }
  }
}

TEST_CASE("slices of K let NaN and infinity through, and only where they belong") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  Inputs inputs = random_inputs({37, 35, 133}, f32, {.bias = true, .residual = true});
  inputs.x.values[2 * 133 + 132] = nan;  // the last slice of row 2
  inputs.x.values[36 * 133] = inf;       // the first slice of row 36
  inputs.weight.values[34 * 133 + 70] = nan;
  inputs.residual.values[4 * 35 + 5] = -inf;
  OpCase c = make_case(inputs, op_matmul_slices);
  c.allow_nonfinite = true;
  check_op(op_matmul_slices, c);
}

TEST_CASE("matmul runs every number of rows that the kernel for few of them takes") {
  uint64_t seed = 300;
  for (uint64_t rows = 1; rows <= 8; ++rows) {
    check({rows, 37, 264}, f32, all_parts, seed += 10);
    check({rows, 10, 264}, f16, all_parts, seed += 10);
  }
  check({1, 1000, 192}, f32, {.bias = true});
  check({8, 1000, 192}, f16_f32, {.bias = true});
  check({5, 9, 1031}, f32, {});
  check({6, 3, 1031}, f16, {});
}

TEST_CASE("every arrangement of matmul's cooperative matrices is right at odd edges") {
  require_listed_arrangements();
  check_at_odd_edges(op_matmul_coopmat);
}

TEST_CASE("every arrangement of matmul's cooperative matrices is right at edges of wide accesses") {
  require_listed_arrangements();
  check_at_wide_edges(op_matmul_coopmat);
}

TEST_CASE(
    "every arrangement of matmul's cooperative matrices is right where some subgroups store without strips") {
  require_listed_arrangements();
  check_at_mixed_edges(op_matmul_coopmat);
}

TEST_CASE("every arrangement of matmul's flexible matrices is right at its edges") {
  const Capabilities& device = test_device().device->capabilities();
  if (coopmat_flexible_shapes(device).empty()) {
    SKIP("matmul coopmat_flexible not run: the device lists no flexible matrix of f16 x f16 + f32");
  }
  REQUIRE(staged_flexible(device).size() <= most_arrangements);
  check_arrangements(op_matmul_flexible);
}

TEST_CASE("every tile of matmul's workgroup matrices is right at its edges") {
  const Capabilities& device = test_device().device->capabilities();
  const Need needs = Need::coopmat2_elements | Need::coopmat2_tensors | Need::coopmat2_workgroups;
  if (!device.supports(needs) || coopmat2_shapes(device).empty()) {
    SKIP("matmul coopmat2 not run: it needs " << to_string(needs) << ", the device has "
                                              << to_string(device.has));
  }
  REQUIRE(coopmat2_shapes(device).size() <= most_arrangements);
  check_arrangements(op_matmul_coopmat2);
}

// The second product adds to the first one's result, which nothing else reads: it takes over its memory.
void check_residual_stream(const OpDef& op) {
  constexpr uint64_t m = 45, n = 34, k = 21;
  const HostTensor x = random_tensor({m, k}, DType::f32, 1), w1 = random_tensor({n, k}, DType::f32, 2);
  const HostTensor w2 = random_tensor({n, k}, DType::f32, 3), w3 = random_tensor({m, n}, DType::f32, 4);
  OpCase c;
  c.label = "residual stream";
  c.inputs = {{x, Role::input}, {w1, Role::constant}, {w2, Role::constant}, {w3, Role::constant}};
  c.build = [&op](Graph& graph, std::span<const ValueId> ids) -> std::vector<ValueId> {
    const auto product = [&](const char* name, ValueId left, ValueId weight, ValueId residual) {
      return graph.add(op, name, {left, weight, {}, {}, residual},
                       {{"activation", int64_t{0}}, {"out", static_cast<int64_t>(DType::f32)}})[0];
    };
    const ValueId first = product("first", ids[0], ids[1], {});
    const ValueId second = product("second", ids[0], ids[2], first);
    return {product("third", second, ids[3], {})};
  };
  const auto first = reference::matmul(x.values, w1.values, m, n, k, {});
  const auto second = reference::matmul(x.values, w2.values, m, n, k, {.residual = first});
  c.expected = {reference::matmul(second, w3.values, m, m, n, {})};
  check_op(op, c);
}

TEST_CASE("matmul adds to a residual in place") {
  check_residual_stream(op_matmul);
  check_residual_stream(op_matmul_slices);
}

}  // namespace vitrine::test

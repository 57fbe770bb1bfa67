#include "runtime/ops/products/rotary_matmul.h"

#include <array>
#include <catch2/catch_test_macros.hpp>

#include "runtime/check/lone_node.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/check/sample.h"
#include "runtime/ops/attention/rotary.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/util/error.h"
#include "tests/ops/products/arrangements.h"
#include "tests/support/op_test.h"
#include "tests/support/reference.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using test::HostTensor;

struct Case {
  uint64_t batch, tokens, angled;  // the last ones of the tokens have angles
  uint64_t width, turned, heads, k;
  uint64_t tables = 0;  // 0: one, for all heads
  bool bias = true;
  uint64_t columns() const { return heads * width; }
};

ValueId build(Graph& graph, std::span<const ValueId> in, const Case& c, bool halves,
              const OpDef& op = op_rotary_matmul) {
  const auto number = [](uint64_t value) { return static_cast<int64_t>(value); };
  return graph.add(op, "y", {in[0], in[1], c.bias ? in[3] : ValueId{}, {}, {}, in[2]},
                   {{"width", number(c.width)},
                    {"turned", number(c.turned)},
                    {"heads", number(c.heads)},
                    {"halves", int64_t{halves}},
                    {"back", int64_t{0}}})[0];
}

test::Results refer(const Case& c, const Shape& table, bool halves, std::span<const reference::Values> in) {
  const reference::Epilogue epilogue{.bias = c.bias ? in[3] : reference::Values()};
  const reference::Values product =
      reference::matmul(in[0], in[1], c.batch * c.tokens, c.columns(), c.k, epilogue);
  return {reference::rotary(product, {c.batch, c.tokens, c.columns()}, in[2], table,
                            {c.width, c.turned, c.heads, halves, false})};
}

test::OpCase op_case(const Case& c, DType dtype, bool halves, const OpDef& of = op_rotary_matmul) {
  std::vector<uint64_t> dims{c.angled, 2, c.width / 2};
  if (c.tables) dims.insert(dims.begin(), c.tables);
  const Shape table(dims);
  test::OpCase op;
  op.label = Shape{c.batch, c.tokens, c.k}.to_string() + " " + std::string(name_of(dtype)) + " to " +
             std::to_string(c.heads) + " heads of " + std::to_string(c.width) +
             (halves ? " in halves" : " in neighbours");
  op.inputs = {{test::random_tensor({c.batch, c.tokens, c.k}, dtype, 1)},
               {test::random_tensor({c.columns(), c.k}, dtype, 2), Role::constant},
               {test::random_tensor(table, DType::f32, 3, -1, 1), Role::constant}};
  if (c.bias) op.inputs.push_back({test::random_tensor({c.columns()}, DType::f32, 4), Role::constant});
  std::vector<reference::Values> values;
  for (const auto& input : op.inputs) values.push_back(input.tensor.values);
  op.expected = refer(c, table, halves, values);
  op.build = [=, &of](Graph& graph, std::span<const ValueId> in) {
    return std::vector{build(graph, in, c, halves, of)};
  };
  return op;
}

// A software driver compiles each size and way for a second or more: so two ways of most, and of these one
// after the other where it compiles for three. It chooses this operator nowhere: a CPU turns in a pass of its
// own.
struct Way {
  DType dtype;
  bool halves;
};
constexpr Way in_halves[] = {{DType::f32, true}, {DType::f16, true}},
              in_neighbours[] = {{DType::f32, false}, {DType::f16, false}},
              one_of_each[] = {{DType::f32, true}, {DType::f16, false}};

void check(const Case& c, std::span<const Way> ways = one_of_each,
           void (*check_case)(const OpDef&, const test::OpCase&) = test::check_op) {
  static size_t slow_cases = 0;
  if (test::compiles_slowly()) ways = ways.subspan(slow_cases++ % ways.size(), 1);
  for (const Way& way : ways) check_case(op_rotary_matmul, op_case(c, way.dtype, way.halves));
}

// What devices of other kinds choose and this one doesn't: tiles of halves, as RDNA and Apple have them, and
// whole lines in one buffer with each lane's columns kept, as NVIDIA's cards have matrices.
template <uint32_t slices>
Lowered lower_halves(const LowerContext& context) {
  TiledShape shape = tiled_shapes()[4];
  shape.mixed = true;
  shape.slices = slices;
  return lower_tiled_as(context, shape);
}
constexpr std::array halves_kernels{
    KernelDef{"whole", Target::any, refuse_mixed, no_preference, lower_halves<1>},
    KernelDef{"slices", Target::any, refuse_mixed, no_preference, lower_halves<3>}};
const OpDef op_halves{"rotary_matmul_halves", op_rotary_matmul.infer, matmul_flops, halves_kernels};

std::vector<CoopmatShape> in_lines(const Capabilities& device) {
  const std::vector<CoopmatShape> shapes = coopmat_shapes(device);
  std::vector<CoopmatShape> lines;
  for (CoopmatShape shape : shapes) {
    shape.rolled = true;
    shape.buffers = 1;
    shape.step_k = 64;
    shape.ahead = 1;
    const bool fits = shape.step_k % shape.matrix.k == 0 && shape.shared_bytes() <= device.max_shared_bytes;
    if (fits && lines.size() < 3) lines.push_back(shape);
  }
  if (lines.empty()) return lines;
  lines.push_back(lines.front());
  lines.back().slices = 2;
  return lines;
}
constexpr auto line_kernels =
    test::arrangement_kernels<in_lines, refuse_coopmat, lower_coopmat_as>(std::make_index_sequence<4>());
const OpDef op_lines{"rotary_matmul_lines", op_rotary_matmul.infer, matmul_flops, line_kernels};

TEST_CASE("rotary_matmul turns the queries and keys of models' sizes") {
  check({2, 17, 16, 64, 6, 6, 64, 3}, in_neighbours);  // queries alone, frequencies of every head
  check({1, 50, 49, 88, 4, 6, 176}, in_neighbours);    // heads of EVA giant's width
  check({2, 101, 96, 64, 12, 18, 384}, in_halves);     // DINOv3 S, pictures that aren't square
  check({1, 201, 196, 64, 24, 36, 768}, in_halves);    // DINOv3 B, of which the values come along
}

TEST_CASE("rotary_matmul takes odd sizes") {
  for (const uint64_t width : {4, 60}) check({2, 5, 3, width, 3, 5, 37});
  check({1, 1, 1, 4, 1, 1, 1});
  check({3, 7, 7, 24, 2, 3, 8, 2, false});
}

TEST_CASE("rotary_matmul is right in every tile and slice") {
  check({2, 67, 64, 64, 2, 3, 96}, one_of_each, test::check_configurations);
  check({1, 37, 36, 32, 2, 3, 1536}, one_of_each, test::check_configurations);
}

TEST_CASE("rotary_matmul is right in tiles of halves, whole and in slices") {
  if (!test::test_device().device->capabilities().supports(Need::storage16 | Need::fp16))
    SKIP("the device has no arithmetic on halves");
  for (const bool halves : {false, true})
    test::check_op(op_halves, op_case({2, 67, 64, 64, 2, 3, 100}, DType::f16, halves, op_halves));
}

TEST_CASE("rotary_matmul is right in whole lines of matrices, whose lanes keep their columns") {
  const Capabilities& device = test::test_device().device->capabilities();
  if (in_lines(device).empty()) SKIP("the device lists no cooperative matrix of f16 x f16 + f32");
  for (const bool halves : {false, true}) {
    const test::OpCase c = op_case({2, 67, 64, 64, 2, 3, 136}, DType::f16, halves, op_lines);
    const std::shared_ptr<const Graph> graph = graph_of(c);
    const LowerContext context(*graph, graph->nodes()[0], device);
    bool kept = false;
    for (const CoopmatShape& shape : in_lines(device)) {
      if (shape.slices == 1)
        kept |= lower_coopmat_as(context, shape).dispatches[0].constant("keep_columns") != 0;
    }
    CHECK(kept);
    test::check_op(op_lines, c);
  }
}

TEST_CASE("rotary_matmul's sample is what float64 says of its rows") {
  const Case c{3, 37, 33, 16, 2, 3, 20, 2};
  for (const bool halves : {false, true}) {
    const test::OpCase op = op_case(c, DType::f32, halves);
    const std::shared_ptr<const Graph> graph = graph_of(op);
    const reference::LoneNode lone(*graph, graph->nodes()[0]);
    const std::vector<reference::Values> values{lone.values(0), lone.values(1), lone.values(5),
                                                lone.values(2)};
    const reference::Values all = refer(c, op.inputs[2].tensor.shape, halves, values)[0];
    const std::vector<reference::Sample> samples = rotary_matmul_sample(lone);
    REQUIRE(samples.size() == 1);
    CHECK(samples[0].elements.size() > c.columns());
    reference::Values picked;
    for (const uint64_t element : samples[0].elements) picked.push_back(all[element]);
    CHECK(samples[0].expected == picked);
  }
}

TEST_CASE("rotary_matmul passes a NaN on to what reads it") {
  const Case c{1, 5, 3, 8, 2, 3, 12};
  for (const bool halves : {false, true}) {
    test::check_nan(op_rotary_matmul, op_case(c, DType::f32, halves),
                    [=](std::span<const reference::Values> in) { return refer(c, {3, 2, 4}, halves, in); });
  }
}

TEST_CASE("rotary_matmul refuses what does not fit") {
  Graph graph;
  const ValueId x = graph.input("x", {2, 5, 12}), weight = graph.constant("w", {24, 12});
  const ValueId table = graph.constant("t", {3, 2, 4}), bias = graph.constant("b", {24});
  const std::vector<ValueId> good{x, weight, table, bias};
  CHECK_NOTHROW(build(graph, good, {2, 5, 3, 8, 2, 3, 12}, true));
  CHECK_THROWS_AS(build(graph, good, {2, 5, 3, 8, 2, 2, 12}, true), Error);  // not all columns
  CHECK_THROWS_AS(build(graph, good, {2, 5, 3, 8, 4, 3, 12}, true), Error);  // more heads than there are
  CHECK_THROWS_AS(build(graph, std::vector{x, weight, graph.constant("t6", {3, 2, 3}), bias},
                        {2, 5, 3, 6, 2, 4, 12}, true),
                  Error);  // no fours
  CHECK_THROWS_AS(build(graph, std::vector{x, weight, graph.constant("long", {6, 2, 4}), bias},
                        {2, 5, 6, 8, 2, 3, 12}, true),
                  Error);
  CHECK_THROWS_AS(build(graph, std::vector{x, weight, table, graph.constant("short", {23})},
                        {2, 5, 3, 8, 2, 3, 12}, true),
                  Error);
  CHECK_THROWS_AS(
      build(graph, std::vector{x, graph.constant("v", {24, 11}), table, bias}, {2, 5, 3, 8, 2, 3, 12}, true),
      Error);
}

}  // namespace
}  // namespace vitrine

#include "runtime/ops/training/erase_boxes.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "runtime/check/reference_recipes.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/util/error.h"
#include "shaders/training/erase_boxes.h"
#include "tests/support/op_test.h"
#include "tests/support/step.h"

namespace vitrine {
namespace {

using test::HostTensor;

constexpr uint64_t seed = 0x123456789abcdef1;
constexpr uint32_t number = 41;

test::OpCase case_of(HostTensor x, HostTensor boxes, const EraseBoxesOptions& options) {
  test::OpCase c{.label = "fill " + std::to_string(options.fill) + " of " + x.shape.to_string()};
  c.expected = {
      reference::erase_boxes(x.values, x.shape, boxes.values,
                             {.fill = options.fill, .stream = options.stream, .seed = seed, .step = number})};
  c.inputs = {{std::move(x)}, {std::move(boxes)}, {test::step_tensor(seed, number)}};
  c.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{erase_boxes(graph, "y", in[0], in[1], in[2], options)};
  };
  return c;
}

// A box for each sample: none in the first, then larger ones.
HostTensor growing(const Shape& shape, uint64_t boxes) {
  HostTensor result = test::filled({shape[0], boxes, VITRINE_BOX_WORDS}, DType::u32, 0);
  for (uint64_t i = 0; i < shape[0] * boxes; ++i) {
    double* box = result.values.data() + i * VITRINE_BOX_WORDS;
    box[VITRINE_BOX_TOP] = static_cast<double>(i % shape[2] / 2);
    box[VITRINE_BOX_BOTTOM] = static_cast<double>(i % (shape[2] + 1));
    box[VITRINE_BOX_LEFT] = static_cast<double>(i % 2);
    box[VITRINE_BOX_RIGHT] = static_cast<double>(shape[3] - i % shape[3] / 3);
  }
  return result;
}

TEST_CASE("erase_boxes fills boxes and leaves the rest as it is") {
  for (const uint32_t fill : {VITRINE_ERASE_CONST, VITRINE_ERASE_RAND, VITRINE_ERASE_PIXEL}) {
    for (const Shape& shape :
         {Shape{3, 1, 2, 5}, Shape{5, 3, 7, 11}, Shape{11, 3, 32, 32}, Shape{2, 4, 97, 53}}) {
      for (const uint64_t boxes : {1, 3}) {
        test::check_op(op_erase_boxes, case_of(test::random_tensor(shape, DType::f32, 1),
                                               growing(shape, boxes), {.fill = fill, .stream = 5}));
      }
    }
  }
}

TEST_CASE("what erase_boxes leaves has its bits, and zeros are zeros") {
  const Shape shape{7, 3, 13, 11};
  test::OpCase c = case_of(test::random_tensor(shape, DType::f32, 1), growing(shape, 2), {});
  c.exact = true;
  test::check_op(op_erase_boxes, c);
}

TEST_CASE("erase_boxes draws normally distributed numbers") {
  // One sample of which all is erased, so the reference is the numbers alone; and these are as they should
  // be.
  const Shape shape{1, 1, 256, 257};
  const HostTensor box{{1, 1, VITRINE_BOX_WORDS}, DType::u32, {0, 256, 0, 257}};
  const test::OpCase c = case_of(test::filled(shape, DType::f32, 3), box, {.fill = VITRINE_ERASE_PIXEL});
  double sum = 0, squares = 0, fourth = 0;
  for (const double value : c.expected[0]) {
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
  }
  const auto count = static_cast<double>(c.expected[0].size());
  // Four standard deviations of each mean.
  CHECK(std::abs(sum / count) < 4 / std::sqrt(count));
  CHECK(std::abs(squares / count - 1) < 4 * std::sqrt(2 / count));
  CHECK(std::abs(fourth / count - 3) < 4 * std::sqrt(96 / count));
  test::check_op(op_erase_boxes, c);
}

TEST_CASE("erase_boxes takes a NaN away with its box, and no other") {
  const Shape shape{3, 2, 5, 5};
  const HostTensor boxes{{3, 1, VITRINE_BOX_WORDS}, DType::u32, {0, 2, 0, 3, 1, 4, 1, 4, 3, 5, 0, 4}};
  for (const uint32_t fill : {VITRINE_ERASE_CONST, VITRINE_ERASE_PIXEL}) {
    const test::OpCase c = case_of(test::random_tensor(shape, DType::f32, 1), boxes, {.fill = fill});
    test::check_nan(op_erase_boxes, c, [&](auto in) {
      return test::Results{
          reference::erase_boxes(in[0], shape, boxes.values, {.fill = fill, .seed = seed, .step = number})};
    });
  }
}

TEST_CASE("erase_boxes may overwrite its input") {
  const Shape shape{3, 2, 9, 7};
  test::OpCase c = case_of(test::random_tensor(shape, DType::f32, 1), growing(shape, 1), {});
  c.build = [](Graph& graph, std::span<const ValueId> in) {
    const ValueId copy = scale(graph, "copy", in[0], 1);
    return std::vector{scale(graph, "z", erase_boxes(graph, "y", copy, in[1], in[2], {}), 1)};
  };
  test::check_op(op_erase_boxes, c);
}

TEST_CASE("erase_boxes refuses what does not fit") {
  Graph graph;
  const ValueId x = graph.input("x", {4, 3, 5, 5});
  const ValueId boxes = graph.input("boxes", {4, 2, VITRINE_BOX_WORDS}, DType::u32);
  const ValueId step = graph.input("step", {VITRINE_STEP_WORDS}, DType::u32);
  CHECK_NOTHROW(erase_boxes(graph, "y", x, boxes, step, {}));
  CHECK_THROWS_AS(erase_boxes(graph, "y", x, boxes, step, {.fill = 3}), Error);
  CHECK_THROWS_AS(erase_boxes(graph, "y", x, boxes, boxes, {}), Error);
  CHECK_THROWS_AS(erase_boxes(graph, "y", x, step, step, {}), Error);
  CHECK_THROWS_AS(erase_boxes(graph, "y", graph.input("rank", {4, 75}), boxes, step, {}), Error);
}

}  // namespace
}  // namespace vitrine

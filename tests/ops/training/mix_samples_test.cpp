#include "runtime/ops/training/mix_samples.h"

#include <array>
#include <bit>
#include <catch2/catch_test_macros.hpp>

#include "runtime/check/reference_recipes.h"
#include "runtime/util/error.h"
#include "shaders/training/mix_samples.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

using test::HostTensor;

struct Mixed {
  double partner = 0;
  float own = 1, other = 0;
  std::array<double, 4> box{};
};

HostTensor words_of(const std::vector<Mixed>& samples) {
  HostTensor words = test::filled({samples.size(), VITRINE_MIX_WORDS}, DType::u32, 0);
  double* to = words.values.data();
  for (const Mixed& mixed : samples) {
    to[VITRINE_MIX_PARTNER] = mixed.partner;
    to[VITRINE_MIX_OWN] = std::bit_cast<uint32_t>(mixed.own);
    to[VITRINE_MIX_OTHER] = std::bit_cast<uint32_t>(mixed.other);
    for (size_t i = 0; i < 4; ++i) to[VITRINE_MIX_TOP + i] = mixed.box[i];
    to += VITRINE_MIX_WORDS;
  }
  return words;
}

test::OpCase case_of(std::string label, HostTensor x, HostTensor words) {
  test::OpCase c{.label = std::move(label)};
  c.expected = {reference::mix_samples(x.values, x.shape, words.values)};
  c.inputs = {{std::move(x)}, {std::move(words)}};
  c.build = [](Graph& graph, std::span<const ValueId> in) {
    return std::vector{mix_samples(graph, "y", in[0], in[1])};
  };
  return c;
}

TEST_CASE("mix_samples weighs every sample with its partner") {
  for (const Shape& shape :
       {Shape{1, 1, 1, 3}, Shape{2, 3, 5, 7}, Shape{7, 1, 28, 28}, Shape{3, 3, 97, 31}}) {
    std::vector<Mixed> mixed;
    for (uint64_t i = 0; i < shape[0]; ++i) {
      const auto share =
          static_cast<float>(0.1 + 0.8 * static_cast<double>(i) / static_cast<double>(shape[0]));
      mixed.push_back({static_cast<double>(shape[0] - 1 - i), share, 1 - share});
    }
    test::check_op(op_mix_samples,
                   case_of(shape.to_string(), test::random_tensor(shape, DType::f32, 1), words_of(mixed)));
  }
}

TEST_CASE("mix_samples puts boxes of partners into samples, bit for bit") {
  test::OpCase c = case_of("boxes", test::random_tensor({5, 3, 19, 23}, DType::f32, 1),
                           words_of({{4, 1, 0, {0, 19, 0, 23}},
                                     {3, 1, 0, {3, 4, 22, 23}},
                                     {2},
                                     {1, 1, 0, {0, 7, 0, 11}},
                                     {0, 1, 0, {5, 5, 1, 9}}}));
  c.exact = true;
  test::check_op(op_mix_samples, c);
}

TEST_CASE("mix_samples takes from a partner no more than is asked for, and no NaN without it") {
  const HostTensor words = words_of({{2, 1, 0, {1, 3, 1, 3}}, {1, 0.5f, 0.5f}, {0, 0.25f, 0.75f}, {9}});
  const HostTensor x = test::random_tensor({4, 2, 5, 5}, DType::f32, 1);
  test::check_nan(op_mix_samples, case_of("NaN", x, words), [&](auto in) {
    return test::Results{reference::mix_samples(in[0], x.shape, words.values)};
  });
}

TEST_CASE("mix_samples makes NaN of a partner that there isn't") {
  test::OpCase c = case_of("partner 3 of 3", test::random_tensor({3, 1, 4, 4}, DType::f32, 1),
                           words_of({{3, 0.5f, 0.5f}, {4294967295.0, 1, 0, {0, 2, 0, 2}}, {0, 0.5f, 0.5f}}));
  c.allow_nonfinite = true;
  test::check_op(op_mix_samples, c);
}

TEST_CASE("mix_samples refuses what does not fit") {
  Graph graph;
  const ValueId x = graph.input("x", {4, 3, 5, 5});
  const ValueId words = graph.input("words", {4, VITRINE_MIX_WORDS}, DType::u32);
  CHECK_NOTHROW(mix_samples(graph, "y", x, words));
  CHECK_THROWS_AS(mix_samples(graph, "y", graph.input("rank", {4, 75}), words), Error);
  CHECK_THROWS_AS(mix_samples(graph, "y", x, graph.input("few", {3, VITRINE_MIX_WORDS}, DType::u32)), Error);
  CHECK_THROWS_AS(mix_samples(graph, "y", x, graph.input("floats", {4, VITRINE_MIX_WORDS})), Error);
}

}  // namespace
}  // namespace vitrine

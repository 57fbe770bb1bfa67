// The small operators' cases, and which operator has which.
#include "runtime/selftest/cases.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/attention_gradient.h"
#include "runtime/ops/attention/attention_rows.h"
#include "runtime/ops/attention/plain_attention.h"
#include "runtime/ops/elementwise/activation_gradient.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/elementwise/dropout.h"
#include "runtime/ops/elementwise/gated_product.h"
#include "runtime/ops/elementwise/gated_product_gradient.h"
#include "runtime/ops/elementwise/magnitude.h"
#include "runtime/ops/elementwise/random_mask.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/explain/attention_heat.h"
#include "runtime/ops/explain/attention_rollout.h"
#include "runtime/ops/explain/centered_rows.h"
#include "runtime/ops/explain/heat.h"
#include "runtime/ops/explain/principal_colors.h"
#include "runtime/ops/moves/concat.h"
#include "runtime/ops/moves/gather.h"
#include "runtime/ops/moves/pad.h"
#include "runtime/ops/moves/repeat.h"
#include "runtime/ops/moves/reshape.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/ops/moves/sum_rows.h"
#include "runtime/ops/moves/transpose.h"
#include "runtime/ops/moves/unfold.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/norms/layer_norm_gradient.h"
#include "runtime/ops/norms/softmax.h"
#include "runtime/ops/norms/softmax_gradient.h"
#include "runtime/ops/pictures/pixel_values.h"
#include "runtime/ops/products/grouped_matmul.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/weight_gradient.h"
#include "runtime/ops/tokens/assemble_tokens.h"
#include "runtime/ops/tokens/assemble_tokens_gradient.h"
#include "runtime/ops/tokens/patch_embed.h"
#include "runtime/ops/tokens/pool.h"
#include "runtime/ops/training/adam_step.h"
#include "runtime/ops/training/clip_scale.h"
#include "runtime/ops/training/cross_entropy.h"
#include "runtime/ops/training/sgd_step.h"
#include "runtime/selftest/reference.h"
#include "shaders/lib/step_state.h"

namespace vitrine::selftest {
namespace {

constexpr DType dtypes[] = {DType::f32, DType::f16};
using Build = std::function<ValueId(Graph&, std::span<const ValueId>)>;

// A case with one result.
OpCase one(std::string label, std::vector<OpInput> inputs, std::vector<double> expected, Build build) {
  OpCase c;
  c.label = std::move(label);
  c.inputs = std::move(inputs);
  c.expected = {std::move(expected)};
  c.build = [build = std::move(build)](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{build(graph, ids)};
  };
  return c;
}
OpCase exactly(OpCase c) {
  c.exact = true;
  return c;
}

std::vector<OpCase> layer_norm_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {uint64_t{7}, uint64_t{132}}) {
      const HostTensor x = random_tensor({37, width}, dtype, 1, -1, 3),
                       gamma = random_tensor({width}, DType::f32, 2),
                       beta = random_tensor({width}, DType::f32, 3);
      cases.push_back(one("rows of " + std::to_string(width),
                          {{x}, {gamma, Role::constant}, {beta, Role::constant}},
                          reference::layer_norm(x.values, gamma.values, beta.values, 1e-6),
                          [](Graph& graph, std::span<const ValueId> ids) {
                            return layer_norm(graph, "y", ids[0], ids[1], ids[2]);
                          }));
    }
  }
  return cases;
}

std::vector<OpCase> softmax_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {uint64_t{7}, uint64_t{132}}) {
      const HostTensor x = random_tensor({37, width}, dtype, 1, -5, 5);
      cases.push_back(
          one("rows of " + std::to_string(width), {{x}}, reference::softmax(x.values, width),
              [](Graph& graph, std::span<const ValueId> ids) { return softmax(graph, "y", ids[0]); }));
    }
  }
  return cases;
}

std::vector<OpCase> unary_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({5, 67}, dtype, 1, -4, 4);
    for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::gelu_quick,
                                        Activation::silu, Activation::tanh}) {
      cases.push_back(one(std::string(name_of(activation)), {{x}}, reference::activate(activation, x.values),
                          [activation](Graph& graph, std::span<const ValueId> ids) {
                            return activate(graph, "y", ids[0], activation);
                          }));
    }
  }
  return cases;
}

std::vector<OpCase> binary_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor a = random_tensor({5, 67}, dtype, 1), b = random_tensor({5, 67}, DType::f32, 2);
    cases.push_back(
        one("sum", {{a}, {b}}, reference::add(a.values, b.values),
            [](Graph& graph, std::span<const ValueId> ids) { return add(graph, "y", ids[0], ids[1]); }));
    cases.push_back(
        one("product", {{a}, {a}}, reference::multiply(a.values, a.values),
            [](Graph& graph, std::span<const ValueId> ids) { return multiply(graph, "y", ids[0], ids[1]); }));
  }
  return cases;
}

std::vector<OpCase> gated_product_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({5, 2 * 67}, dtype, 1, -3, 3);
    cases.push_back(one("SwiGLU", {{x}}, reference::gated_product(x.values, 67, Activation::silu),
                        [](Graph& graph, std::span<const ValueId> ids) {
                          return gated_product(graph, "y", ids[0], Activation::silu);
                        }));
  }
  return cases;
}

std::vector<OpCase> convert_cases() {
  std::vector<OpCase> cases;
  for (const DType from : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType to : {DType::f32, DType::f16, DType::bf16}) {
      if (from == to) continue;  // no dispatch
      const HostTensor x = random_tensor({5, 67}, from, 1, -300, 300);
      std::vector<double> expected;
      for (const double value : x.values) expected.push_back(reference::nearest(to, value));
      cases.push_back(exactly(
          one(std::string(name_of(from)) + " to " + std::string(name_of(to)), {{x}}, std::move(expected),
              [to](Graph& graph, std::span<const ValueId> ids) { return convert(graph, "y", ids[0], to); })));
    }
  }
  return cases;
}

std::vector<OpCase> move_cases(const OpDef& op) {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({3, 5, 7}, dtype, 1);
    if (&op == &op_slice) {
      cases.push_back(exactly(one(
          "rows 1 to 4", {{x}}, reference::slice(x.values, x.shape, 1, 1, 4),
          [](Graph& graph, std::span<const ValueId> ids) { return slice(graph, "y", ids[0], 1, 1, 4); })));
    } else if (&op == &op_concat) {
      const HostTensor more = random_tensor({3, 2, 7}, dtype, 2);
      cases.push_back(exactly(one("5 and 2 rows", {{x}, {more}},
                                  reference::concat({x.values, more.values}, {x.shape, more.shape}, 1),
                                  [](Graph& graph, std::span<const ValueId> ids) {
                                    return concat(graph, "y", {ids[0], ids[1]}, 1);
                                  })));
    } else if (&op == &op_gather) {
      const HostTensor rows{{3}, DType::u32, {4, 0, 4}};
      cases.push_back(exactly(one(
          "rows 4, 0 and 4", {{x}, {rows}}, reference::gather(x.values, x.shape, rows.values),
          [](Graph& graph, std::span<const ValueId> ids) { return gather(graph, "y", ids[0], ids[1]); })));
    } else {
      std::vector<double> twice = x.values;
      twice.insert(twice.end(), x.values.begin(), x.values.end());
      cases.push_back(
          exactly(one("twice", {{x}}, std::move(twice), [](Graph& graph, std::span<const ValueId> ids) {
            return repeat(graph, "y", ids[0], 2);
          })));
    }
  }
  return cases;
}

std::vector<OpCase> pool_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor tokens = random_tensor({3, 17, 67}, dtype, 1);
    cases.push_back(
        one("the mean of 16 tokens", {{tokens}}, reference::pool(tokens.values, tokens.shape, 1, 16),
            [](Graph& graph, std::span<const ValueId> ids) { return pool_mean(graph, "y", ids[0], 1, 16); }));
  }
  return cases;
}

std::vector<OpCase> assemble_tokens_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor patches = random_tensor({2, 6, 67}, dtype, 1),
                     class_token = random_tensor({67}, DType::f32, 2),
                     registers = random_tensor({2, 67}, DType::f32, 3),
                     positions = random_tensor({7, 67}, DType::f32, 4);
    reference::Tokens tokens;
    tokens.class_token = class_token.values;
    tokens.registers = registers.values;
    tokens.positions = positions.values;
    cases.push_back(one(
        "a class token and two registers",
        {{patches}, {class_token, Role::constant}, {registers, Role::constant}, {positions, Role::constant}},
        reference::assemble_tokens(patches.values, patches.shape, tokens),
        [](Graph& graph, std::span<const ValueId> ids) {
          return assemble_tokens(graph, "y", ids[0],
                                 {.class_token = ids[1], .registers = ids[2], .positions = ids[3]});
        }));
  }
  return cases;
}

std::vector<OpCase> magnitude_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({5, 67}, dtype, 1, -9, 7);
    double largest = 0;
    for (const double value : x.values) largest = std::max(largest, std::abs(value));
    cases.push_back(
        exactly(one("the largest of 335", {{x}}, {largest}, [](Graph& graph, std::span<const ValueId> ids) {
          return magnitude(graph, "y", ids[0]);
        })));
  }
  return cases;
}

std::vector<OpCase> pixel_values_cases() {
  const HostTensor values = random_tensor({3, 256}, DType::f32, 1);
  HostTensor pixels{{2, 3, 5}, DType::u32, {}};
  for (const double value : random_tensor(pixels.shape, DType::u32, 2, 0, 0xffffffff).values)
    pixels.values.push_back(value);
  std::vector<double> expected;
  for (uint64_t b = 0; b < 2; ++b) {
    for (uint64_t channel = 0; channel < 3; ++channel) {
      for (uint64_t i = 0; i < 15; ++i) {
        const auto pixel = static_cast<uint32_t>(pixels.values[b * 15 + i]);
        expected.push_back(values.values[channel * 256 + (pixel >> (8 * channel) & 255)]);
      }
    }
  }
  return {exactly(one(
      "3 channels", {{pixels}, {values, Role::constant}}, std::move(expected),
      [](Graph& graph, std::span<const ValueId> ids) { return pixel_values(graph, "y", ids[0], ids[1]); }))};
}

std::vector<OpCase> dropout_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t group : {1, 35}) {
      const DropoutOptions options{.rate = 0.3, .stream = 2, .group = group};
      const HostTensor x = random_tensor({11, 35}, dtype, 1);
      HostTensor step = filled({VITRINE_STEP_WORDS}, DType::u32, 0);
      step.values[VITRINE_STEP_SEED_LOW] = 7;
      step.values[VITRINE_STEP_SEED_HIGH] = 0x80000001;
      step.values[VITRINE_STEP_NUMBER] = 3;
      const RandomMask mask{.seed = 0x8000000100000007, .step = 3, .stream = 2, .rate = options.rate};
      std::vector<double> expected;
      for (size_t i = 0; i < x.values.size(); ++i) {
        expected.push_back(x.values[i] * mask.factor(static_cast<uint32_t>(i / group)));
      }
      cases.push_back(one("groups of " + std::to_string(group), {{x}, {step}}, std::move(expected),
                          [options](Graph& graph, std::span<const ValueId> ids) {
                            return dropout(graph, "y", ids[0], ids[1], options);
                          }));
    }
  }
  return cases;
}

}  // namespace

std::vector<OpCase> cases_of(const OpDef& op) {
  if (&op == &op_matmul) return matmul_cases();
  if (&op == &op_grouped_matmul) return grouped_matmul_cases();
  if (&op == &op_patch_embed) return patch_embed_cases();
  if (&op == &op_attention) return attention_cases();
  if (&op == &op_attention_gradient) return attention_gradient_cases();
  if (&op == &op_attention_rows) return attention_rows_cases();
  if (&op == &op_attention_rollout) return attention_rollout_cases();
  if (&op == &op_plain_attention) return plain_attention_cases();
  if (&op == &op_attention_heat) return attention_heat_cases();
  if (&op == &op_heat) return heat_cases();
  if (&op == &op_centered_rows) return centered_rows_cases();
  if (&op == &op_principal_colors) return principal_colors_cases();
  if (&op == &op_layer_norm) return layer_norm_cases();
  if (&op == &op_softmax) return softmax_cases();
  if (&op == &op_unary) return unary_cases();
  if (&op == &op_binary) return binary_cases();
  if (&op == &op_gated_product) return gated_product_cases();
  if (&op == &op_convert) return convert_cases();
  if (&op == &op_pool) return pool_cases();
  if (&op == &op_assemble_tokens) return assemble_tokens_cases();
  if (&op == &op_magnitude) return magnitude_cases();
  if (&op == &op_pixel_values) return pixel_values_cases();
  if (&op == &op_dropout) return dropout_cases();
  if (&op == &op_activation_gradient) return activation_gradient_cases();
  if (&op == &op_sum_rows) return sum_rows_cases();
  if (&op == &op_transpose) return transpose_cases();
  if (&op == &op_softmax_gradient) return softmax_gradient_cases();
  if (&op == &op_layer_norm_gradient) return layer_norm_gradient_cases();
  if (&op == &op_gated_product_gradient) return gated_product_gradient_cases();
  if (&op == &op_cross_entropy) return cross_entropy_cases();
  if (&op == &op_cross_entropy_gradient) return cross_entropy_gradient_cases();
  if (&op == &op_sgd_step) return sgd_step_cases();
  if (&op == &op_adam_step) return adam_step_cases();
  if (&op == &op_clip_scale) return clip_scale_cases();
  if (&op == &op_pad) return pad_cases();
  if (&op == &op_reshape) return reshape_cases();
  if (&op == &op_pool_gradient) return pool_gradient_cases();
  if (&op == &op_unfold) return unfold_cases();
  if (&op == &op_fold) return fold_cases();
  if (&op == &op_weight_gradient) return weight_gradient_cases();
  if (&op == &op_assemble_tokens_gradient) return assemble_tokens_gradient_cases();
  if (&op == &op_slice || &op == &op_concat || &op == &op_gather || &op == &op_repeat) return move_cases(op);
  return {};
}

}  // namespace vitrine::selftest

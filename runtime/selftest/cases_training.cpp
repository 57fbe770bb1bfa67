// The cases of losses and optimisers.
#include <bit>
#include <cmath>

#include "runtime/ops/moves/slice.h"
#include "runtime/ops/training/adam_step.h"
#include "runtime/ops/training/clip_scale.h"
#include "runtime/ops/training/cross_entropy.h"
#include "runtime/ops/training/sgd_step.h"
#include "runtime/selftest/cases.h"
#include "runtime/selftest/reference_training.h"
#include "shaders/lib/step_state.h"

namespace vitrine::selftest {
namespace {

constexpr uint64_t rows = 37, classes = 11;
constexpr double smoothing = 0.1;
constexpr uint64_t elements = 1021, decayed = 510;  // neither is a multiple of four
constexpr double rate = 0.1;

HostTensor logits() { return random_tensor({rows, classes}, DType::f32, 1, -3, 3); }
HostTensor labels() { return random_tensor({rows}, DType::u32, 2, 0, static_cast<double>(classes)); }
HostTensor vector(uint64_t seed, double low) { return random_tensor({elements}, DType::f32, seed, low, 1); }

HostTensor first_step(double beta1, double beta2) {
  const auto bits = [](double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); };
  HostTensor step = filled({VITRINE_STEP_WORDS}, DType::u32, 0);
  step.values[VITRINE_STEP_RATE] = bits(rate);
  step.values[VITRINE_STEP_MOMENT1] = bits(1 / (1 - beta1));
  step.values[VITRINE_STEP_MOMENT2] = bits(1 / (1 - beta2));
  return step;
}

}  // namespace

std::vector<OpCase> cross_entropy_cases() {
  OpCase c{.label = "11 classes", .inputs = {{logits()}, {labels()}}};
  c.expected = {reference::cross_entropy(logits().values, labels().values, smoothing)};
  c.build = [](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{cross_entropy(graph, "y", ids[0], ids[1], {.label_smoothing = smoothing})};
  };
  return {c};
}

std::vector<OpCase> cross_entropy_gradient_cases() {
  const HostTensor gradient = random_tensor({rows}, DType::f32, 3);
  OpCase c{.label = "11 classes", .inputs = {{logits()}, {labels()}, {gradient}}};
  c.expected = {
      reference::cross_entropy_gradient(gradient.values, logits().values, labels().values, smoothing)};
  c.build = [](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{
        cross_entropy_gradient(graph, "y", ids[2], ids[0], ids[1], {.label_smoothing = smoothing})};
  };
  return {c};
}

std::vector<OpCase> sgd_step_cases() {
  const reference::Sgd sgd{
      .rate = rate, .momentum = 0.9, .weight_decay = 0.3, .nesterov = true, .decayed = decayed};
  reference::Values param = vector(1, -1).values, velocity = vector(3, -1).values;
  sgd.step(param, vector(2, -1).values, velocity);
  OpCase c{.label = "Nesterov's momentum",
           .inputs = {{vector(1, -1)}, {vector(2, -1)}, {vector(3, -1)}, {first_step(0, 0)}}};
  c.expected = {param, velocity};
  c.build = [sgd](Graph& graph, std::span<const ValueId> ids) {
    const SgdState state = sgd_step(graph, "y", ids[0], ids[1], ids[2], ids[3],
                                    {.momentum = sgd.momentum,
                                     .weight_decay = sgd.weight_decay,
                                     .nesterov = true,
                                     .decay_elements = decayed});
    return std::vector{state.param, state.velocity};
  };
  return {c};
}

std::vector<OpCase> adam_step_cases() {
  std::vector<OpCase> cases;
  for (const bool decoupled : {false, true}) {
    const reference::Adam adam{.rate = rate, .weight_decay = 0.3, .decoupled = decoupled, .decayed = decayed};
    reference::Values param = vector(1, -1).values, m = vector(3, -1).values, v = vector(4, 0).values;
    adam.step(1, param, vector(2, -1).values, m, v);
    OpCase c{.label = decoupled ? "AdamW" : "Adam",
             .inputs = {{vector(1, -1)},
                        {vector(2, -1)},
                        {vector(3, -1)},
                        {vector(4, 0)},
                        {first_step(adam.beta1, adam.beta2)}}};
    c.expected = {param, m, v};
    c.build = [decoupled](Graph& graph, std::span<const ValueId> ids) {
      const AdamState state =
          adam_step(graph, "y", ids[0], ids[1], ids[2], ids[3], ids[4],
                    {.weight_decay = 0.3, .decoupled = decoupled, .decay_elements = decayed});
      return std::vector{state.param, state.m, state.v};
    };
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<OpCase> clip_scale_cases() {
  std::vector<OpCase> cases;
  for (const uint64_t count : {1021, 70001}) {
    const HostTensor x = random_tensor({count}, DType::f32, 1);
    const reference::ClipScale expected = reference::clip_scale(x.values, 0.5);
    OpCase c{.label = std::to_string(count) + " elements", .inputs = {{x}}};
    c.expected = {{expected.scale}, {expected.norm}};
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      const ValueId both = clip_scale(graph, "y", ids[0], 0.5);
      return std::vector{slice(graph, "scale", both, 0, 0, 1), slice(graph, "norm", both, 0, 1, 2)};
    };
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace vitrine::selftest

#include "runtime/check/cases.h"
#include "runtime/check/reference_training.h"
#include "runtime/ops/training/cross_entropy.h"

namespace vitrine {

using namespace cases;

namespace {

constexpr uint64_t rows = 37, classes = 11;
constexpr double smoothing = 0.1;

HostTensor logits() { return random_tensor({rows, classes}, DType::f32, 1, -3, 3); }
HostTensor labels() { return random_tensor({rows}, DType::u32, 2, 0, static_cast<double>(classes)); }

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

}  // namespace vitrine

#include "model/runner.h"

#include <algorithm>
#include <cstring>

#include "runtime/util/error.h"

namespace vitrine {

uint64_t fitting_batch(const Device& device, uint64_t wanted, const std::function<Plan(uint64_t)>& plan_of) {
  uint64_t free_bytes = 0;
  const auto budgets = device.heap_budgets();
  for (size_t i = 0; i < budgets.size(); ++i) {
    if (device.capabilities().heaps[i].device_local)
      free_bytes = std::max(free_bytes, budgets[i].free_bytes());
  }
  while (wanted > 1 && plan_of(wanted).arena_bytes() > free_bytes) wanted /= 2;
  return wanted;
}

Runner::Runner(PipelineStore& pipelines, const Model& model, RunnerOptions options)
    : pipelines_(pipelines),
      model_(model),
      options_(std::move(options)),
      weights_(pipelines, *model.constants) {}

ViTGraphOptions Runner::graph_options(uint64_t batch) const {
  return {.batch = batch, .dtype = options_.dtype, .result = options_.result};
}

Plan Runner::plan_of(const ViTGraphOptions& options) const {
  return make_plan(make_vit_graph(model_.config, options), pipelines_.device().capabilities(), options_.plan);
}

Plan Runner::plan(uint64_t batch) const { return plan_of(graph_options(batch)); }

Executable& Runner::executable(uint64_t batch) {
  std::unique_ptr<Executable>& made = executables_[batch];
  if (!made) made = std::make_unique<Executable>(weights_, plan(batch));
  return *made;
}

std::unique_ptr<Executable> Runner::executable_with(BlockTaps taps, uint64_t batch) {
  ViTGraphOptions options = graph_options(batch);
  options.taps = std::move(taps);
  return std::make_unique<Executable>(weights_, plan_of(options));
}

uint64_t Runner::image_elements() const {
  const ViTConfig& c = model_.config;
  return c.channels * c.image_height * c.image_width;
}

uint64_t Runner::result_elements() const {
  const ViTConfig& c = model_.config;
  switch (result()) {
    case Result::logits:
    case Result::probabilities:
      return c.classes;
    case Result::features:
      return c.feature_width();
    case Result::tokens:
      return c.tokens() * c.dim;
  }
  return 0;
}

std::vector<float> Runner::run(std::span<const float> images, uint64_t largest_batch) {
  const uint64_t count = images.size() / image_elements();
  if (count * image_elements() != images.size() || count == 0) {
    throw Error(ErrorCode::usage, "the runner was given " + std::to_string(images.size()) +
                                      " numbers, expected a multiple of " + std::to_string(image_elements()));
  }
  std::vector<float> results(count * result_elements());
  const uint64_t wanted = std::clamp<uint64_t>(largest_batch, 1, count);
  const uint64_t batch = executables_.contains(wanted) ? wanted
                                                       : fitting_batch(pipelines_.device(), wanted,
                                                                       [&](uint64_t b) { return plan(b); });

  struct Flight {
    Executable* executable = nullptr;
    uint64_t first = 0;
  };
  std::array<Flight, Executable::io_sets> flights;
  const auto land = [&](uint32_t set) {
    Flight& flight = flights[set];
    if (!flight.executable) return;
    flight.executable->wait(set);
    const auto bytes = flight.executable->output(0, set);
    std::memcpy(&results[flight.first * result_elements()], bytes.data(), bytes.size());
    flight.executable = nullptr;
  };
  uint32_t set = 0;
  for (uint64_t first = 0; first < count; first += batch, set = (set + 1) % Executable::io_sets) {
    land(set);
    const uint64_t size = std::min(batch, count - first);
    Executable& next = executable(size);
    const auto part = std::as_bytes(images.subspan(first * image_elements(), size * image_elements()));
    std::ranges::copy(part, next.input(0, set).begin());
    next.submit(set);
    flights[set] = {&next, first};
  }
  for (uint32_t i = 0; i < Executable::io_sets; ++i) land(i);
  return results;
}

}  // namespace vitrine

#include "model/run/runner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/util/error.h"

namespace vitrine {

uint64_t run_bytes(const Plan& plan) {
  uint64_t in_and_out = 0;
  for (const auto* ids : {&plan.inputs, &plan.outputs}) {
    for (const ValueId id : *ids) in_and_out += plan.graph->value(id).bytes();
  }
  return plan.arena_bytes() + Executable::io_sets * in_and_out;
}

uint64_t free_device_bytes(const Device& device) {
  uint64_t most = 0;
  const auto budgets = device.heap_budgets();
  for (size_t i = 0; i < budgets.size(); ++i) {
    if (device.capabilities().heaps[i].device_local) most = std::max(most, budgets[i].free_bytes());
  }
  return most;
}

uint64_t fitting_batch(WeightStore& weights, uint64_t wanted, const std::function<Plan(uint64_t)>& plan_of) {
  const uint64_t free_bytes = free_device_bytes(weights.pipelines().device());
  const auto needed_bytes = [&](const Plan& plan) { return run_bytes(plan) + weights.missing_bytes(plan); };
  while (wanted > 1 && needed_bytes(plan_of(wanted)) > free_bytes) wanted /= 2;
  return wanted;
}

Runner::Runner(PipelineStore& pipelines, const Model& model, RunnerOptions options)
    : model_(model),
      options_(std::move(options)),
      weights_(pipelines, *model.constants),
      guard_(
          pipelines, model, [this](uint64_t batch) { return graph_options(batch); }, options_.plan,
          options_.warn) {}

ViTGraphOptions Runner::graph_options(uint64_t batch) const {
  return {.batch = batch, .dtype = options_.dtype, .result = options_.result};
}

Plan Runner::plan(uint64_t batch) { return guard_.plan(graph_options(batch)); }

Executable& Runner::executable(uint64_t batch) {
  std::unique_ptr<Executable>& made = executables_[batch];
  if (!made) made = std::make_unique<Executable>(weights_, plan(batch));
  return *made;
}

std::unique_ptr<Executable> Runner::executable_with(BlockTaps taps, uint64_t batch) {
  ViTGraphOptions options = graph_options(batch);
  options.taps = std::move(taps);
  return std::make_unique<Executable>(weights_, guard_.plan(std::move(options)));
}

uint64_t Runner::fitting_batch(uint64_t wanted) {
  if (executables_.contains(wanted)) return wanted;
  return vitrine::fitting_batch(weights_, wanted, [&](uint64_t batch) { return plan(batch); });
}

uint64_t Runner::image_elements() const {
  const ViTConfig& c = model_.config;
  return c.channels * c.image_height * c.image_width;
}

uint64_t Runner::result_elements() const {
  uint64_t elements = 1;
  for (const uint64_t extent : result_shape(model_.config, result(), 1)) elements *= extent;
  return elements;
}

bool Runner::check_range(std::span<const float> images) {
  return guard_.check(images.size() / image_elements(), [&](Executable& probe) {
    std::ranges::copy(std::as_bytes(images), probe.input(0).begin());
  });
}

// Whether layers were promoted because finite images have results that aren't finite.
bool Runner::promote_for(std::span<const float> images, std::span<const float> results) {
  if (options_.dtype != DType::f16 || all_finite(results)) return false;
  const uint64_t count = images.size() / image_elements();
  const auto image = [&](uint64_t i) { return images.subspan(i * image_elements(), image_elements()); };
  // Images that aren't finite themselves are left out: theirs is no overflow, and would hide others'.
  std::vector<float> suspects(images.begin(), images.end());
  std::vector<uint64_t> wrong;
  for (uint64_t i = 0; i < count; ++i) {
    if (!all_finite(image(i))) {
      std::fill_n(&suspects[i * image_elements()], image_elements(), 0.0f);
    } else if (!all_finite(results.subspan(i * result_elements(), result_elements()))) {
      wrong.push_back(i);
    }
  }
  if (wrong.empty()) return false;
  bool promoted = check_range(suspects);
  if (guard_.saw_nonfinite() && count > 1) {
    // One image of the batch isn't finite in f32 either and hides how large the others become.
    for (const uint64_t i : wrong) promoted |= check_range(image(i));
  }
  guard_.release();
  return promoted;
}

std::vector<float> Runner::run(std::span<const float> images, uint64_t largest_batch) {
  std::vector<float> results(images.size() / image_elements() * result_elements());
  run(images, largest_batch, results);
  return results;
}

void Runner::run(std::span<const float> images, uint64_t largest_batch, std::span<float> results) {
  const uint64_t count = images.size() / image_elements();
  if (count * image_elements() != images.size() || count == 0) {
    throw Error(ErrorCode::usage, "the runner was given " + std::to_string(images.size()) +
                                      " numbers, expected a multiple of " + std::to_string(image_elements()));
  }
  if (results.size() != count * result_elements()) {
    throw Error(ErrorCode::usage, "the runner was given room for " + std::to_string(results.size()) +
                                      " numbers, expected " + std::to_string(count * result_elements()));
  }
  const uint64_t wanted = std::clamp<uint64_t>(largest_batch, 1, count);
  const uint64_t batch = fitting_batch(wanted);

  const auto images_of = [&](uint64_t first, uint64_t size) {
    return images.subspan(first * image_elements(), size * image_elements());
  };
  if (options_.check_range) {
    for (uint64_t first = 0; first < count; first += batch)
      check_range(images_of(first, std::min(batch, count - first)));
    guard_.release();
    if (options_.dtype == DType::f16) executables_.clear();
  }

  struct Flight {
    Executable* executable = nullptr;
    uint64_t first = 0, size = 0;
  };
  std::array<Flight, Executable::io_sets> flights;
  const auto results_of = [&](const Flight& flight) {
    return results.subspan(flight.first * result_elements(), flight.size * result_elements());
  };
  const auto land = [&](uint32_t set) {
    const Flight flight = std::exchange(flights[set], {});
    if (!flight.executable) return flight;
    flight.executable->wait(set);
    std::ranges::copy(flight.executable->output(0, set), std::as_writable_bytes(results_of(flight)).begin());
    return flight;
  };
  uint64_t first = 0;
  const auto under_way = [&] { return std::ranges::any_of(flights, &Flight::executable); };
  for (uint32_t set = 0; first < count || under_way(); set = (set + 1) % Executable::io_sets) {
    const Flight landed = land(set);
    if (landed.executable && promote_for(images_of(landed.first, landed.size), results_of(landed))) {
      // What is still under way has the old plan: it ends, and all from this batch on is done anew.
      for (uint32_t other = 0; other < Executable::io_sets; ++other) land(other);
      executables_.clear();
      first = landed.first;
    }
    if (first >= count) continue;
    const uint64_t size = std::min(batch, count - first);
    Executable& next = executable(size);
    std::ranges::copy(std::as_bytes(images_of(first, size)), next.input(0, set).begin());
    next.submit(set);
    flights[set] = {&next, first, size};
    first += size;
  }
}

}  // namespace vitrine

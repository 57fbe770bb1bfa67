#include "apps/cli/bench/bench_train.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/bench/bench_operators.h"
#include "apps/cli/bench/bench_output.h"
#include "apps/cli/model_options.h"
#include "apps/cli/open_device.h"
#include "model/files/weights.h"
#include "runtime/util/error.h"
#include "runtime/vk/device_facts.h"
#include "train/lora.h"
#include "train/trained_parameters.h"
#include "train/trainer.h"

namespace vitrine::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct TrainMeasurement {
  uint64_t samples = 0;  // of a step, all accumulated batches together
  std::vector<double> seconds;
  double loss = 0;
  uint64_t peak_device_bytes = 0, state_bytes = 0, activation_bytes = 0, live_bytes = 0;
  OperatorTimes operators;
};

TrainMeasurement measure(Trainer& trainer, Device& device, const TrainBenchOptions& options, uint64_t seed) {
  const TrainConfig& config = trainer.config();
  TrainMeasurement m{.samples = config.batch_size * config.accumulation,
                     .activation_bytes = trainer.step_plan().arena_bytes(),
                     .live_bytes = trainer.step_plan().largest_live_set};
  for (const Plan::StateBuffer& buffer : trainer.step_plan().states) m.state_bytes += buffer.bytes;
  std::vector<BatchResult> results;
  const auto step = [&] {
    const auto start = Clock::now();
    for (uint64_t batch = 0; batch < config.accumulation; ++batch) {
      trainer.slot();
      trainer.submit(config.batch_size, m.samples, batch + 1 == config.accumulation);
    }
    trainer.finish();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    trainer.take_results(results);
    m.loss = results.back().loss;
    return seconds;
  };
  // What the slots hold stays: it is written once.
  for (uint32_t set = 0; set < Executable::io_sets; ++set) {
    const Trainer::Slot slot = trainer.slot();
    fill_images(std::as_writable_bytes(slot.images), seed);
    for (size_t i = 0; i < slot.labels.size(); ++i) {
      slot.labels[i] = static_cast<uint32_t>(i * 7 % config.model.classes);
    }
    trainer.submit(config.batch_size, config.batch_size, true);
  }
  step();
  if (!std::isfinite(m.loss))
    throw Error(ErrorCode::failed, "the loss of a step isn't finite, nothing was timed");
  double total = 0;
  while (options.runs ? m.seconds.size() < options.runs : m.seconds.size() < 5 || total < options.seconds) {
    m.seconds.push_back(step());
    total += m.seconds.back();
  }
  if (device.capabilities().timestamp_valid_bits != 0) {
    std::vector<Profile> profiles;
    for (int i = 0; i < 3; ++i) profiles.push_back(trainer.profile_step());
    m.operators = operator_times(trainer.step_plan(), std::move(profiles));
  }
  m.peak_device_bytes = device.memory().device.peak_bytes;
  return m;
}

}  // namespace

void bench_train(const TrainBenchOptions& options, const CommonOptions& common) {
  TrainConfig config = read_train_config(options.config);
  for (const std::string& assignment : options.set) set_field(config.model, assignment);
  if (options.batch) config.batch_size = *options.batch;
  config.parts = 1;  // what is timed is a batch that is whole
  if (options.trained) config.train = *options.trained;
  take_rank(config, "--trained", ErrorCode::usage);
  config.model.validate(options.config);
  if (options.trained) trained_parameters(config, "--trained", ErrorCode::usage);
  config.validate(options.config);
  const std::vector<Parameter> trained = trained_parameters(config);
  uint64_t trained_numbers = 0;
  for (const Parameter& parameter : trained) trained_numbers += parameter.shape.elements();
  const std::unique_ptr<Device> device = open_device(common);
  PipelineStore pipelines(*device);
  device->reset_peaks();
  Trainer trainer(pipelines, config, 1'000'000, {.recompute = options.recompute, .plan = options.plan});
  trainer.initialize(*random_weights(config.model, common.seed));
  const TrainMeasurement m = measure(trainer, *device, options, common.seed);
  const double median = median_of(m.seconds), least = *std::ranges::min_element(m.seconds),
               most = *std::ranges::max_element(m.seconds);
  const double rate = static_cast<double>(m.samples) / median;
  const Capabilities& caps = device->capabilities();
  if (!options.json) {
    constexpr double mebi = 1 << 20;
    std::printf("%s, batch %" PRIu64 "%s, on %s\n", options.config.c_str(), config.batch_size,
                options.recompute ? ", blocks computed again" : "", device_and_driver(caps).c_str());
    std::printf("  %.3f ms a step (median of %zu, %.3f to %.3f), %.2f images/s, %zu dispatches\n",
                median * 1e3, m.seconds.size(), least * 1e3, most * 1e3, rate,
                trainer.step_plan().steps.size());
    std::printf("  peak device memory %.1f MiB: states %.1f, activations %.1f (largest live set %.1f)\n",
                static_cast<double>(m.peak_device_bytes) / mebi, static_cast<double>(m.state_bytes) / mebi,
                static_cast<double>(m.activation_bytes) / mebi, static_cast<double>(m.live_bytes) / mebi);
    std::printf("  trained: %" PRIu64 " numbers of %zu tensors\n", trained_numbers, trained.size());
    print_operators(m.operators);
    return;
  }
  Json line;
  line["config"] = options.config;
  line["batch"] = config.batch_size;
  line["recompute"] = options.recompute;
  line["device"] = caps.name;
  line["driver"] = driver_text(caps);
  line["median_ms"] = median * 1e3;
  line["min_ms"] = least * 1e3;
  line["max_ms"] = most * 1e3;
  line["images_per_second"] = rate;
  line["train"] = config.train;
  line["trained_numbers"] = trained_numbers;
  line["dispatches"] = trainer.step_plan().steps.size();
  line["loss"] = m.loss;
  line["peak_device_bytes"] = m.peak_device_bytes;
  line["state_bytes"] = m.state_bytes;
  line["activation_bytes"] = m.activation_bytes;
  line["largest_live_set_bytes"] = m.live_bytes;
  add_operator_times(line, m.operators);
  std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace vitrine::cli

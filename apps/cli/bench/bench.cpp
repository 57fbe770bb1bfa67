// vitrine bench: how fast a model runs on a device, with proof that it computed something: outputs are
// checked to be finite before anything is timed, and their checksum stands next to the time.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/cli/bench/bench_host.h"
#include "apps/cli/bench/bench_input.h"
#include "apps/cli/bench/bench_op.h"
#include "apps/cli/bench/bench_operators.h"
#include "apps/cli/bench/bench_output.h"
#include "apps/cli/bench/bench_startup.h"
#include "apps/cli/bench/bench_trace.h"
#include "apps/cli/bench/bench_train.h"
#include "apps/cli/bench/host_time.h"
#include "apps/cli/commands.h"
#include "apps/cli/model_options.h"
#include "apps/cli/open_device.h"
#include "model/look/attention_maps.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "runtime/vk/device_facts.h"

namespace vitrine::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct BenchFlags {
  ModelFlags model;
  std::vector<uint64_t> batches{1};
  std::vector<std::string> dtypes;
  uint64_t runs = 0;
  double seconds = 3;
  OpFlags op;
  std::string train, trained, trace, data;
  bool json = false, maps = false, startup = false, kernels = false, host_time = false, recompute = false,
       batch_given = false;
};

struct Measurement {
  uint64_t batch = 0;
  DType dtype = DType::f32;
  double median = 0, least = 0, most = 0;  // seconds a batch
  double flops = 0;                        // of a batch
  double maps_median = 0, maps_ratio = 0;  // with attention maps; 0 unless asked for
  uint64_t runs = 0, peak_device_bytes = 0, checksum = 0;
  double device_median = 0;  // on the device alone, without the copies; 0 where it has no timestamps
  OperatorTimes operators;
  std::optional<HostCosts> host;
  std::optional<TraceResult> trace;
};

// The model's result among an executable's outputs.
std::span<const std::byte> result_of(const Executable& executable, Result result) {
  return executable.output(executable.output_index(name_of(result)));
}

double seconds_of_run(Executable& executable) {
  const auto start = Clock::now();
  executable.run();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The model that also gives the class token's attention (or the pooled patches'), of all heads of all
// layers.
std::unique_ptr<Executable> with_maps(Runner& runner, const ViTConfig& config, uint64_t batch) {
  AttentionMapOptions all;
  for (uint64_t layer = 0; layer < config.depth; ++layer) all.layers.push_back(layer);
  return runner.executable_with(AttentionMaps(config, all).taps(), batch);
}

Measurement measure(Runner& runner, const ViTConfig& config, Device& device, uint64_t batch, DType dtype,
                    const BenchFlags& flags, const std::string& name, uint64_t seed) {
  device.reset_peaks();
  Executable& executable = runner.executable(batch);
  Measurement m{.batch = batch, .dtype = dtype, .flops = executable.plan().flops()};
  fill_images(executable.input(0), seed);
  executable.run();
  require_finite(executable.output(0),
                 name + " at batch " + std::to_string(batch) + " in " + std::string(name_of(dtype)));
  m.checksum = checksum_of(executable.output(0));
  std::unique_ptr<Executable> mapped;
  if (flags.maps) {
    mapped = with_maps(runner, config, batch);
    fill_images(mapped->input(0), seed);
    mapped->run();
  }

  // Profiled runs take turns with timed ones, so that both see the same load of the machine. The first
  // profile also cuts the submissions by what it measures.
  constexpr size_t least_runs = 5, least_profiles = 3, most_profiles = 5;
  const bool timestamps = device.capabilities().timestamp_valid_bits != 0;
  Executable& profiled = mapped ? *mapped : executable;
  std::vector<Profile> profiles;
  std::vector<double> seconds, device_seconds, maps_seconds, maps_ratios;
  double total = 0;
  const auto enough = [&] {
    if (flags.runs) return seconds.size() >= flags.runs;
    return seconds.size() >= least_runs && total >= flags.seconds;
  };
  while (!enough()) {
    if (timestamps &&
        (profiles.size() < least_profiles || (profiles.size() < most_profiles && total < flags.seconds))) {
      profiles.push_back(profiled.profile());
      device_seconds.push_back(executable.device_seconds());
    }
    // With and without maps take turns at going first, so that a drift of the machine's load favours neither.
    const bool maps_first = mapped && seconds.size() % 2 != 0;
    if (maps_first) maps_seconds.push_back(seconds_of_run(*mapped));
    seconds.push_back(seconds_of_run(executable));
    if (mapped && !maps_first) maps_seconds.push_back(seconds_of_run(*mapped));
    if (mapped) maps_ratios.push_back(maps_seconds.back() / seconds.back());
    total += seconds.back();
  }
  if (!device_seconds.empty()) m.device_median = median_of(device_seconds);
  m.operators = operator_times(profiled.plan(), std::move(profiles));
  if (checksum_of(executable.output(0)) != m.checksum) {
    throw Error(ErrorCode::failed,
                name + ": the last run's output differs from the first one's, expected the same bits");
  }
  if (mapped) {
    if (checksum_of(result_of(*mapped, runner.result())) != m.checksum) {
      throw Error(
          ErrorCode::failed,
          name + ": the output with attention maps differs from that without, expected the same bits");
    }
    m.maps_median = median_of(maps_seconds);
    m.maps_ratio = median_of(maps_ratios);
  }
  if (flags.host_time) m.host = host_costs(device, executable, flags.runs, flags.seconds);
  if (!flags.trace.empty()) {
    constexpr uint64_t traced_runs = 8;
    m.trace = trace_bench(executable, flags.runs ? flags.runs : traced_runs, flags.trace,
                          name + ", batch " + std::to_string(batch) + ", " + std::string(name_of(dtype)) +
                              ", on " + device_and_driver(device.capabilities()));
  }
  m.runs = seconds.size();
  m.median = median_of(seconds);
  m.least = *std::ranges::min_element(seconds);
  m.most = *std::ranges::max_element(seconds);
  m.peak_device_bytes = device.memory().device.peak_bytes;
  return m;
}

void print_json(const Measurement& m, const std::string& name, const Capabilities& device) {
  Json line;
  line["arch"] = name;
  line["batch"] = m.batch;
  line["dtype"] = name_of(m.dtype);
  line["device"] = device.name;
  line["driver"] = driver_text(device);
  line["median_ms"] = m.median * 1e3;
  line["min_ms"] = m.least * 1e3;
  line["max_ms"] = m.most * 1e3;
  if (m.maps_ratio > 0) {
    line["maps_median_ms"] = m.maps_median * 1e3;
    line["maps_ratio"] = m.maps_ratio;
  }
  if (m.device_median > 0) line["device_ms"] = m.device_median * 1e3;
  line["images_per_second"] = static_cast<double>(m.batch) / m.median;
  line["gflops"] = m.flops / m.median / 1e9;
  line["peak_device_bytes"] = m.peak_device_bytes;
  line["checksum"] = checksum_text(m.checksum);
  add_operator_times(line, m.operators);
  if (m.host) add_host_costs(line, *m.host);
  if (m.trace) add_trace(line, *m.trace);
  std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

void print_text(const Measurement& m, const std::string& name, const Capabilities& device) {
  std::printf("%s, batch %" PRIu64 ", %s, on %s\n", name.c_str(), m.batch,
              std::string(name_of(m.dtype)).c_str(), device_and_driver(device).c_str());
  std::printf("  %.3f ms a batch (median of %" PRIu64 ", %.3f to %.3f), %.2f images/s, %.1f GFLOP/s\n",
              m.median * 1e3, m.runs, m.least * 1e3, m.most * 1e3, static_cast<double>(m.batch) / m.median,
              m.flops / m.median / 1e9);
  if (m.device_median > 0) {
    std::printf("  %.3f ms on the device alone, without the copies from and to the host's memory\n",
                m.device_median * 1e3);
  }
  if (m.maps_ratio > 0) {
    std::printf("  %.3f ms with attention maps, %.4f times as long (medians of runs in turns)\n",
                m.maps_median * 1e3, m.maps_ratio);
  }
  std::printf("  peak device memory %.1f MiB, output checksum %016" PRIx64 "\n",
              static_cast<double>(m.peak_device_bytes) / (1 << 20), m.checksum);
  if (m.host) print_host_costs(*m.host);
  if (m.trace) print_trace(*m.trace);
  print_operators(m.operators);
  std::fflush(stdout);
}

void require_one_combination(const BenchFlags& flags, const std::string& option, const std::string& why) {
  if (flags.batches.size() == 1 && flags.dtypes.size() <= 1) return;
  throw Error(ErrorCode::usage, option + ": found " + std::to_string(flags.batches.size()) +
                                    " batch sizes and " + std::to_string(flags.dtypes.size()) +
                                    " dtypes, expected one of each: " + why);
}

void startup(const BenchFlags& flags, const CommonOptions& common) {
  require_one_combination(flags, "--startup", "a process starts once");
  CommonOptions one = common;
  if (!flags.dtypes.empty()) one.dtype = flags.dtypes.front();
  bench_startup(flags.model, flags.batches.front(), flags.kernels, flags.json, one);
}

void bench(const BenchFlags& flags, const CommonOptions& common) {
  if (flags.host_time) static_cast<void>(thread_seconds());  // before anything else is done
  if (flags.startup) return startup(flags, common);
  if (!flags.op.name.empty()) {
    const OpBenchOptions options{.dtypes = flags.dtypes.empty() ? std::vector{common.dtype} : flags.dtypes,
                                 .plan = plan_options(flags.model),
                                 .runs = flags.runs,
                                 .seconds = flags.seconds,
                                 .json = flags.json};
    return bench_op(flags.op, options, common);
  }
  if (!flags.data.empty()) return bench_input(flags.train, flags.data, flags.json, common);
  if (!flags.train.empty()) {
    for (const uint64_t batch : flags.batches) {
      bench_train({.config = flags.train,
                   .set = flags.model.set,
                   .batch = flags.batch_given ? std::optional(batch) : std::nullopt,
                   .trained = flags.trained.empty() ? std::nullopt : std::optional(flags.trained),
                   .recompute = flags.recompute,
                   .plan = plan_options(flags.model),
                   .runs = flags.runs,
                   .seconds = flags.seconds,
                   .json = flags.json},
                  common);
    }
    return;
  }
  if (!flags.trace.empty()) require_one_combination(flags, "--trace", "a file has one timeline");
  const std::optional<Result> what = result_of(flags.model);
  const PlanOptions plan = plan_options(flags.model);
  const Model model = open_model(flags.model, common);
  const std::string name = shown(model.name);
  const std::unique_ptr<Device> device = open_device(common);
  PipelineStore pipelines(*device);
  const std::vector<std::string> dtypes = flags.dtypes.empty() ? std::vector{common.dtype} : flags.dtypes;
  for (const std::string& dtype_name : dtypes) {
    const DType dtype = storage_type(dtype_name, device->capabilities());
    Runner runner(pipelines, model, {.dtype = dtype, .result = what, .plan = plan, .warn = warn});
    for (const uint64_t batch : flags.batches) {
      const Measurement m = measure(runner, model.config, *device, batch, dtype, flags, name, common.seed);
      if (flags.json) {
        print_json(m, name, device->capabilities());
      } else {
        print_text(m, name, device->capabilities());
      }
    }
  }
}

}  // namespace

void add_bench(CLI::App& app, const CommonOptions& common) {
  CLI::App* command = app.add_subcommand("bench", "Time a model on a device");
  auto flags = std::make_shared<BenchFlags>();
  add_model_flags(*command, flags->model);
  add_what_flag(*command, flags->model);
  add_combination_flags(*command, flags->batches, flags->dtypes);
  command->add_option("--runs", flags->runs, "Timed runs; else as many as --seconds hold, at least five")
      ->check(CLI::Range(uint64_t{1}, uint64_t{100000}));
  command->add_option("--seconds", flags->seconds, "How long to time for")
      ->check(CLI::Range(0.0, 3600.0))
      ->excludes("--runs")
      ->capture_default_str();
  command->add_flag("--maps", flags->maps,
                    "Also with the pooled token's attention maps of all heads and layers, in turns; "
                    "the operators are then those of that run");
  CLI::Option* startup = command->add_flag(
      "--startup", flags->startup,
      "Only the time from the start to the first result, by part, each as this process needed it");
  command
      ->add_flag("--kernels", flags->kernels,
                 "Also what the first run of each pipeline took, which for many drivers is compiling it")
      ->needs(startup);
  startup->excludes("--maps")->excludes("--runs")->excludes("--seconds");
  command
      ->add_flag("--host-time", flags->host_time,
                 "Also the CPU time of a run outside the driver, and of copying images in and results out")
      ->excludes("--startup");
  CLI::Option* trace = command->add_option(
      "--trace", flags->trace,
      "Also a loop with two batches in flight, as a timeline for chrome://tracing or Perfetto: this file");
  trace->excludes("--startup");
  add_op_flags(*command, flags->op);
  CLI::Option* train =
      command->add_option("--train", flags->train,
                          "A step of training instead: the configuration's file, as vitrine train takes it");
  train->excludes("--maps")
      ->excludes("--startup")
      ->excludes("--host-time")
      ->excludes("--trace")
      ->excludes("--model")
      ->excludes("--arch");
  command
      ->add_option("--trained", flags->trained,
                   "What is trained, as vitrine train --train, instead of the configuration's")
      ->needs(train);
  command
      ->add_option(
          "--data", flags->data,
          "How fast this data set is read for such a training instead: one epoch, with no step behind it")
      ->needs(train);
  command->add_flag("--recompute", flags->recompute, "As vitrine train --recompute")->needs(train);
  for (const char* option : {"--trained", "--recompute", "--set", "--batch", "--runs", "--seconds"})
    command->get_option("--data")->excludes(option);
  command->add_flag("--json", flags->json, "One JSON object a line, one line a combination");
  command->callback([&common, command, flags] {
    flags->batch_given = command->get_option("--batch")->count() > 0;
    bench(*flags, common);
  });
}

}  // namespace vitrine::cli

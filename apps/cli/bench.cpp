// vitrine bench: how fast a model runs on a device, with proof that it computed something: outputs are
// checked to be finite before anything is timed, and their checksum stands next to the time.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/cli/bench_output.h"
#include "apps/cli/bench_startup.h"
#include "apps/cli/commands.h"
#include "apps/cli/model_options.h"
#include "apps/cli/open_device.h"
#include "model/attention_maps.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct BenchFlags {
  ModelFlags model;
  std::vector<uint64_t> batches{1};
  std::vector<std::string> dtypes;
  uint64_t runs = 0;
  bool json = false, maps = false, startup = false;
};

// One row of the per-operator table.
struct OperatorTime {
  std::string name, kernels;
  uint64_t dispatches = 0;
  double seconds = 0, flops = 0;
};

struct Measurement {
  uint64_t batch = 0;
  DType dtype = DType::f32;
  double median = 0, least = 0, most = 0;  // seconds a batch
  double flops = 0;                        // of a batch
  double maps_median = 0, maps_ratio = 0;  // with attention maps; 0 unless asked for
  uint64_t runs = 0, peak_device_bytes = 0, checksum = 0;
  std::vector<OperatorTime> operators;
};

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The model's result among an executable's outputs.
std::span<const std::byte> result_of(const Executable& executable, Result result) {
  return executable.output(executable.output_index(name_of(result)));
}

double seconds_of_run(Executable& executable) {
  const auto start = Clock::now();
  executable.run();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Times by operator, the slowest first, of the profile whose total is the median: medians of each step
// would leave out what disturbs now this step and now that, and add up to less than a run takes.
std::vector<OperatorTime> times_by_operator(const Plan& plan, std::vector<Profile> profiles) {
  if (profiles.empty()) return {};
  std::ranges::sort(profiles, {}, &Profile::total_seconds);
  const Profile& profile = profiles[profiles.size() / 2];
  std::map<std::string, OperatorTime> by_name;
  uint32_t counted_node = ~0u;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const Node& node = plan.graph->nodes()[step.node];
    OperatorTime& row = by_name[std::string(node.op->name)];
    row.name = node.op->name;
    row.seconds += profile.step_seconds[i];
    ++row.dispatches;
    if (row.kernels.find(step.kernel) == std::string::npos) {
      row.kernels += (row.kernels.empty() ? "" : ", ") + step.kernel;
    }
    if (counted_node != step.node) row.flops += node.op->flops(LowerContext(*plan.graph, node, plan.device));
    counted_node = step.node;
  }
  std::vector<OperatorTime> rows;
  for (auto& [name, row] : by_name) rows.push_back(std::move(row));
  std::ranges::sort(rows, [](const OperatorTime& a, const OperatorTime& b) { return a.seconds > b.seconds; });
  return rows;
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
  constexpr double enough_seconds = 3;
  constexpr size_t least_runs = 5, most_runs = 200, profiled_runs = 5;
  const bool timestamps = device.capabilities().timestamp_valid_bits != 0;
  Executable& profiled = mapped ? *mapped : executable;
  std::vector<Profile> profiles;
  std::vector<double> seconds, maps_seconds, maps_ratios;
  double total = 0;
  const auto enough = [&] {
    if (flags.runs) return seconds.size() >= flags.runs;
    return seconds.size() >= least_runs && (total >= enough_seconds || seconds.size() >= most_runs);
  };
  while (!enough()) {
    if (timestamps && profiles.size() < profiled_runs) profiles.push_back(profiled.profile());
    // With and without maps take turns at going first, so that a drift of the machine's load favours neither.
    const bool maps_first = mapped && seconds.size() % 2 != 0;
    if (maps_first) maps_seconds.push_back(seconds_of_run(*mapped));
    seconds.push_back(seconds_of_run(executable));
    if (mapped && !maps_first) maps_seconds.push_back(seconds_of_run(*mapped));
    if (mapped) maps_ratios.push_back(maps_seconds.back() / seconds.back());
    total += seconds.back();
  }
  m.operators = times_by_operator(profiled.plan(), std::move(profiles));
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
  line["driver"] = device.driver_name + " " + device.driver_info;
  line["median_ms"] = m.median * 1e3;
  line["min_ms"] = m.least * 1e3;
  line["max_ms"] = m.most * 1e3;
  if (m.maps_ratio > 0) {
    line["maps_median_ms"] = m.maps_median * 1e3;
    line["maps_ratio"] = m.maps_ratio;
  }
  line["images_per_second"] = static_cast<double>(m.batch) / m.median;
  line["gflops"] = m.flops / m.median / 1e9;
  line["peak_device_bytes"] = m.peak_device_bytes;
  line["checksum"] = checksum_text(m.checksum);
  line["operators"] = Json::array();
  for (const OperatorTime& row : m.operators) {
    line["operators"].push_back({{"operator", row.name},
                                 {"kernels", row.kernels},
                                 {"dispatches", row.dispatches},
                                 {"ms", row.seconds * 1e3},
                                 {"gflops", row.seconds > 0 ? row.flops / row.seconds / 1e9 : 0}});
  }
  std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

void print_text(const Measurement& m, const std::string& name, const Capabilities& device) {
  std::printf("%s, batch %" PRIu64 ", %s, on %s (%s %s)\n", name.c_str(), m.batch,
              std::string(name_of(m.dtype)).c_str(), device.name.c_str(), device.driver_name.c_str(),
              device.driver_info.c_str());
  std::printf("  %.3f ms a batch (median of %" PRIu64 ", %.3f to %.3f), %.2f images/s, %.1f GFLOP/s\n",
              m.median * 1e3, m.runs, m.least * 1e3, m.most * 1e3, static_cast<double>(m.batch) / m.median,
              m.flops / m.median / 1e9);
  if (m.maps_ratio > 0) {
    std::printf("  %.3f ms with attention maps, %.4f times as long (medians of runs in turns)\n",
                m.maps_median * 1e3, m.maps_ratio);
  }
  std::printf("  peak device memory %.1f MiB, output checksum %016" PRIx64 "\n",
              static_cast<double>(m.peak_device_bytes) / (1 << 20), m.checksum);
  double total = 0;
  for (const OperatorTime& row : m.operators) total += row.seconds;
  if (!m.operators.empty()) {
    std::printf("  %-16s %10s %7s %10s %10s  %s\n", "operator", "ms", "share", "GFLOP/s", "dispatches",
                "kernels");
  }
  for (const OperatorTime& row : m.operators) {
    std::printf("  %-16s %10.3f %6.1f%% %10.1f %10" PRIu64 "  %s\n", row.name.c_str(), row.seconds * 1e3,
                100 * row.seconds / total, row.seconds > 0 ? row.flops / row.seconds / 1e9 : 0,
                row.dispatches, row.kernels.c_str());
  }
  if (!m.operators.empty()) std::printf("  %-16s %10.3f\n", "all", total * 1e3);
  std::fflush(stdout);
}

void startup(const BenchFlags& flags, const CommonOptions& common) {
  if (flags.batches.size() != 1 || flags.dtypes.size() > 1) {
    throw Error(ErrorCode::usage, "--startup: found " + std::to_string(flags.batches.size()) +
                                      " batch sizes and " + std::to_string(flags.dtypes.size()) +
                                      " dtypes, expected one of each: a process starts once");
  }
  CommonOptions one = common;
  if (!flags.dtypes.empty()) one.dtype = flags.dtypes.front();
  bench_startup(flags.model, flags.batches.front(), flags.json, one);
}

void bench(const BenchFlags& flags, const CommonOptions& common) {
  if (flags.startup) return startup(flags, common);
  const std::optional<Result> what = result_of(flags.model);
  const PlanOptions plan = plan_options(flags.model);
  const Model model = open_model(flags.model, common);
  const std::string name = shown(model.name);
  const std::unique_ptr<Device> device = open_device(common);
  PipelineStore pipelines(*device);
  const std::vector<std::string> dtypes = flags.dtypes.empty() ? std::vector{common.dtype} : flags.dtypes;
  for (const std::string& dtype_name : dtypes) {
    const DType dtype = dtype_for(dtype_name, device->capabilities());
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
  command->add_option("--batch", flags->batches, "Images a batch; several with commas")
      ->delimiter(',')
      ->check(CLI::Range(uint64_t{1}, uint64_t{65536}))
      ->capture_default_str();
  command->add_option("--dtype", flags->dtypes, "f32, f16 or auto; several with commas")
      ->delimiter(',')
      ->check(CLI::IsMember({"f32", "f16", "auto"}));
  command->add_option("--runs", flags->runs, "Timed runs; else as many as take three seconds, at least five")
      ->check(CLI::Range(uint64_t{1}, uint64_t{100000}));
  command->add_flag("--maps", flags->maps,
                    "Also with the pooled token's attention maps of all heads and layers, in turns; "
                    "the operators are then those of that run");
  command
      ->add_flag("--startup", flags->startup,
                 "Only the time from the start to the first result, by part, each as this process needed it")
      ->excludes("--maps")
      ->excludes("--runs");
  command->add_flag("--json", flags->json, "One JSON object a line, one line a combination");
  command->callback([&common, flags] { bench(*flags, common); });
}

}  // namespace vitrine::cli

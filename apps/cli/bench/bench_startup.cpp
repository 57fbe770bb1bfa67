#include "apps/cli/bench/bench_startup.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "apps/cli/bench/bench_output.h"
#include "apps/cli/open_device.h"
#include "runtime/graph/weight_store.h"
#include "runtime/util/text.h"
#include "runtime/vk/device_facts.h"

namespace vitrine::cli {
namespace {

using Json = nlohmann::ordered_json;

// The parts of a start in the order in which they happened.
class Parts {
 public:
  // The time since the last part ended belongs to this one.
  void end(const char* name) {
    const auto now = Clock::now();
    ms_.emplace_back(name, std::chrono::duration<double, std::milli>(now - last_).count());
    last_ = now;
  }
  // What happened since the last part ended belongs to none.
  void skip() { last_ = Clock::now(); }

  const std::vector<std::pair<const char*, double>>& ms() const { return ms_; }
  double total() const {
    double sum = 0;
    for (const auto& [name, ms] : ms_) sum += ms;
    return sum;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
  std::vector<std::pair<const char*, double>> ms_;
};

// All that decides which code a dispatch runs.
using PipelineKey = std::tuple<const ShaderVariant*, std::vector<uint32_t>, uint32_t>;
PipelineKey key_of(const Dispatch& d) { return {d.shader, constants_by_id(d), d.subgroup_size}; }

size_t different_pipelines(std::span<const Dispatch* const> dispatches) {
  std::set<PipelineKey> keys;
  for (const Dispatch* d : dispatches) keys.insert(key_of(*d));
  return keys.size();
}

// What the first run of a pipeline's dispatches took. Drivers that compile when a pipeline is first used do
// it then.
struct PipelineTime {
  std::string kernel, first_node;
  uint64_t dispatches = 0;
  double seconds = 0;
};

std::vector<PipelineTime> pipeline_times(const Plan& plan, const Profile& profile) {
  std::map<PipelineKey, PipelineTime> times;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    PipelineTime& time = times[key_of(step.dispatch)];
    if (time.dispatches++ == 0) {
      time.kernel =
          std::string(step.dispatch.shader->shader) + "." + std::string(step.dispatch.shader->variant);
      time.first_node = plan.graph->nodes()[step.node].name;
    }
    time.seconds += profile.step_seconds[i];
  }
  std::vector<PipelineTime> sorted;
  for (auto& [key, time] : times) sorted.push_back(std::move(time));
  std::ranges::stable_sort(sorted, std::greater{}, &PipelineTime::seconds);
  return sorted;
}

}  // namespace

void bench_startup(const ModelFlags& flags, uint64_t batch, bool each_kernel, bool json,
                   const CommonOptions& common) {
  Parts parts;
  const std::optional<Result> what = result_of(flags);
  const PlanOptions options = plan_options(flags);
  const Model model = open_model(flags, common);
  parts.end("checkpoint");
  const std::unique_ptr<Device> device = open_device(common);
  const DType dtype = storage_type(common.dtype, device->capabilities());
  parts.end("device");
  PipelineStore pipelines(*device);
  parts.end("pipeline cache");
  Plan plan =
      Runner(pipelines, model, {.dtype = dtype, .result = what, .plan = options, .warn = warn}).plan(batch);
  parts.end("plan");
  // As Executable does it: the pipelines are compiled while the weights are brought in.
  const std::vector<const Dispatch*> dispatches = plan.dispatches();
  const size_t pipeline_count = different_pipelines(dispatches);
  auto compiled = std::async(std::launch::async, [&] {
    Parts own;
    pipelines.get(std::span(dispatches).first(plan.steps.size()));
    own.end("pipelines");
    return own.total();
  });
  WeightStore weights(pipelines, *model.constants);
  weights.load(plan);
  parts.end("weights");
  const double pipelines_ms = compiled.get();
  parts.end("pipelines");
  Executable executable(weights, std::move(plan));
  parts.end("recording");
  fill_images(executable.input(0), common.seed);
  parts.skip();
  std::vector<PipelineTime> kernels;
  if (each_kernel) {
    kernels = pipeline_times(executable.plan(), executable.profile());
  } else {
    executable.run();
  }
  parts.end("first run");
  const std::string name = shown(model.name);
  require_finite(executable.output(0), name);

  const Capabilities& caps = device->capabilities();
  if (json) {
    Json line;
    line["arch"] = name;
    line["batch"] = batch;
    line["dtype"] = name_of(dtype);
    line["device"] = caps.name;
    line["driver"] = driver_text(caps);
    line["total_ms"] = parts.total();
    for (const auto& [part, ms] : parts.ms()) line["parts"].push_back({{"part", part}, {"ms", ms}});
    line["pipelines"] = pipeline_count;
    line["pipelines_ms"] = pipelines_ms;
    for (const PipelineTime& time : kernels) {
      line["kernels"].push_back({{"kernel", time.kernel},
                                 {"first_node", time.first_node},
                                 {"dispatches", time.dispatches},
                                 {"ms", time.seconds * 1e3}});
    }
    line["weight_bytes"] = weights.bytes();
    line["checksum"] = checksum_text(checksum_of(executable.output(0)));
    std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s, batch %" PRIu64 ", %s, on %s\n", name.c_str(), batch,
                std::string(name_of(dtype)).c_str(), device_and_driver(caps).c_str());
    for (const auto& [part, ms] : parts.ms()) std::printf("  %-16s %10.3f ms\n", part, ms);
    std::printf(
        "  %-16s %10.3f ms to the first result (%.1f MiB of weights; %zu pipelines took %.1f ms, most of "
        "it meanwhile)\n",
        "all", parts.total(), static_cast<double>(weights.bytes()) / (1 << 20), pipeline_count, pipelines_ms);
    if (each_kernel) std::printf("  the first run, a line a pipeline:\n");
    for (const PipelineTime& time : kernels) {
      std::printf("  %10.3f ms %6" PRIu64 " x  %-30s first %s\n", time.seconds * 1e3, time.dispatches,
                  time.kernel.c_str(), time.first_node.c_str());
    }
  }
  std::fflush(stdout);  // before anything is torn down: who waits for this line times it
}

}  // namespace vitrine::cli

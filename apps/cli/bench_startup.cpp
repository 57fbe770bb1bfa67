#include "apps/cli/bench_startup.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <future>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/cli/bench_output.h"
#include "apps/cli/open_device.h"
#include "runtime/graph/weight_store.h"
#include "runtime/util/text.h"

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

size_t different_pipelines(std::span<const Dispatch* const> dispatches) {
  std::set<std::tuple<const ShaderVariant*, std::vector<uint32_t>, uint32_t>> keys;
  for (const Dispatch* d : dispatches) keys.emplace(d->shader, d->constants, d->subgroup_size);
  return keys.size();
}

}  // namespace

void bench_startup(const ModelFlags& flags, uint64_t batch, bool json, const CommonOptions& common) {
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
  executable.run();
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
    line["driver"] = caps.driver_name + " " + caps.driver_info;
    line["total_ms"] = parts.total();
    for (const auto& [part, ms] : parts.ms()) line["parts"].push_back({{"part", part}, {"ms", ms}});
    line["pipelines"] = pipeline_count;
    line["pipelines_ms"] = pipelines_ms;
    line["weight_bytes"] = weights.bytes();
    line["checksum"] = checksum_text(checksum_of(executable.output(0)));
    std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s, batch %" PRIu64 ", %s, on %s (%s %s)\n", name.c_str(), batch,
                std::string(name_of(dtype)).c_str(), caps.name.c_str(), caps.driver_name.c_str(),
                caps.driver_info.c_str());
    for (const auto& [part, ms] : parts.ms()) std::printf("  %-16s %10.3f ms\n", part, ms);
    std::printf(
        "  %-16s %10.3f ms to the first result (%.1f MiB of weights; %zu pipelines took %.1f ms, most of "
        "it meanwhile)\n",
        "all", parts.total(), static_cast<double>(weights.bytes()) / (1 << 20), pipeline_count, pipelines_ms);
  }
  std::fflush(stdout);  // before anything is torn down: who waits for this line times it
}

}  // namespace vitrine::cli

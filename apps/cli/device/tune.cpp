// vitrine tune: measures which kernels a device runs a model's nodes with fastest, and keeps that for the
// other commands.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/model_options.h"
#include "apps/cli/open_device.h"
#include "apps/cli/progress.h"
#include "model/vit/vit_graph.h"
#include "runtime/tune/choice_store.h"
#include "runtime/tune/sweep.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "runtime/vk/device_facts.h"

namespace vitrine::cli {
namespace {

struct TuneFlags {
  ModelFlags model;
  std::vector<uint64_t> batches = {1, 8};
  std::vector<std::string> dtypes;
  double seconds = 60;
  bool json = false;
};

using Json = nlohmann::ordered_json;

void print(const Json& line) {
  std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

Json json_of(const MeasuredNode& node) {
  Json line{{"node", node.key},
            {"count", node.count},
            {"candidates", node.candidates},
            {"heuristics", node.measured.front().name},
            {"heuristics_ms", node.heuristic_seconds() * 1e3},
            {"best", node.measured[node.best].name},
            {"best_ms", node.best_seconds() * 1e3},
            {"ratio", node.heuristic_seconds() / node.best_seconds()},
            {"measured", Json::array()}};
  for (const MeasuredCandidate& candidate : node.measured) {
    Json row{{"kernel", candidate.name}, {"runs", candidate.runs}};
    if (candidate.fault.empty()) {
      row["ms"] = candidate.seconds * 1e3;
    } else {
      row["fault"] = candidate.fault;
    }
    line["measured"].push_back(std::move(row));
  }
  return line;
}

void print_text(const MeasuredNode& node) {
  if (node.candidates < 2) return;  // nothing to choose
  std::printf("%s, %llu times: %zu of %zu candidates measured\n", node.key.c_str(),
              static_cast<unsigned long long>(node.count), node.measured.size(), node.candidates);
  std::printf("  heuristics %s %.3f ms, best %s %.3f ms, ratio %.2f\n", node.measured.front().name.c_str(),
              node.heuristic_seconds() * 1e3, node.measured[node.best].name.c_str(),
              node.best_seconds() * 1e3, node.heuristic_seconds() / node.best_seconds());
  for (const MeasuredCandidate& candidate : node.measured) {
    if (!candidate.fault.empty())
      std::printf("  %s was left out: %s\n", candidate.name.c_str(), candidate.fault.c_str());
  }
}

void tune(const TuneFlags& flags, const CommonOptions& common) {
  const std::optional<Result> what = result_of(flags.model);
  const Model model = open_model(flags.model, common);
  const std::unique_ptr<Device> device = open_device(common);
  const Capabilities& capabilities = device->capabilities();
  std::vector<std::shared_ptr<const Graph>> graphs;
  const std::vector<std::string> dtypes = flags.dtypes.empty() ? std::vector{common.dtype} : flags.dtypes;
  for (const std::string& dtype : dtypes) {
    for (const uint64_t batch : flags.batches) {
      graphs.push_back(make_vit_graph(
          model.config, {.batch = batch, .dtype = storage_type(dtype, capabilities), .result = what}));
    }
  }

  PipelineStore pipelines(*device);
  SweepOptions options;
  options.seconds = flags.seconds;
  options.known = load_kernel_choices(capabilities, warn);
  Progress progress("% of the time", 100);
  options.progress = [&](std::string_view, double used) {
    progress.show(static_cast<uint64_t>(std::min(used, 1.0) * 100));
  };
  const SweepResult result = sweep(pipelines, graphs, options);
  progress.clear();
  const std::filesystem::path stored = add_kernel_choices(capabilities, result.found);

  for (const MeasuredNode& node : result.nodes) {
    if (flags.json) {
      print(json_of(node));
    } else {
      print_text(node);
    }
  }
  const double ratio = result.heuristic_seconds() / result.best_seconds();
  if (flags.json) {
    print({{"device", capabilities.name},
           {"driver", driver_text(capabilities)},
           {"heuristics_ms", result.heuristic_seconds() * 1e3},
           {"tuned_ms", result.best_seconds() * 1e3},
           {"ratio", ratio},
           {"stored", stored.string()}});
  } else {
    std::printf("all nodes: heuristics %.3f ms, tuned %.3f ms, ratio %.2f\n",
                result.heuristic_seconds() * 1e3, result.best_seconds() * 1e3, ratio);
    std::printf("%s: what the other commands use on this device from now on\n", shown(stored).c_str());
  }
}

}  // namespace

void add_tune(CLI::App& app, const CommonOptions& common) {
  CLI::App* command =
      app.add_subcommand("tune", "Find the fastest kernels for a model on this device, and keep them");
  auto flags = std::make_shared<TuneFlags>();
  add_source_flags(*command, flags->model);
  add_config_flags(*command, flags->model);
  add_what_flag(*command, flags->model);
  add_combination_flags(*command, flags->batches, flags->dtypes);
  command
      ->add_option("--seconds", flags->seconds,
                   "How long to measure; a node has as large a part of it as of the run's time")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "One JSON object a line: every node, then the sums");
  command->callback([&common, flags] { tune(*flags, common); });
}

}  // namespace vitrine::cli

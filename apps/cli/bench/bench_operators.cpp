#include "apps/cli/bench/bench_operators.h"

#include <algorithm>
#include <cctype>
#include <cinttypes>
#include <cstdio>
#include <map>

namespace vitrine::cli {
namespace {

std::vector<OperatorTime> slowest_first(std::map<std::string, OperatorTime> by_name) {
  std::vector<OperatorTime> rows;
  for (auto& [name, row] : by_name) rows.push_back(std::move(row));
  std::ranges::sort(rows, [](const OperatorTime& a, const OperatorTime& b) { return a.seconds > b.seconds; });
  return rows;
}

double gflops(const OperatorTime& row) { return row.seconds > 0 ? row.cost.flops / row.seconds / 1e9 : 0; }

nlohmann::ordered_json json_of(const OperatorTime& row) {
  return {{"kernels", row.kernels}, {"dispatches", row.dispatches}, {"ms", row.seconds * 1e3},
          {"gflops", gflops(row)},  {"flops", row.cost.flops},      {"bytes", row.cost.bytes}};
}

}  // namespace

std::string layer_of(const std::string& node_name) {
  std::string layer;
  for (size_t at = 0; at <= node_name.size();) {
    const size_t end = std::min(node_name.find('.', at), node_name.size());
    const std::string part = node_name.substr(at, end - at);
    const bool number =
        !part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; });
    layer += (at == 0 ? "" : ".") + (number ? "*" : part);
    at = end + 1;
  }
  return layer;
}

OperatorTimes operator_times(const Plan& plan, std::vector<Profile> profiles) {
  if (profiles.empty()) return {};
  std::ranges::sort(profiles, {}, &Profile::total_seconds);
  const Profile& profile = profiles[profiles.size() / 2];
  std::map<std::string, OperatorTime> by_operator, by_layer;
  uint32_t counted_node = ~0u;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const Node& node = plan.graph->nodes()[step.node];
    const std::string operator_name(node.op->name), layer = layer_of(node.name);
    OperatorTime& first = by_operator[operator_name];
    first.name = operator_name;
    OperatorTime& second = by_layer[layer + " " + operator_name];
    second.name = layer;
    // A node's cost stands once, however many dispatches it takes.
    const bool counted = counted_node == step.node;
    const Cost cost = counted ? Cost{} : cost_of(LowerContext(*plan.graph, node, plan.device));
    counted_node = step.node;
    for (OperatorTime* row : {&first, &second}) {
      row->operator_name = operator_name;
      row->seconds += profile.step_seconds[i];
      ++row->dispatches;
      row->cost.flops += cost.flops;
      row->cost.bytes += cost.bytes;
      if (row->kernels.find(step.kernel) == std::string::npos) {
        row->kernels += (row->kernels.empty() ? "" : ", ") + step.kernel;
      }
    }
  }
  return {slowest_first(std::move(by_operator)), slowest_first(std::move(by_layer))};
}

void add_operator_times(nlohmann::ordered_json& line, const OperatorTimes& times) {
  line["operators"] = nlohmann::ordered_json::array();
  line["layers"] = nlohmann::ordered_json::array();
  for (const OperatorTime& row : times.operators) {
    nlohmann::ordered_json object = {{"operator", row.name}};
    object.update(json_of(row));
    line["operators"].push_back(std::move(object));
  }
  for (const OperatorTime& row : times.layers) {
    nlohmann::ordered_json object = {{"layer", row.name}, {"operator", row.operator_name}};
    object.update(json_of(row));
    line["layers"].push_back(std::move(object));
  }
}

void print_operators(const OperatorTimes& times) {
  if (times.operators.empty()) return;
  double total = 0;
  for (const OperatorTime& row : times.operators) total += row.seconds;
  std::printf("  %-16s %10s %7s %10s %10s %10s  %s\n", "operator", "ms", "share", "GFLOP/s", "GB/s",
              "dispatches", "kernels");
  for (const OperatorTime& row : times.operators) {
    std::printf("  %-16s %10.3f %6.1f%% %10.1f %10.1f %10" PRIu64 "  %s\n", row.name.c_str(),
                row.seconds * 1e3, 100 * row.seconds / total, gflops(row),
                row.seconds > 0 ? row.cost.bytes / row.seconds / 1e9 : 0, row.dispatches,
                row.kernels.c_str());
  }
  std::printf("  %-16s %10.3f\n", "all", total * 1e3);
}

}  // namespace vitrine::cli

#include "apps/cli/inspect_estimate.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "runtime/ops/plan_cost.h"

namespace vitrine::cli {
namespace {

// "blocks.7.attn.qkv" -> "blocks.*.attn.qkv"
std::string in_every_block(const std::string& name) {
  constexpr std::string_view blocks = "blocks.";
  if (!name.starts_with(blocks)) return name;
  const size_t end = name.find_first_not_of("0123456789", blocks.size());
  return end == std::string::npos ? name : std::string(blocks) + "*" + name.substr(end);
}

uint64_t groups_of(const Dispatch& dispatch) {
  return uint64_t{dispatch.groups[0]} * dispatch.groups[1] * dispatch.groups[2];
}

std::string tile_of(const Step& step) {
  if (!step.configuration.empty()) return step.configuration;
  return step.dispatch.note.empty() ? "-" : step.dispatch.note;
}

std::string number_or_dash(double value) {
  if (value == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", value);
  return text;
}

struct Row {
  std::string node, kernel, tile, registers, shared, bound;
  uint64_t groups = 0;
  uint32_t threads = 0;
  double resident = 0, microseconds = 0;
  size_t count = 0;
  auto operator<=>(const Row&) const = default;
};

Row row_of(const Plan& plan, const Step& step, const StepCost& cost) {
  return {.node = in_every_block(plan.graph->nodes()[step.node].name),
          .kernel = std::string(step.dispatch.shader->shader),
          .tile = tile_of(step),
          .registers = number_or_dash(cost.work.registers),
          .shared = number_or_dash(static_cast<double>(cost.shared_bytes.value_or(0))),
          .bound = std::string(name_of(cost.estimate.bound)),
          .groups = groups_of(step.dispatch),
          .threads = cost.work.threads,
          .resident = cost.estimate.resident,
          .microseconds = 1e6 * cost.estimate.seconds};
}

}  // namespace

void print_estimate(const Plan& plan) {
  const std::vector<StepCost> costs = costs_of(plan);
  std::vector<Row> rows;
  double seconds = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    Row row = row_of(plan, plan.steps[i], costs[i]);
    auto same = std::ranges::find(rows, row, [](Row each) {
      each.count = 0;
      return each;
    });
    if (same == rows.end()) same = rows.insert(rows.end(), std::move(row));
    ++same->count;
    seconds += costs[i].estimate.seconds;
  }
  std::printf("\nestimate, from what is published of the device; never compared with one\n");
  std::printf("  %4s %-30s %-22s %-24s %7s %7s %5s %6s %4s %-13s %10s %10s\n", "", "node", "shader", "tile",
              "groups", "threads", "regs", "shared", "fit", "bound by", "us each", "us");
  for (const Row& row : rows) {
    std::printf("  %4zu %-30s %-22s %-24s %7" PRIu64 " %7u %5s %6s %4.0f %-13s %10.1f %10.1f\n", row.count,
                row.node.c_str(), row.kernel.c_str(), row.tile.c_str(), row.groups, row.threads,
                row.registers.c_str(), row.shared.c_str(), row.resident, row.bound.c_str(), row.microseconds,
                row.microseconds * static_cast<double>(row.count));
  }
  std::printf("\nabout %.3g ms, %.3g TFLOP/s\n", 1e3 * seconds, plan.flops() / seconds / 1e12);
}

void add_estimate(nlohmann::ordered_json& line, const Plan& plan) {
  const std::vector<StepCost> costs = costs_of(plan);
  double seconds = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const StepCost& cost = costs[i];
    nlohmann::ordered_json& dispatch = line["dispatches"][i];
    dispatch["tile"] = tile_of(step);
    dispatch["threads"] = cost.work.threads;
    dispatch["registers"] = cost.work.registers;
    if (cost.shared_bytes) dispatch["shared_bytes"] = *cost.shared_bytes;
    dispatch["resident_workgroups"] = cost.estimate.resident;
    dispatch["bound_by"] = name_of(cost.estimate.bound);
    dispatch["stated"] = cost.stated;
    dispatch["estimated_seconds"] = cost.estimate.seconds;
    seconds += cost.estimate.seconds;
  }
  line["estimated_seconds"] = seconds;
}

}  // namespace vitrine::cli

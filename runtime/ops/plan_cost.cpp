#include "runtime/ops/plan_cost.h"

#include <algorithm>

#include "runtime/vk/shared_memory.h"

namespace vitrine {
namespace {

// Of a node's inputs that are weights, each counted once.
double constant_bytes(const Graph& graph, const Node& node) {
  std::vector<ValueId> seen;
  double bytes = 0;
  for (const ValueId id : node.inputs) {
    if (!id || std::ranges::find(seen, id) != seen.end()) continue;
    seen.push_back(id);
    if (graph.value(id).role == Role::constant) bytes += static_cast<double>(graph.value(id).bytes());
  }
  return bytes;
}

}  // namespace

std::vector<StepCost> costs_of(const Plan& plan) {
  std::vector<size_t> unstated(plan.graph->nodes().size());
  for (const Step& step : plan.steps) unstated[step.node] += step.dispatch.work.groups == 0;
  std::vector<StepCost> costs;
  for (const Step& step : plan.steps) {
    const Node& node = plan.graph->nodes()[step.node];
    StepCost& cost = costs.emplace_back();
    cost.work = step.dispatch.work;
    cost.stated = cost.work.groups > 0;
    if (!cost.stated) {
      const LowerContext context(*plan.graph, node, plan.device);
      cost.work =
          plain_work(step.dispatch, cost_of(context), constant_bytes(*plan.graph, node), unstated[step.node]);
    }
    cost.estimate = estimate(cost.work, plan.device);
    cost.shared_bytes = shared_bytes_of(step.dispatch.shader->words, constants_by_id(step.dispatch));
  }
  return costs;
}

}  // namespace vitrine

#include "tests/support/matrix_units.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "runtime/graph/kernel_choice.h"
#include "tests/support/test_device.h"
#include "train/training_graph.h"

namespace vitrine::test {

size_t prefer_matrix_units(const TrainConfig& config, const ParameterLayout& layout, PlanOptions& options,
                           size_t& without_block) {
  const Capabilities& device = test_device().device->capabilities();
  const Plan plan = make_plan(make_step_graph(config, layout), device, options);
  auto known = std::make_shared<KernelChoices>();
  size_t found = 0;
  for (const Node& node : plan.graph->nodes()) {
    if (!node.attributes.flag("rounded")) continue;
    std::vector<std::string> refusals;
    for (const Candidate& candidate : candidates_of(LowerContext(*plan.graph, node, device), &refusals)) {
      if (candidate.kernel->name != "coopmat") continue;
      known->tuned.emplace(node_key(*plan.graph, node), candidate.name());
      ++found;
      break;
    }
    without_block +=
        device.type != DeviceType::cpu && std::ranges::any_of(refusals, [](const std::string& reason) {
          return reason.starts_with("coopmat: no block of its matrices fits");
        });
  }
  options.known = std::move(known);
  return found;
}

}  // namespace vitrine::test

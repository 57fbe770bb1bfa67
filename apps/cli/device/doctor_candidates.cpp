#include "apps/cli/device/doctor_candidates.h"

#include <map>
#include <utility>

#include "runtime/graph/kernel_choice.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/products/matmul.h"

namespace vitrine::cli {

std::vector<CandidateDispatches> largest_candidates(std::span<const Plan* const> plans) {
  struct Largest {
    const Plan* plan = nullptr;
    const Node* node = nullptr;
    double flops = 0;
  };
  std::map<std::pair<std::string_view, DType>, Largest> largest;
  for (const Plan* plan : plans) {
    for (const Node& node : plan->graph->nodes()) {
      if (node.op != &op_matmul && node.op != &op_attention) continue;
      const LowerContext context(*plan->graph, node, plan->device);
      Largest& entry = largest[{node.op->name, context.input(0).dtype}];
      const double flops = node.op->flops(context);
      if (flops > entry.flops) entry = {plan, &node, flops};
    }
  }
  std::vector<CandidateDispatches> out;
  for (const auto& [key, entry] : largest) {
    const LowerContext context(*entry.plan->graph, *entry.node, entry.plan->device);
    for (const Candidate& candidate : candidates_of(context)) {
      if (candidate.kernel->target == Target::cpu && context.device().type != DeviceType::cpu) continue;
      out.push_back({std::string(key.first), std::string(candidate.kernel->name),
                     lower_as(context, candidate).dispatches});
    }
  }
  return out;
}

}  // namespace vitrine::cli

#include "tests/support/op_test.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/graph/fusion.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

std::optional<std::string> refusal(const Graph& graph, const OpDef& op, const KernelDef& kernel,
                                   const Capabilities& device) {
  for (const Node& node : graph.nodes()) {
    if (node.op != &op) continue;
    if (const auto why = kernel.refuses(LowerContext(graph, node, device))) return why;
  }
  return std::nullopt;
}

}  // namespace

void check_op(const OpDef& op, const OpCase& op_case) {
  INFO("case " << op_case.label);
  if (const auto why = selftest::useless(op_case)) FAIL(*why);
  TestDevice& device = test_device();
  const std::shared_ptr<const Graph> graph = selftest::graph_of(op_case);
  size_t ran = 0;
  std::string refusals;
  // A kernel has to run what rules of fusion make of the nodes; where it refuses that, the nodes as they are.
  const std::shared_ptr<const Graph> fused = fuse(graph, all_fusions()).graph;
  for (const KernelDef& kernel : op.kernels) {
    INFO("kernel " << op.name << "=" << kernel.name);
    PlanOptions options;
    if (const auto why = refusal(*fused, op, kernel, device.device->capabilities())) {
      options.fusions = {};
      if (fused == graph || refusal(*graph, op, kernel, device.device->capabilities())) {
        refusals += std::string(kernel.name) + ": " + *why + "; ";
        continue;
      }
    }
    options.variants[std::string(op.name)] = std::string(kernel.name);
    if (const auto fault = selftest::fault_of(*device.pipelines, op_case, graph, options)) FAIL(*fault);
    require_no_validation_messages();
    ++ran;
  }
  if (ran == 0) FAIL("no kernel of " << op.name << " could run: " << refusals);
  // What rules of fusion would have made of plain operators is right as these, too.
  if (fuse(graph, {}).graph != graph) {
    INFO("without fusion");
    PlanOptions plain;
    plain.fusions = {};
    if (const auto fault = selftest::fault_of(*device.pipelines, op_case, graph, plain)) FAIL(*fault);
    require_no_validation_messages();
  }
  SUCCEED();
}

}  // namespace vitrine::test

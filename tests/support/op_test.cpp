#include "tests/support/op_test.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <optional>

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

// What is chosen for an older version of a software driver is right on newer ones, too. Not the other way round:
// there the code for newer ones takes minutes to compile.
std::optional<Capabilities> older_driver(const Capabilities& device) {
  if (device.type != DeviceType::cpu || device.loops_gather) return std::nullopt;
  Capabilities older = device;
  older.loops_gather = true;
  return older;
}

bool same_dispatches(const Plan& one, const Plan& other) {
  return std::ranges::equal(one.steps, other.steps, [](const Step& a, const Step& b) {
    return a.dispatch.shader == b.dispatch.shader && a.dispatch.constants == b.dispatch.constants;
  });
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
  const std::optional<Capabilities> older = older_driver(device.device->capabilities());
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
  // Of a test's first cases only: these kernels are the slowest to compile of all.
  static int older_left = 2;
  if (older && older_left > 0 &&
      !same_dispatches(make_plan(graph, device.device->capabilities(), {}), make_plan(graph, *older, {}))) {
    INFO("as for an older driver");
    --older_left;
    if (const auto fault = selftest::fault_of(*device.pipelines, op_case, graph, {}, *older)) FAIL(*fault);
    require_no_validation_messages();
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

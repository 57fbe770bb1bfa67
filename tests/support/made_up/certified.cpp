#include "tests/support/made_up/certified.h"

#include <algorithm>

#include "runtime/graph/op.h"
#include "runtime/selftest/self_test.h"

namespace vitrine::test {

KernelChoices all_self_tests_passed(const Capabilities& device) {
  KernelChoices known;
  for (const selftest::SelfTests tests(device); const selftest::SelfTest& test : tests.tests()) {
    for (const std::string& key : test.certificates) known.certificates[key] = "";
  }
  return known;
}

Certified certified(const Graph& graph, const Capabilities& device, const KernelChoices& known,
                    std::initializer_list<const OpDef*> only) {
  Certified found;
  std::set<std::string> seen;
  for (const Node& node : graph.nodes()) {
    if (only.size() != 0 && std::ranges::find(only, node.op) == only.end()) continue;
    if (!seen.insert(node_key(graph, node)).second) continue;
    const LowerContext context(graph, node, device);
    const Candidate chosen = choose_kernel(graph, context, "", &known).candidate;
    const std::string name = std::string(node.op->name) + "=" + std::string(chosen.kernel->name);
    found.kernels.insert(name);
    for (const std::string& key : certificate_keys(*node.op, chosen, lower_as(context, chosen))) {
      if (!known.certificates.contains(key)) found.missing.insert(name + ": " + key);
    }
  }
  return found;
}

}  // namespace vitrine::test

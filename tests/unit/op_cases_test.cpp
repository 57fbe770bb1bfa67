// Every operator brings the cases that prove its kernels.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "runtime/check/op_case.h"
#include "runtime/graph/op.h"
#include "runtime/selftest/self_test.h"
#include "tests/support/made_up/made_up_device.h"

namespace vitrine::test {

TEST_CASE("every operator has cases, and each runs the operator and would notice a constant result") {
  CHECK(all_ops().size() > 40);
  for (const OpDef* op : all_ops()) {
    INFO(op->name);
    CHECK_FALSE(op->kernels.empty());
    CHECK(op->cases);
    if (!op->cases) continue;
    const std::vector<reference::OpCase> cases = op->cases();
    CHECK_FALSE(cases.empty());
    for (const reference::OpCase& op_case : cases) {
      INFO(op_case.label);
      CHECK(reference::useless(op_case) == std::nullopt);
      CHECK(std::ranges::count(reference::graph_of(op_case)->nodes(), op, &Node::op) == 1);
    }
  }
}

TEST_CASE("every kernel is run by a case of its operator, where a device has what it needs") {
  std::set<std::string> tested, named;
  for (const Capabilities& device : {plain_gpu(), rich_gpu(), software_driver()}) {
    const selftest::SelfTests all(device);
    for (const selftest::SelfTest& test : all.tests())
      tested.insert(std::string(test.op->name) + "=" + std::string(test.candidate.kernel->name));
  }
  for (const OpDef* op : all_ops()) {
    for (const KernelDef& kernel : op->kernels) {
      // No made-up device has what these need, and not every glslang compiles them.
      if (kernel.name == "coopmat2" || kernel.name == "coopmat_flexible") continue;
      named.insert(std::string(op->name) + "=" + std::string(kernel.name));
    }
  }
  std::vector<std::string> untested;
  std::ranges::set_difference(named, tested, std::back_inserter(untested));
  CHECK(untested == std::vector<std::string>{});
}

}  // namespace vitrine::test

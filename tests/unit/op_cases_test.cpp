// Every operator brings the cases that prove its kernels.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "runtime/check/op_case.h"
#include "runtime/graph/op.h"

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

}  // namespace vitrine::test

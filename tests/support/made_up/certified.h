// What is certified of what a graph's nodes choose.
#pragma once

#include <initializer_list>
#include <set>
#include <string>

#include "runtime/graph/graph.h"
#include "runtime/graph/kernel_choice.h"

namespace vitrine::test {

// As if `vitrine doctor` had run and every test had passed.
KernelChoices all_self_tests_passed(const Capabilities& device);

struct Certified {
  std::set<std::string> kernels;  // that were chosen: "matmul=tiled"
  std::set<std::string> missing;  // certificates that these have not got
};
// Of the nodes of some operators, or of all that run anything.
Certified certified(const Graph& graph, const Capabilities& device, const KernelChoices& known,
                    std::initializer_list<const OpDef*> only = {});

}  // namespace vitrine::test

#include "runtime/selftest/self_test.h"

#include <algorithm>
#include <utility>

#include "runtime/util/error.h"

namespace vitrine::selftest {
namespace {

using reference::OpCase;

const Node& tested_node(const Graph& graph, const OpDef& op) {
  return *std::ranges::find(graph.nodes(), &op, &Node::op);
}

}  // namespace

SelfTests::SelfTests(const Capabilities& device, std::string_view only) {
  bool known = only.empty();
  for (const OpDef* op : all_ops()) {
    const size_t equals = only.find('=');
    if (!only.empty() && only.substr(0, equals) != op->name) continue;
    std::optional<std::string_view> kernel;
    if (equals != only.npos) kernel = only.substr(equals + 1);
    known |= add(*op, kernel, device) > 0;
  }
  if (!known) {
    throw Error(ErrorCode::usage, "--only: found '" + std::string(only) +
                                      "', expected an operator, or OPERATOR=KERNEL with a kernel of its own");
  }
}

SelfTests::SelfTests(const Capabilities& device, const OpDef& op) { add(op, std::nullopt, device); }

size_t SelfTests::add(const OpDef& op, std::optional<std::string_view> only_kernel,
                      const Capabilities& device) {
  std::vector<const OpCase*> cases;
  if (op.cases) {
    for (OpCase& made : op.cases()) {
      cases_.push_back(std::make_unique<const OpCase>(std::move(made)));
      cases.push_back(cases_.back().get());
    }
  }
  size_t kernels = 0;
  for (const KernelDef& kernel : op.kernels) {
    if (only_kernel && *only_kernel != kernel.name) continue;
    add(op, kernel, cases, device);
    ++kernels;
  }
  return kernels;
}

void SelfTests::add(const OpDef& op, const KernelDef& kernel, const std::vector<const OpCase*>& cases,
                    const Capabilities& device) {
  // What a kernel does on some paths only is run where heuristics would take that kernel: on a CPU those for
  // CPUs, if one takes the case, and elsewhere the others. All kernels run the other cases.
  const bool on_cpu = device.type == DeviceType::cpu;
  const auto is_for_device = [&](const LowerContext& context) {
    if (kernel.target == Target::cpu) return on_cpu;
    return !on_cpu || std::ranges::none_of(op.kernels, [&](const KernelDef& other) {
      return other.target == Target::cpu && !other.refuses(context);
    });
  };
  std::string refusal = cases.empty() ? "it has no self-test" : "";
  bool runs = false;
  for (const OpCase* op_case : cases) {
    const auto graph = reference::graph_of(*op_case);
    const LowerContext context(*graph, tested_node(*graph, op), device);
    if (const auto why = kernel.refuses(context)) {
      if (refusal.empty()) refusal = *why;
      continue;
    }
    runs = true;
    if (op_case->for_its_path && !is_for_device(context)) continue;
    std::vector<std::string> configurations{""};
    if (kernel.configurations) configurations = kernel.configurations(context);
    for (std::string& configuration : configurations) {
      Candidate candidate{&kernel, std::move(configuration)};
      std::vector<std::string> certificates = certificate_keys(op, candidate, lower_as(context, candidate));
      const bool is_new = std::ranges::count_if(certificates, [&](const std::string& key) {
                            return certified_.insert(key).second;
                          }) != 0;
      if (op_case->for_its_path && !is_new) continue;
      const auto at = std::ranges::find_if(tests_, [&](const SelfTest& test) {
        return test.certificates == certificates && test.candidate.name() == candidate.name();
      });
      if (at != tests_.end()) {
        at->cases.push_back(op_case);
      } else {
        tests_.push_back({&op, std::move(candidate), std::move(certificates), {op_case}});
      }
    }
  }
  if (!runs) untested_.push_back({std::string(op.name) + "=" + std::string(kernel.name), refusal});
}

std::optional<std::string> fault_of(PipelineStore& pipelines, const SelfTest& test) {
  PlanOptions options;
  options.variants[std::string(test.op->name)] = test.candidate.name();
  for (const OpCase* op_case : test.cases) {
    if (auto fault = reference::fault_of(pipelines, *op_case, reference::graph_of(*op_case), options))
      return op_case->label + ": " + *fault;
  }
  return std::nullopt;
}

}  // namespace vitrine::selftest

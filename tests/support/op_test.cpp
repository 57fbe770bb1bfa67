#include "tests/support/op_test.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "runtime/graph/fusion.h"
#include "runtime/util/error.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"

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

// What is chosen for an older version of a software driver is right on newer ones, too. Not the other way
// round: there the code for newer ones takes minutes to compile.
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

// Which kernels run the nodes of `op` when nobody asks for one.
std::set<std::string> chosen_kernels(const OpDef& op, const std::shared_ptr<const Graph>& graph,
                                     const Capabilities& device) {
  const Plan plan = make_plan(graph, device, {});
  std::set<std::string> chosen;
  for (const Step& step : plan.steps) {
    if (plan.graph->nodes()[step.node].op == &op) chosen.insert(step.kernel);
  }
  return chosen;
}

// Whether a kernel has had its share of this test (each test is a process): one case, and where a test has
// made an operator of its own, with a kernel for each tile and number of slices, one case of every thirteenth
// kernel.
bool had_its_share(const OpDef& op, const KernelDef& kernel) {
  static std::set<const KernelDef*> ran;
  const bool of_a_test = std::ranges::find(all_ops(), &op) == all_ops().end();
  if (of_a_test && (&kernel - op.kernels.data()) % 13 != 0) return true;
  return !ran.insert(&kernel).second;
}

FirstOfTest first_case;

bool can_plan(const std::shared_ptr<const Graph>& graph, const Capabilities& device) {
  try {
    make_plan(graph, device, {});
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Leaves the case out if all that keeps the device from running it is that it can't store 16 bits: some
// kernels do without.
bool left_out(const OpCase& op_case, const std::shared_ptr<const Graph>& graph, const Capabilities& device) {
  const auto is_half = [](const Value& value) { return size_of(value.dtype) == 2; };
  if (device.supports(Need::storage16) || std::ranges::none_of(graph->values(), is_half)) return false;
  Capabilities with = device;
  with.has = with.has | Need::storage16;
  if (can_plan(graph, device) || !can_plan(graph, with)) return false;
  leave_out(op_case.label + ": " + std::string(no_storage16));
  return true;
}

void check_as(const OpCase& op_case, const std::shared_ptr<const Graph>& graph, const PlanOptions& options) {
  if (const auto fault = reference::fault_of(*test_device().pipelines, op_case, graph, options)) FAIL(*fault);
  require_no_validation_messages();
}

// What rules of fusion would have made of plain operators is right as these, too.
void check_unfused(const OpCase& op_case, const std::shared_ptr<const Graph>& graph) {
  if (fuse(graph, {}).graph == graph) return;
  INFO("without fusion");
  PlanOptions plain;
  plain.fusions = {};
  check_as(op_case, graph, plain);
}

}  // namespace

void check_op(const OpDef& op, const OpCase& op_case) {
  INFO("case " << op_case.label);
  if (const auto why = reference::useless(op_case)) FAIL(*why);
  TestDevice& device = test_device();
  const std::shared_ptr<const Graph> graph = reference::graph_of(op_case);
  const bool first = first_case();
  size_t ran = 0;
  std::string refusals;
  // A kernel has to run what rules of fusion make of the nodes; where it refuses that, the nodes as they are.
  const std::shared_ptr<const Graph> fused = fuse(graph, all_fusions()).graph;
  const Capabilities& capabilities = device.device->capabilities();
  if (left_out(op_case, graph, capabilities)) return;
  const std::optional<Capabilities> older = older_driver(capabilities);
  const std::set<std::string> chosen = chosen_kernels(op, graph, capabilities);
  for (const KernelDef& kernel : op.kernels) {
    INFO("kernel " << op.name << "=" << kernel.name);
    PlanOptions options;
    if (const auto why = refusal(*fused, op, kernel, capabilities)) {
      options.fusions = {};
      if (fused == graph || refusal(*graph, op, kernel, capabilities)) {
        refusals += std::string(kernel.name) + ": " + *why + "; ";
        continue;
      }
    }
    ++ran;
    const bool is_chosen = chosen.contains(std::string(kernel.name));
    if (capabilities.loops_gather && !is_chosen && had_its_share(op, kernel)) continue;
    if (!in_turn(op_case.label + ", " + std::string(kernel.name)) && !(first && is_chosen)) continue;
    options.variants[std::string(op.name)] = std::string(kernel.name);
    check_as(op_case, graph, options);
  }
  // Of a test's first case only: these kernels are the slowest to compile of all, and the older driver's own
  // tests run them in every case.
  static bool older_is_left = in_turn("as for an older driver");
  if (older && older_is_left &&
      !same_dispatches(make_plan(graph, capabilities, {}), make_plan(graph, *older, {}))) {
    INFO("as for an older driver");
    older_is_left = false;
    if (const auto fault = reference::fault_of(*device.pipelines, op_case, graph, {}, *older)) FAIL(*fault);
    require_no_validation_messages();
  }
  if (ran == 0) FAIL("no kernel of " << op.name << " could run: " << refusals);
  if (in_turn(op_case.label + ", without fusion")) check_unfused(op_case, graph);
  SUCCEED();
}

void check_chosen(const OpCase& op_case) {
  INFO("case " << op_case.label);
  if (const auto why = reference::useless(op_case)) FAIL(*why);
  const std::shared_ptr<const Graph> graph = reference::graph_of(op_case);
  if (left_out(op_case, graph, test_device().device->capabilities())) return;
  const bool first = first_case();
  if (in_turn(op_case.label) || first) check_as(op_case, graph, {});
  if (in_turn(op_case.label + ", without fusion")) check_unfused(op_case, graph);
  SUCCEED();
}

void check_configurations(const OpDef& op, const OpCase& op_case) {
  const Capabilities& device = test_device().device->capabilities();
  const auto graph = reference::graph_of(op_case);
  if (left_out(op_case, graph, device)) return;
  const std::set<std::string> chosen = chosen_kernels(op, graph, device);
  const bool first = first_case();
  size_t ran = 0;
  for (const Node& node : graph->nodes()) {
    if (node.op != &op) continue;
    for (const KernelDef& kernel : op.kernels) {
      const LowerContext context(*graph, node, device);
      if (!kernel.configurations || kernel.refuses(context)) continue;
      for (const std::string& configuration : kernel.configurations(context)) {
        ++ran;
        if (device.loops_gather && !chosen.contains(std::string(kernel.name)) && had_its_share(op, kernel))
          continue;
        const std::string name = std::string(kernel.name) + ":" + configuration;
        INFO(op_case.label << ", " << name);
        if (!in_turn(op_case.label + ", " + name) && !(first && ran == 1)) continue;
        PlanOptions options;
        options.variants[std::string(op.name)] = name;
        check_as(op_case, graph, options);
      }
    }
  }
  CHECK(ran > 1);
}

void check_nan(const OpDef& op, const OpCase& op_case, const Reference& reference) {
  std::vector<std::vector<double>> values;
  for (const OpInput& input : op_case.inputs) values.push_back(input.tensor.values);
  for (size_t i = 0; i < values.size(); ++i) {
    if (op_case.inputs[i].tensor.dtype == DType::u32) continue;
    const size_t count = values[i].size();
    for (const size_t at : std::set{size_t{0}, count / 2, count - 1}) {
      OpCase with_nan = op_case;
      with_nan.label += ", NaN in input " + std::to_string(i) + " at " + std::to_string(at);
      double& value = with_nan.inputs[i].tensor.values[at];
      const double before = values[i][at];
      value = values[i][at] = std::numeric_limits<double>::quiet_NaN();
      with_nan.expected = reference(values);
      with_nan.allow_nonfinite = true;
      check_op(op, with_nan);
      values[i][at] = before;
    }
  }
}

}  // namespace vitrine::test

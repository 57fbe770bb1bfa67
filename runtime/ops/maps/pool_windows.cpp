#include "runtime/ops/maps/pool_windows.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/maps/pool_windows.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Windows windows = windows_of(c.attributes());
  const uint64_t channels = require_windows(c, windows, false);
  c.output({c.input(0).shape[0], windows.rows * windows.columns, channels}, c.input(0).dtype);
}

double flops(const LowerContext& c) {
  const Windows windows = windows_of(c.attributes());
  return static_cast<double>(windows.kernel_height * windows.kernel_width) *
         static_cast<double>(c.output(0).shape.elements());
}

std::string variant(const LowerContext& c) { return std::string(name_of(c.input(0).dtype)); }
std::string quads_variant(const LowerContext& c) { return variant(c) + "_quads"; }

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "pool_windows", variant(c)); }

Lowered lower_as(const LowerContext& c, const std::string& variant, uint64_t channels_each) {
  const Windows w = windows_of(c.attributes());
  const Shape& result = c.output(0).shape;
  const uint64_t count = result.elements() / channels_each;
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("pool_windows", variant);
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 64)},
                        {"channels", to_u32(result[2])},
                        {"kernel_height", to_u32(w.kernel_height)},
                        {"kernel_width", to_u32(w.kernel_width)},
                        {"rows", to_u32(w.rows)},
                        {"columns", to_u32(w.columns)},
                        {"mean", c.attributes().flag("mean")}};
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(shader::PoolWindowsParams{to_u32(count), to_u32(w.height), to_u32(w.width),
                                                to_u32(w.top), to_u32(w.left), to_u32(w.stride_y),
                                                to_u32(w.stride_x)});
  dispatch.groups = spread_groups(c.device(), ceil_div(count, dispatch.constant("local_size")));
  return lowered;
}

Lowered lower(const LowerContext& c) { return lower_as(c, variant(c), 1); }

std::optional<std::string> refuses_quads(const LowerContext& c) {
  if (auto reason = refuse(c, "pool_windows", quads_variant(c))) return reason;
  if (const uint64_t channels = c.output(0).shape[2]; channels % 4 != 0)
    return std::to_string(channels) + " channels can't be moved by fours";
  return std::nullopt;
}

double prefers_quads(const LowerContext&) { return 2; }

Lowered lower_quads(const LowerContext& c) { return lower_as(c, quads_variant(c), 4); }

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower},
                                 {"quads", Target::any, refuses_quads, prefers_quads, lower_quads}};

ValueId pool(Graph& graph, std::string name, ValueId x, const Windows& windows, bool mean) {
  Attributes attributes{{"mean", int64_t{mean}}};
  set_windows(attributes, windows);
  return graph.add(op_pool_windows, std::move(name), {x}, std::move(attributes))[0];
}

}  // namespace

const OpDef op_pool_windows{"pool_windows", infer, flops, kernels, pool_windows_cases};

ValueId largest_of_windows(Graph& graph, std::string name, ValueId x, const Windows& windows) {
  return pool(graph, std::move(name), x, windows, false);
}

ValueId mean_of_windows(Graph& graph, std::string name, ValueId x, const Windows& windows) {
  return pool(graph, std::move(name), x, windows, true);
}

}  // namespace vitrine

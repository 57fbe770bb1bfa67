#include "runtime/ops/maps/neighbourhoods.h"

#include <utility>

#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/lowering.h"
#include "shaders/maps/neighbourhoods.h"

namespace vitrine {
namespace {

bool is_planar(const Attributes& attributes) { return attributes.flag("planar"); }

void infer(InferContext& c) {
  const Windows windows = windows_of(c.attributes());
  const uint64_t channels = require_windows(c, windows, is_planar(c.attributes()));
  const auto out = static_cast<DType>(c.attributes().integer("out"));
  c.require(is_computable(out), "the result can't be " + std::string(name_of(out)) + ", only f32 or f16");
  c.output({c.input(0).shape[0], windows.rows * windows.columns,
            windows.kernel_height * windows.kernel_width * channels},
           out);
}

double flops(const LowerContext&) { return 0; }

uint64_t channels_of(const LowerContext& c) { return c.input(0).shape[is_planar(c.attributes()) ? 1 : 2]; }

std::string variant(const LowerContext& c) { return storage_variant(c.input(0).dtype, c.output(0).dtype); }

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "neighbourhoods", variant(c)); }

Lowered lower_as(const LowerContext& c, std::string_view shader, uint64_t elements_each) {
  const Windows w = windows_of(c.attributes());
  const uint64_t count = c.output(0).shape.elements() / elements_each;
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader(shader, variant(c));
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"channels", to_u32(channels_of(c))},
                        {"kernel_height", to_u32(w.kernel_height)},
                        {"kernel_width", to_u32(w.kernel_width)},
                        {"stride_y", to_u32(w.stride_y)},
                        {"stride_x", to_u32(w.stride_x)},
                        {"rows", to_u32(w.rows)},
                        {"columns", to_u32(w.columns)}};
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(shader::NeighbourhoodsParams{to_u32(count), to_u32(w.height), to_u32(w.width),
                                                   to_u32(w.top), to_u32(w.left)});
  dispatch.groups = spread_groups(c.device(), ceil_div(count, dispatch.constant("local_size")));
  return lowered;
}

Lowered lower(const LowerContext& c) {
  Lowered lowered = lower_as(c, "neighbourhoods", 1);
  lowered.dispatches.front().add_constants({{"planar", is_planar(c.attributes())}});
  return lowered;
}

std::optional<std::string> refuses_quads(const LowerContext& c) {
  if (auto reason = refuse(c, "neighbourhoods_quads", variant(c))) return reason;
  if (is_planar(c.attributes())) return "the channels of a pixel don't lie side by side";
  if (const uint64_t channels = channels_of(c); channels % 4 != 0)
    return std::to_string(channels) + " channels can't be moved by fours";
  return std::nullopt;
}

double prefers_quads(const LowerContext&) { return 2; }

Lowered lower_quads(const LowerContext& c) { return lower_as(c, "neighbourhoods_quads", 4); }

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower},
                                 {"quads", Target::any, refuses_quads, prefers_quads, lower_quads}};

}  // namespace

const OpDef op_neighbourhoods{"neighbourhoods", infer, flops, kernels, neighbourhoods_cases};

ValueId neighbourhoods(Graph& graph, std::string name, ValueId x, const Windows& windows,
                       const NeighbourhoodsOptions& options) {
  Attributes attributes{{"planar", int64_t{options.planar}},
                        {"out", static_cast<int64_t>(options.out.value_or(graph.value(x).dtype))}};
  set_windows(attributes, windows);
  return graph.add(op_neighbourhoods, std::move(name), {x}, std::move(attributes))[0];
}

ValueId convolution(Graph& graph, const std::string& name, ValueId x, ValueId weight, const Windows& windows,
                    bool planar, const MatmulOptions& options) {
  const DType dtype = graph.value(weight).dtype;
  const ValueId rows =
      windows.are_pixels() && !planar
          ? convert(graph, name + ".convert", x, dtype)
          : neighbourhoods(graph, name + ".neighbourhoods", x, windows, {.planar = planar, .out = dtype});
  return matmul(graph, name, rows, weight, options);
}

}  // namespace vitrine

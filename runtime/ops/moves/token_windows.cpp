#include "runtime/ops/moves/token_windows.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/moves/token_windows.h"

namespace vitrine {
namespace {

template <typename Context>
TokenGrid grid_of(const Context& c) {
  const auto attribute = [&](std::string_view name) {
    return static_cast<uint64_t>(c.attributes().integer(name));
  };
  return {attribute("height"), attribute("width"), attribute("window")};
}

void infer(InferContext& c) {
  const Value& x = c.input(0);
  const TokenGrid grid = grid_of(c);
  constexpr uint64_t sensible = 1u << 14;
  c.require(grid.height > 0 && grid.height < sensible && grid.width > 0 && grid.width < sensible &&
                grid.window > 0 && grid.window < sensible,
            "windows of " + std::to_string(grid.window) + " in a grid of " + std::to_string(grid.height) +
                " x " + std::to_string(grid.width) +
                " were asked for, expected at least 1 and less than 16384 of each");
  const uint64_t tokens = grid.height * grid.width, in_window = grid.window * grid.window;
  const bool merge = c.attributes().flag("merge");
  const uint64_t rows = merge ? in_window : tokens;
  c.require(is_computable(x.dtype) && x.shape.rank() == 3 && x.shape[1] == rows &&
                (!merge || x.shape[0] % grid.windows() == 0),
            "x is " + std::string(name_of(x.dtype)) + " " + x.shape.to_string() + ", expected f32 or f16 [" +
                (merge ? "a multiple of " + std::to_string(grid.windows()) : std::string("images")) + ", " +
                std::to_string(rows) + ", columns]");
  c.output(merge ? Shape{x.shape[0] / grid.windows(), tokens, x.shape[2]}
                 : Shape{x.shape[0] * grid.windows(), in_window, x.shape[2]},
           x.dtype);
}

double flops(const LowerContext&) { return 0; }

uint64_t row_bytes(const LowerContext& c) { return c.input(0).shape[2] * size_of(c.input(0).dtype); }

Lowered lower_as(const LowerContext& c, std::string_view variant, uint64_t units) {
  const TokenGrid grid = grid_of(c);
  const Shape& result = c.output(0).shape;
  const uint64_t count = result[0] * result[1] * units;
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("token_windows", variant);
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"merge", c.attributes().flag("merge")},
                        {"window", to_u32(grid.window)},
                        {"height", to_u32(grid.height)},
                        {"width", to_u32(grid.width)},
                        {"units", to_u32(units)}};
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(shader::TokenWindowsParams{to_u32(count)});
  dispatch.groups = spread_groups(c.device(), ceil_div(count, dispatch.constant("local_size")));
  return lowered;
}

const char* variant_of(const LowerContext& c) { return size_of(c.input(0).dtype) == 4 ? "w32" : "w16"; }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "token_windows", variant_of(c));
}

Lowered lower(const LowerContext& c) { return lower_as(c, variant_of(c), c.input(0).shape[2]); }

std::optional<std::string> refuses_wide(const LowerContext& c) {
  if (row_bytes(c) % 16 != 0)
    return "rows of " + std::to_string(c.input(0).shape[2]) + " elements can't be moved 16 bytes at a time";
  return refuse(c, "token_windows", "wide");
}

double prefer_wide(const LowerContext&) { return 1; }

Lowered lower_in_runs(const LowerContext& c) { return lower_as(c, "wide", row_bytes(c) / 16); }

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower},
                                 {"wide", Target::any, refuses_wide, prefer_wide, lower_in_runs}};

ValueId append(Graph& graph, std::string name, ValueId x, const TokenGrid& grid, bool merge) {
  return graph.add(op_token_windows, std::move(name), {x},
                   {{"height", static_cast<int64_t>(grid.height)},
                    {"width", static_cast<int64_t>(grid.width)},
                    {"window", static_cast<int64_t>(grid.window)},
                    {"merge", int64_t{merge}}})[0];
}

}  // namespace

const OpDef op_token_windows{"token_windows", infer, flops, kernels, token_windows_cases};

ValueId partition_windows(Graph& graph, std::string name, ValueId x, const TokenGrid& grid) {
  return append(graph, std::move(name), x, grid, false);
}

ValueId merge_windows(Graph& graph, std::string name, ValueId x, const TokenGrid& grid) {
  return append(graph, std::move(name), x, grid, true);
}

}  // namespace vitrine

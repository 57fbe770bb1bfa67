#include "runtime/ops/explain/heat.h"

#include <algorithm>
#include <utility>

#include "runtime/ops/explain/heat_kernels.h"
#include "runtime/ops/lowering.h"
#include "shaders/explain/heat.h"

namespace vitrine {
namespace {

uint64_t cells_of(const LowerContext& c) {
  const HeatGrid grid = heat_grid_of(c.attributes());
  return grid.height * grid.width;
}

// A map's numbers and what a reduction needs, see heat.glsl.
uint64_t shared_bytes(uint64_t cells, uint32_t local_size) { return 4 * (cells + local_size); }

uint32_t local_size_of(const LowerContext& c) {
  const Capabilities& device = c.device();
  if (device.type == DeviceType::cpu) return workgroup_size(device, std::max(device.subgroup_size, 1u));
  const uint32_t large = workgroup_size(device, 256);
  return shared_bytes(cells_of(c), large) <= device.max_shared_bytes ? large : workgroup_size(device, 32);
}

}  // namespace

void set_heat_grid(Attributes& attributes, const HeatGrid& grid) {
  attributes.set("first", static_cast<int64_t>(grid.first));
  attributes.set("height", static_cast<int64_t>(grid.height));
  attributes.set("width", static_cast<int64_t>(grid.width));
}

HeatGrid heat_grid_of(const Attributes& attributes) {
  const auto number = [&](std::string_view name) { return static_cast<uint64_t>(attributes.integer(name)); };
  return {.first = number("first"), .height = number("height"), .width = number("width")};
}

void infer_heat(InferContext& c, size_t choice, uint64_t tokens, uint64_t maps) {
  const auto require_words = [&](size_t input, uint64_t count, const char* what) {
    const Value& value = c.input(input);
    c.require(value.dtype == DType::u32 && value.shape == Shape{count},
              std::string(what) + " " + std::string(name_of(value.dtype)) + " " + value.shape.to_string() +
                  ", expected u32 [" + std::to_string(count) + "]");
  };
  require_words(choice, 1, "the choice is");
  require_words(choice + 1, heat_colors, "the colors are");
  const HeatGrid grid = heat_grid_of(c.attributes());
  constexpr uint64_t sensible = 1u << 16;
  c.require(grid.height > 0 && grid.width > 0 && grid.height < sensible && grid.width < sensible &&
                grid.first <= tokens && grid.height * grid.width <= tokens - grid.first,
            std::to_string(grid.height) + " x " + std::to_string(grid.width) + " patches from token " +
                std::to_string(grid.first) + " on were asked for, of " + std::to_string(tokens) + " tokens");
  c.output({maps, heat_pixels * grid.height, heat_pixels * grid.width}, DType::u32, "pixels");
  c.output({maps, grid.height, grid.width}, DType::f32, "numbers");
}

double heat_flops(const LowerContext& c) {
  // Four cubics of about 30 operations for nine pixels, and one with a color for each.
  constexpr double a_pixel = 60;
  return a_pixel * static_cast<double>(c.output(0).shape.elements());
}

std::optional<std::string> refuse_heat(const LowerContext& c) {
  const uint64_t needed = shared_bytes(cells_of(c), local_size_of(c));
  if (needed <= c.device().max_shared_bytes) return std::nullopt;
  return "a map of " + std::to_string(cells_of(c)) + " patches takes " + std::to_string(needed) +
         " bytes of shared memory, the device has " + std::to_string(c.device().max_shared_bytes);
}

void set_heat_groups(const LowerContext& c, Dispatch& dispatch) {
  const HeatGrid grid = heat_grid_of(c.attributes());
  const uint64_t maps = c.output(0).shape[0];
  const uint32_t local_size = local_size_of(c);
  const uint64_t columns = (grid.height + 1) * grid.width * heat_pixels;
  // A map's numbers are found anew by each of its groups. A CPU's few cores have enough to do with a group a
  // map; on a GPU an invocation takes about eight columns.
  const bool cpu = c.device().type == DeviceType::cpu;
  const uint64_t parts = cpu ? (maps < 8 ? 4 : 1) : ceil_div(columns, uint64_t{8} * local_size);
  dispatch.constants = {{"local_size", local_size},
                        {"cells", to_u32(grid.height * grid.width)},
                        {"grid_width", to_u32(grid.width)}};
  dispatch.groups = {to_u32(std::max<uint64_t>(parts, 1)), to_u32(maps), 1};
}

namespace {

constexpr uint32_t input_stored = 0, input_choice = 1, input_colors = 2;

void infer(InferContext& c) {
  const Value& stored = c.input(input_stored);
  c.require(stored.dtype == DType::f32 && stored.shape.rank() == 3,
            "the maps are " + std::string(name_of(stored.dtype)) + " " + stored.shape.to_string() +
                ", expected f32 [maps, rows, tokens]");
  infer_heat(c, input_choice, stored.shape[2], stored.shape[0] + c.attributes().flag("with_mean"));
}

std::optional<std::string> refuses(const LowerContext& c) {
  if (auto reason = refuse(c, "heat", "f32")) return reason;
  return refuse_heat(c);
}

Lowered lower(const LowerContext& c) {
  const HeatGrid grid = heat_grid_of(c.attributes());
  const Shape& stored = c.input(input_stored).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("heat", "f32");
  set_heat_groups(c, dispatch);
  dispatch.operands = {Operand::input(input_stored), Operand::input(input_choice),
                       Operand::input(input_colors), Operand::output(0), Operand::output(1)};
  dispatch.set_params(shader::HeatParams{.maps = to_u32(stored[0]),
                                         .rows = to_u32(stored[1]),
                                         .tokens = to_u32(stored[2]),
                                         .first_token = to_u32(grid.first)});
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_heat{"heat", infer, heat_flops, kernels, heat_cases};

HeatResult heat(Graph& graph, std::string name, ValueId stored, ValueId choice, ValueId colors,
                const HeatGrid& grid, bool with_mean) {
  Attributes attributes{{"with_mean", int64_t{with_mean}}};
  set_heat_grid(attributes, grid);
  const auto outputs = graph.add(op_heat, std::move(name), {stored, choice, colors}, std::move(attributes));
  return {outputs[0], outputs[1]};
}

}  // namespace vitrine

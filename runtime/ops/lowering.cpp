#include "runtime/ops/lowering.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace vitrine {
namespace {

std::optional<std::string> refuse_tensor(const Value& value, const ShaderVariant& shader,
                                         const Capabilities& device) {
  // Half of what 32 bits count: invocations past the last element (see linear_invocation) don't wrap.
  if (value.shape.elements() > (uint64_t{1} << 31)) {
    return "'" + value.name + "' " + value.shape.to_string() + " has more than 2^31 elements";
  }
  if (shader.bind == BindMode::descriptors && value.bytes() > device.max_storage_range) {
    return "'" + value.name + "' takes " + std::to_string(value.bytes()) +
           " bytes, the device binds at most " + std::to_string(device.max_storage_range);
  }
  if (shader.bind == BindMode::descriptors && !can_bind_at(device, value.offset())) {
    return "'" + value.name + "' begins at byte " + std::to_string(value.offset()) + " of '" +
           value.place.buffer + "', the device binds multiples of " +
           std::to_string(device.storage_alignment);
  }
  return std::nullopt;
}

}  // namespace

uint32_t workgroup_size(const Capabilities& device, uint32_t wanted) {
  return std::bit_floor(std::min({wanted, device.max_workgroup_size[0], device.max_workgroup_invocations}));
}

uint32_t row_workgroup_size(const Capabilities& device, uint64_t width) {
  if (device.type == DeviceType::cpu) return workgroup_size(device, std::max(device.subgroup_size, 4u));
  const uint64_t wanted = std::clamp<uint64_t>(std::bit_ceil(ceil_div(width, 4)), 32, 256);
  return workgroup_size(device, static_cast<uint32_t>(wanted));
}

std::array<uint32_t, 3> spread_groups(const Capabilities& device, uint64_t count) {
  const uint64_t x = std::min<uint64_t>(count, device.max_workgroup_count[0]);
  const uint64_t y = ceil_div(count, x);
  // Even rows: 65 536 groups under a limit of 65 535 become 2 x 32 768, with no group to spare.
  return {to_u32(ceil_div(count, y)), to_u32(y), 1};
}

std::array<uint32_t, 3> striding_groups(const Capabilities& device, uint64_t count, uint32_t threads) {
  return {to_u32(std::min<uint64_t>(ceil_div(count, threads), device.max_workgroup_count[0])), 1, 1};
}

std::string storage_variant(DType in, DType out) {
  if (in == out) return std::string(name_of(in));
  return std::string(name_of(in)) + "_" + std::string(name_of(out));
}

std::optional<std::string> refuse(const LowerContext& context, std::string_view shader,
                                  std::string_view variant) {
  if (auto reason = context.missing(shader, variant)) return reason;
  const ShaderVariant& found = find_shader(shader, variant);
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    if (!context.has_input(i)) continue;
    if (auto reason = refuse_tensor(context.input(i), found, context.device())) return reason;
  }
  for (size_t i = 0; i < context.node().outputs.size(); ++i) {
    if (auto reason = refuse_tensor(context.output(i), found, context.device())) return reason;
  }
  return std::nullopt;
}

std::optional<std::string> refuse_row_lanes(const LowerContext& context, std::string_view shader,
                                            std::string_view variant, const Shape& shape) {
  if (auto reason = refuse(context, shader, variant)) return reason;
  if (shape[-1] % 4 != 0) return "rows of " + std::to_string(shape[-1]) + " elements can't be moved by fours";
  return refuse_row_groups(context, shape.rows());
}

std::optional<std::string> refuse_row_groups(const LowerContext& context, uint64_t rows) {
  if (ceil_div(rows, lanes_workgroup_size(context.device())) > context.device().max_workgroup_count[0])
    return std::to_string(rows) + " rows need more workgroups than the device takes";
  return std::nullopt;
}

std::optional<std::string> refuse_half_word(const Value& value) {
  if (value.role != Role::state || value.place.first % 2 == 0) return std::nullopt;
  return "'" + value.name + "' starts between two 64-bit words";
}

std::optional<std::string> refuse_quads(const LowerContext& context, std::string_view shader,
                                        std::string_view variant) {
  if (auto reason = refuse(context, shader, variant)) return reason;
  const auto refuse_value = [](const Value& value) -> std::optional<std::string> {
    if (value.shape.elements() % 4 != 0) {
      return std::to_string(value.shape.elements()) + " elements can't be moved by fours";
    }
    return refuse_half_word(value);
  };
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    if (auto reason = refuse_value(context.input(i))) return reason;
  }
  return refuse_value(context.output(0));
}

Lowered lower_by_quads(const LowerContext& context, Lowered lowered, std::string_view shader,
                       std::string_view variant) {
  // A workgroup costs as much as about a hundred quads; a few for each core keep all busy.
  constexpr uint64_t wanted_groups = 16, most_each = 64;
  Dispatch& dispatch = lowered.dispatches.front();
  const uint32_t local_size = workgroup_size(context.device(), 64);
  const uint64_t pieces = ceil_div(context.output(0).shape.elements() / 4, local_size);
  const uint32_t quads_each =
      std::bit_floor(to_u32(std::clamp<uint64_t>(pieces / wanted_groups, 1, most_each)));
  dispatch.shader = &find_shader(shader, variant);
  dispatch.constant("local_size") = local_size;
  dispatch.add_constants({{"quads_each", quads_each}});
  dispatch.groups = spread_groups(context.device(), ceil_div(pieces, quads_each));
  return lowered;
}

uint64_t wide_run(const LowerContext& context) {
  return 16 / std::max(size_of(context.input(0).dtype), size_of(context.output(0).dtype));
}

Lowered lower_wide(const LowerContext& context, Lowered lowered, std::string_view shader,
                   std::string_view variant) {
  Dispatch& dispatch = lowered.dispatches.front();
  const uint64_t run = wide_run(context);
  uint32_t elements = 0;
  std::memcpy(&elements, dispatch.params.data(), sizeof elements);
  const uint64_t runs = ceil_div(elements, run);
  dispatch.shader = &find_shader(shader, variant);
  dispatch.groups = spread_groups(context.device(), ceil_div(runs, dispatch.constant("local_size")));
  // A shader that has no such constant is used for whole runs alone.
  if (std::ranges::find(constant_names_of(*dispatch.shader), "whole_runs") !=
      constant_names_of(*dispatch.shader).end())
    dispatch.add_constants({{"whole_runs", elements % run == 0}});
  return lowered;
}

uint32_t lanes_workgroup_size(const Capabilities& device) {
  return workgroup_size(device, std::max(device.subgroup_size, 1u));
}

uint32_t row_lanes_workgroup_size(const Capabilities& device, uint64_t rows) {
  constexpr uint64_t wanted_groups = 32;
  const auto rows_each = std::bit_ceil(ceil_div(rows, wanted_groups));
  return workgroup_size(device, to_u32(std::clamp<uint64_t>(rows_each, lanes_workgroup_size(device), 256)));
}

double prefer_on_cpu(const LowerContext& context) {
  return context.device().type == DeviceType::cpu ? 1.0 : -1.0;
}

double prefer_on_gpu(const LowerContext& context) { return -prefer_on_cpu(context); }

std::string shared_rows_variant(const Capabilities& device, std::string variant) {
  return device.loops_gather ? std::move(variant) + "_gathers" : variant;
}

uint32_t shared_rows_subgroup(const Capabilities& device) {
  return device.loops_gather ? device.subgroup_size : 0;
}

}  // namespace vitrine

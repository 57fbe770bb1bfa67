#include "runtime/graph/op.h"

#include <algorithm>

#include "runtime/util/error.h"

namespace vitrine {

const Value& InferContext::input(size_t i) const {
  if (!has_input(i)) {
    throw Error(ErrorCode::usage, std::string(node_.op->name) + " '" + node_.name + "': input " +
                                      std::to_string(i) + " is missing");
  }
  return graph_.value(node_.inputs[i]);
}

void InferContext::output(Shape shape, DType dtype, std::string_view suffix) {
  std::string name = node_.name;
  if (!suffix.empty()) name += "." + std::string(suffix);
  outputs_.push_back({std::move(name), shape, dtype, Role::intermediate});
}

void InferContext::require(bool condition, const std::string& what) const {
  if (!condition) {
    throw Error(ErrorCode::usage, std::string(node_.op->name) + " '" + node_.name + "': " + what);
  }
}

std::optional<std::string> LowerContext::missing(std::string_view shader, std::string_view variant) const {
  const ShaderVariant* found = try_find_shader(shader, variant);
  if (!found) {
    return "this build has no " + std::string(variant) + " variant of the shader " + std::string(shader);
  }
  if (!device_.supports(found->needs)) {
    const auto lacking =
        static_cast<Need>(static_cast<uint32_t>(found->needs) & ~static_cast<uint32_t>(device_.has));
    return "the device lacks " + to_string(lacking);
  }
  const size_t buffers = found->bind == BindMode::descriptors ? access_of(*found).size() : 0;
  if (buffers > device_.max_storage_buffers) {
    return std::string(shader) + " binds " + std::to_string(buffers) + " buffers, the device takes " +
           std::to_string(device_.max_storage_buffers);
  }
  return std::nullopt;
}

uint32_t& Dispatch::constant(std::string_view name) {
  const auto found = std::ranges::find(constants, name, &NamedConstant::name);
  if (found == constants.end()) {
    throw Error(ErrorCode::failed, "a dispatch of shader '" + std::string(shader ? shader->shader : "none") +
                                       "' is given no constant '" + std::string(name) + "'");
  }
  return found->value;
}

std::vector<uint32_t> constants_by_id(const Dispatch& dispatch) {
  const auto complain = [&](std::string_view verb, std::string_view name) {
    throw Error(ErrorCode::failed, "shader '" + std::string(dispatch.shader->shader) + "' (" +
                                       std::string(dispatch.shader->variant) + ") " + std::string(verb) +
                                       " '" + std::string(name) + "'");
  };
  const std::span<const std::string> names = constant_names_of(*dispatch.shader);
  std::vector<std::optional<uint32_t>> values(names.size());
  for (const NamedConstant& constant : dispatch.constants) {
    const auto id = std::ranges::find(names, constant.name);
    if (id == names.end()) complain("has no specialization constant", constant.name);
    std::optional<uint32_t>& value = values[static_cast<size_t>(id - names.begin())];
    if (value) complain("is given twice its specialization constant", constant.name);
    value = constant.value;
  }
  std::vector<uint32_t> by_id;
  for (size_t id = 0; id < names.size(); ++id) {
    if (!values[id]) complain("is not given its specialization constant", names[id]);
    by_id.push_back(*values[id]);
  }
  return by_id;
}

const OpDef* find_op(std::string_view name) {
  for (const OpDef* op : all_ops()) {
    if (op->name == name) return op;
  }
  return nullptr;
}

Cost cost_of(const LowerContext& context) {
  Cost cost{context.node().op->flops(context), 0};
  std::vector<ValueId> seen;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    const ValueId id = context.node().inputs[i];
    if (!id || std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
    seen.push_back(id);
    cost.bytes += static_cast<double>(context.input(i).bytes());
  }
  for (size_t i = 0; i < context.node().outputs.size(); ++i) {
    cost.bytes += static_cast<double>(context.output(i).bytes());
  }
  return cost;
}

std::optional<std::string> excess_groups(const Capabilities& device, const Dispatch& dispatch) {
  for (size_t axis = 0; axis < 3; ++axis) {
    const uint32_t groups = dispatch.groups[axis], limit = device.max_workgroup_count[axis];
    if (groups >= 1 && groups <= limit) continue;
    return "needs " + std::to_string(groups) + " workgroups along axis " + std::to_string(axis) +
           ", this device takes 1 to " + std::to_string(limit);
  }
  return std::nullopt;
}

uint32_t to_u32(uint64_t value) {
  if (value > UINT32_MAX) {
    throw Error(ErrorCode::usage, "a count of " + std::to_string(value) + " does not fit a shader's 32 bits");
  }
  return static_cast<uint32_t>(value);
}

}  // namespace vitrine

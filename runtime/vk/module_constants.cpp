#include "runtime/vk/module_constants.h"

#include <vector>

namespace vitrine {
namespace {

constexpr int deepest = 64;  // also ends what is defined by itself

}  // namespace

ModuleConstants::ModuleConstants(Words words, Words constants) : constants_(constants) {
  spv::for_each_instruction(words, [&](uint32_t opcode, Words operands) {
    if (opcode >= spv::type_bool && opcode <= spv::type_pointer && !operands.empty()) {
      ids_[operands[0]] = {opcode, 0, operands.subspan(1)};
    } else if (opcode >= spv::constant_true && opcode <= spv::spec_constant_op && operands.size() >= 2) {
      ids_[operands[1]] = {opcode, operands[0], operands.subspan(2)};
    } else if (opcode == spv::decorate && operands.size() >= 3 && operands[1] == spv::spec_id) {
      spec_ids_[operands[0]] = operands[2];
    }
  });
}

const ModuleConstants::Id* ModuleConstants::find(uint32_t id) const {
  const auto found = ids_.find(id);
  return found == ids_.end() ? nullptr : &found->second;
}

bool ModuleConstants::is_single(uint32_t id) const {
  const Id* type = find(id);
  if (type == nullptr) return false;
  if (type->opcode == spv::type_bool) return true;
  return (type->opcode == spv::type_int || type->opcode == spv::type_float) && !type->operands.empty() &&
         type->operands[0] == 32;
}

std::optional<uint32_t> ModuleConstants::value_of(uint32_t id, int depth) const {
  const Id* constant = find(id);
  if (constant == nullptr || depth > deepest || !is_single(constant->type)) return {};
  if (const auto spec = spec_ids_.find(id); spec != spec_ids_.end() && spec->second < constants_.size()) {
    return constants_[spec->second];
  }
  switch (constant->opcode) {
    case spv::constant_true:
    case spv::spec_constant_true:
      return 1;
    case spv::constant_false:
    case spv::spec_constant_false:
      return 0;
    case spv::constant:
    case spv::spec_constant:
      if (constant->operands.empty()) return {};
      return constant->operands[0];
    case spv::spec_constant_op:
      return calculate(constant->operands, depth);
    default:
      return {};
  }
}

std::optional<uint32_t> ModuleConstants::calculate(Words operation, int depth) const {
  std::vector<uint32_t> v;
  for (size_t i = 1; i < operation.size(); ++i) {
    const auto value = value_of(operation[i], depth + 1);
    if (!value) return {};
    v.push_back(*value);
  }
  const uint32_t opcode = operation.empty() ? 0 : operation[0];
  if (opcode == spv::logical_not && v.size() == 1) return v[0] == 0;
  if (opcode == spv::select && v.size() == 3) return v[0] != 0 ? v[1] : v[2];
  if (v.size() != 2) return {};
  const uint32_t a = v[0], b = v[1];
  switch (opcode) {
    case spv::i_add:
      return a + b;
    case spv::i_sub:
      return a - b;
    case spv::i_mul:
      return a * b;
    case spv::u_div:
      return b == 0 ? std::nullopt : std::optional(a / b);
    case spv::u_mod:
      return b == 0 ? std::nullopt : std::optional(a % b);
    case spv::logical_or:
      return a != 0 || b != 0;
    case spv::logical_and:
      return a != 0 && b != 0;
    case spv::i_equal:
      return a == b;
    case spv::i_not_equal:
      return a != b;
    case spv::u_greater:
      return a > b;
    case spv::u_greater_equal:
      return a >= b;
    case spv::u_less:
      return a < b;
    case spv::u_less_equal:
      return a <= b;
    case spv::shift_right:
      return a >> (b & 31);
    case spv::shift_left:
      return a << (b & 31);
    case spv::bit_or:
      return a | b;
    case spv::bit_and:
      return a & b;
    default:
      return {};
  }
}

}  // namespace vitrine

#include "runtime/vk/shared_memory.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace vitrine {
namespace {

// The numbers of the SPIR-V specification that this reader knows.
namespace spv {
enum Op : uint32_t {
  type_bool = 20,
  type_int = 21,
  type_float = 22,
  type_vector = 23,
  type_array = 28,
  type_struct = 30,
  type_pointer = 32,
  constant_true = 41,
  constant_false = 42,
  constant = 43,
  spec_constant_true = 48,
  spec_constant_false = 49,
  spec_constant = 50,
  spec_constant_op = 52,
  variable = 59,
  decorate = 71,
};
enum Arithmetic : uint32_t {
  add = 128,
  subtract = 130,
  multiply = 132,
  divide = 134,
  modulo = 137,
  logical_or = 166,
  logical_and = 167,
  logical_not = 168,
  select = 169,
  equal = 170,
  not_equal = 171,
  greater = 172,
  greater_equal = 174,
  less = 176,
  less_equal = 178,
  shift_right = 194,
  shift_left = 196,
  bit_or = 197,
  bit_and = 199,
};
constexpr uint32_t decoration_spec_id = 1;
constexpr uint32_t storage_workgroup = 4;
}  // namespace spv

using Words = std::span<const uint32_t>;
constexpr int deepest = 64;  // also ends what is defined by itself

class Reader {
 public:
  Reader(Words words, Words constants) : constants_(constants) {
    for (size_t at = 5; at < words.size();) {
      const uint32_t count = words[at] >> 16, opcode = words[at] & 0xffff;
      if (count == 0 || count > words.size() - at) return;
      const Words operands = words.subspan(at + 1, count - 1);
      if (opcode >= spv::type_bool && opcode <= spv::type_pointer && !operands.empty()) {
        ids_[operands[0]] = {opcode, 0, operands.subspan(1)};
      } else if (opcode >= spv::constant_true && opcode <= spv::spec_constant_op && operands.size() >= 2) {
        ids_[operands[1]] = {opcode, operands[0], operands.subspan(2)};
      } else if (opcode == spv::variable && operands.size() >= 3 && operands[2] == spv::storage_workgroup) {
        pointers_.push_back(operands[0]);
      } else if (opcode == spv::decorate && operands.size() >= 3 && operands[1] == spv::decoration_spec_id) {
        spec_ids_[operands[0]] = operands[2];
      }
      at += count;
    }
  }

  std::optional<uint64_t> sum() const {
    uint64_t bytes = 0;
    for (const uint32_t pointer : pointers_) {
      const Id* type = find(pointer);
      if (type == nullptr || type->opcode != spv::type_pointer || type->operands.size() < 2) return {};
      const auto size = size_of(type->operands[1], 0);
      if (!size) return {};
      bytes += *size;
    }
    return bytes;
  }

 private:
  struct Id {
    uint32_t opcode = 0, type = 0;
    Words operands;  // after the result
  };

  const Id* find(uint32_t id) const {
    const auto found = ids_.find(id);
    return found == ids_.end() ? nullptr : &found->second;
  }

  std::optional<uint64_t> size_of(uint32_t id, int depth) const {
    const Id* type = find(id);
    if (type == nullptr || depth > deepest) return {};
    const Words o = type->operands;
    switch (type->opcode) {
      case spv::type_bool:
        return 4;
      case spv::type_int:
      case spv::type_float:
        if (o.empty()) return {};
        return o[0] / 8;
      case spv::type_vector:
      case spv::type_array: {
        if (o.size() < 2) return {};
        const auto each = size_of(o[0], depth + 1);
        const auto count = type->opcode == spv::type_vector ? o[1] : value_of(o[1], depth + 1);
        if (!each || !count) return {};
        return *each * *count;
      }
      case spv::type_struct: {
        uint64_t bytes = 0;
        for (const uint32_t member : o) {
          const auto each = size_of(member, depth + 1);
          if (!each) return {};
          bytes += *each;
        }
        return bytes;
      }
      default:
        return {};
    }
  }

  std::optional<uint32_t> value_of(uint32_t id, int depth) const {
    const Id* constant = find(id);
    if (constant == nullptr || depth > deepest) return {};
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

  std::optional<uint32_t> calculate(Words operation, int depth) const {
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
      case spv::add:
        return a + b;
      case spv::subtract:
        return a - b;
      case spv::multiply:
        return a * b;
      case spv::divide:
        return b == 0 ? std::nullopt : std::optional(a / b);
      case spv::modulo:
        return b == 0 ? std::nullopt : std::optional(a % b);
      case spv::logical_or:
        return a != 0 || b != 0;
      case spv::logical_and:
        return a != 0 && b != 0;
      case spv::equal:
        return a == b;
      case spv::not_equal:
        return a != b;
      case spv::greater:
        return a > b;
      case spv::greater_equal:
        return a >= b;
      case spv::less:
        return a < b;
      case spv::less_equal:
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

  Words constants_;
  std::unordered_map<uint32_t, Id> ids_;
  std::unordered_map<uint32_t, uint32_t> spec_ids_;
  std::vector<uint32_t> pointers_;
};

}  // namespace

std::optional<uint64_t> shared_bytes_of(Words words, Words constants) {
  return Reader(words, constants).sum();
}

}  // namespace vitrine

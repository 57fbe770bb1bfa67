// The types and constants of a SPIR-V compute module, once its specialization constants have values. A pure
// reader: it trusts no word of the module.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

namespace vitrine {

// The numbers of the SPIR-V specification for what this reader and those that use it look at.
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
  constant_composite = 44,
  spec_constant_true = 48,
  spec_constant_false = 49,
  spec_constant = 50,
  spec_constant_composite = 51,
  spec_constant_op = 52,
  variable = 59,
  decorate = 71,
};
constexpr uint32_t decoration_spec_id = 1;
constexpr uint32_t storage_workgroup = 4;
constexpr size_t first_instruction = 5;  // behind the header
}  // namespace spv

class ModuleConstants {
 public:
  using Words = std::span<const uint32_t>;
  struct Id {
    uint32_t opcode = 0, type = 0;  // `type` of a constant
    Words operands;                 // after the result
  };

  // Of specialization constants 0..n-1 the values; the others have their defaults.
  ModuleConstants(Words words, Words constants);

  // A type or a constant; null for what is neither.
  const Id* find(uint32_t id) const;
  // Nothing for what isn't one value of 32 bits or a bool, and for what is computed from others in a way that
  // this reader doesn't know.
  std::optional<uint32_t> value_of(uint32_t id) const { return value_of(id, 0); }

 private:
  std::optional<uint32_t> value_of(uint32_t id, int depth) const;
  std::optional<uint32_t> calculate(Words operation, int depth) const;
  bool is_single(uint32_t type) const;

  Words constants_;
  std::unordered_map<uint32_t, Id> ids_;
  std::unordered_map<uint32_t, uint32_t> spec_ids_;
};

// Calls visit(opcode, operands) for the module's instructions, and ends early where they make no sense.
template <typename Visit>
void for_each_instruction(ModuleConstants::Words words, const Visit& visit) {
  for (size_t at = spv::first_instruction; at < words.size();) {
    const uint32_t count = words[at] >> 16, opcode = words[at] & 0xffff;
    if (count == 0 || count > words.size() - at) return;
    visit(opcode, words.subspan(at + 1, count - 1));
    at += count;
  }
}

}  // namespace vitrine

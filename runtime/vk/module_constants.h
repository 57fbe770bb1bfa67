// The types and constants of a SPIR-V compute module, once its specialization constants have values. A pure
// reader: it trusts no word of the module.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "runtime/vk/spirv.h"

namespace vitrine {

class ModuleConstants {
 public:
  using Words = spv::Words;
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

}  // namespace vitrine

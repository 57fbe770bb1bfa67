// What a SPIR-V compute module says about itself. A pure reader: it trusts no word of the module.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/vk/capabilities.h"

namespace vitrine {

struct ReflectedBinding {
  uint32_t set = 0, binding = 0;
  bool storage_buffer = false;  // one storage buffer; false for arrays of them, images and the like
  bool readable = false, writable = false;
  std::string name;  // of the block or the variable, when the module has kept it
};

struct ReflectedConstant {
  uint32_t id = 0;             // constant_id
  uint32_t bytes = 4;          // 8 for 64-bit types
  bool is_switch = false;      // a bool, else a number
  uint64_t default_value = 0;  // bits
  std::string name;            // of the workgroup's size "local_size", where the shader gives none
};

struct Reflection {
  std::vector<ReflectedBinding> bindings;           // by set, then binding
  std::vector<ReflectedConstant> constants;         // by id
  uint32_t push_bytes = 0;                          // size of the push-constant block, 0 without one
  std::array<uint32_t, 3> workgroup_size{1, 1, 1};  // with the constants' defaults
  // Which specialization constant gives each dimension, where one does.
  std::array<std::optional<uint32_t>, 3> workgroup_size_ids{};
  std::vector<uint32_t> capabilities;  // SpvCapability numbers, in the module's order
  bool uses_subgroups = false;         // subgroup operations or cooperative matrices

  bool declares(uint32_t capability) const;
  // The workgroup's size when constants 0..n-1 have these values.
  std::array<uint32_t, 3> workgroup_size_with(std::span<const uint32_t> constants) const;
};

// Throws Error(failed) that says what is wrong when the words are no well-formed compute module.
Reflection reflect(std::span<const uint32_t> words);

// What a device must support to run a module that declares these capabilities. Capabilities that
// Vitrine never enables are returned by number in `unknown`.
struct ModuleNeeds {
  Need needs = Need::none;
  uint32_t subgroup_operations = 0;  // VkSubgroupFeatureFlags
  std::vector<uint32_t> unknown;
};
ModuleNeeds needs_of(const Reflection& module);

}  // namespace vitrine

// The shaders that were compiled into this library: one entry for each `//! variant` line of each
// shaders/*.comp. cmake/shaders.cmake generates the table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/vk/capabilities.h"

namespace vitrine {

// How a shader reaches its buffers: storage buffers in set 0, bindings 0..n-1, or n 64-bit buffer
// addresses at the start of its push constants.
enum class BindMode : uint8_t { descriptors, addresses };

struct ShaderVariant {
  std::string_view shader;   // file name without .comp
  std::string_view variant;  // "f32", "f16", ...
  Need needs = Need::none;
  BindMode bind = BindMode::descriptors;
  std::string_view access;  // BindMode::addresses: a letter an operand, 'r', 'w' or 'x' (both)
  std::span<const uint32_t> words;
};

std::span<const ShaderVariant> all_shaders();
// Throws Error(failed) when this build has no such variant.
const ShaderVariant& find_shader(std::string_view shader, std::string_view variant);
const ShaderVariant* try_find_shader(std::string_view shader, std::string_view variant);

// A letter for each buffer, in order, as ShaderVariant::access: that, or what the SPIR-V says of its
// bindings. The module is read once; any thread may call.
std::string_view access_of(const ShaderVariant& shader);

// The names of its specialization constants, by id, out of the SPIR-V. The module is read once; any thread
// may call.
std::span<const std::string> constant_names_of(const ShaderVariant& shader);

}  // namespace vitrine

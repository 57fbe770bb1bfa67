#include "runtime/vk/shader_table.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/util/error.h"
#include "runtime/vk/reflection.h"

namespace vitrine {

const ShaderVariant* try_find_shader(std::string_view shader, std::string_view variant) {
  const std::span<const ShaderVariant> table = all_shaders();
  const auto found = std::ranges::find_if(
      table, [&](const ShaderVariant& row) { return row.shader == shader && row.variant == variant; });
  return found == table.end() ? nullptr : &*found;
}

const ShaderVariant& find_shader(std::string_view shader, std::string_view variant) {
  if (const ShaderVariant* found = try_find_shader(shader, variant)) return *found;
  std::string known;
  for (const ShaderVariant& row : all_shaders()) {
    if (row.shader != shader) continue;
    known += (known.empty() ? "" : ", ") + std::string(row.variant);
  }
  throw Error(ErrorCode::failed, "this build has no variant '" + std::string(variant) + "' of shader '" +
                                     std::string(shader) + "', it has " +
                                     (known.empty() ? "no such shader" : known));
}

namespace {

// What is kept of a module that was read.
struct Facts {
  std::string access;
  std::vector<std::string> constant_names;
};

const Facts& facts_of(const ShaderVariant& shader) {
  static std::mutex lock;
  static std::map<const uint32_t*, Facts> known;
  const std::lock_guard held(lock);
  const auto found = known.find(shader.words.data());
  if (found != known.end()) return found->second;
  const Reflection module = reflect(shader.words);
  Facts facts;
  for (const ReflectedBinding& binding : module.bindings)
    facts.access += binding.readable && binding.writable ? 'x' : binding.writable ? 'w' : 'r';
  for (const ReflectedConstant& constant : module.constants) facts.constant_names.push_back(constant.name);
  return known.emplace(shader.words.data(), std::move(facts)).first->second;
}

}  // namespace

std::string_view access_of(const ShaderVariant& shader) {
  return shader.bind == BindMode::addresses ? shader.access : std::string_view(facts_of(shader).access);
}

std::span<const std::string> constant_names_of(const ShaderVariant& shader) {
  return facts_of(shader).constant_names;
}

}  // namespace vitrine

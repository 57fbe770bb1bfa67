#include "runtime/graph/shader_table.h"

#include <algorithm>
#include <string>

#include "runtime/util/error.h"

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

}  // namespace vitrine

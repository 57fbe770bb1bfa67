// Included first by every parameter header shaders/X.h, which GLSL and C++ both read. In C++ it brings
// GLM's names for GLSL's types into vitrine::shader; in GLSL it does nothing.
#ifndef VITRINE_SHARED_H
#define VITRINE_SHARED_H

#ifdef __cplusplus
#include <glm/glm.hpp>
namespace vitrine::shader {
using glm::ivec2;
using glm::ivec4;
using glm::uint;
using glm::uvec2;
using glm::uvec3;
using glm::uvec4;
using glm::vec2;
using glm::vec4;
}  // namespace vitrine::shader
#define VITRINE_SHARED_BEGIN namespace vitrine::shader {
#define VITRINE_SHARED_END }
// Parameters are 4-byte scalars: their size is their member count times four, in both languages.
#define VITRINE_SHARED_SIZE(type, bytes) static_assert(sizeof(type) == (bytes) && (bytes) <= 128)
#else
#define VITRINE_SHARED_BEGIN
#define VITRINE_SHARED_END
#define VITRINE_SHARED_SIZE(type, bytes)
#endif

#endif

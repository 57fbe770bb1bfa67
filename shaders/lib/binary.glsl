// A function of two elements, for float and vec4. The including shader declares the constant `function` and the
// parameters `p`.
#ifndef VITRINE_BINARY_GLSL
#define VITRINE_BINARY_GLSL

#define VITRINE_BINARY_OF(T)                                          \
  T binary(T left, T right) {                                         \
    if (function == VITRINE_BINARY_ADD) return left + right;          \
    if (function == VITRINE_BINARY_MULTIPLY) return left * right;     \
    return left + p.share * (right - left);                           \
  }
VITRINE_BINARY_OF(float)
VITRINE_BINARY_OF(vec4)

#endif

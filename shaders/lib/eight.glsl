// Eight f32 of a row on their way to shared memory as f16.
#ifndef VITRINE_EIGHT_GLSL
#define VITRINE_EIGHT_GLSL

// Eight values of a row, as they are fetched.
struct Eight {
  vec4 low, high;
};
uvec2 round_four(vec4 four) {
  const f16vec4 halves = f16vec4(four);
  return uvec2(packFloat2x16(halves.xy), packFloat2x16(halves.zw));
}
uvec4 packed(Eight eight) { return uvec4(round_four(eight.low), round_four(eight.high)); }
uvec4 packed(Eight eight, float factor) { return packed(Eight(eight.low * factor, eight.high * factor)); }

#endif

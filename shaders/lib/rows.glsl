// Rows of f32 of which all lanes want the same elements, for kernels on CPU-type devices. Where they are read at
// the same address by all lanes, with a constant offset from a row's beginning, such a load costs nothing there.
//
// With GATHERS, for devices of which Capabilities::loops_gather holds: there it costs as many loads as there are
// lanes. So each lane loads other elements, two at a time where `wide` says that rows start at whole 64-bit
// words, and each is handed to all lanes when its turn comes. A workgroup is one subgroup then.
#ifndef VITRINE_ROWS_GLSL
#define VITRINE_ROWS_GLSL

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Rows { float v[]; };

Rows offset_by(Rows base, uint elements) { return Rows(uint64_t(base) + 4ul * elements); }

// Some elements that follow each other in a row: `span` of them, behind the row's end whatever is there.
#ifdef GATHERS
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Words { uint64_t v[]; };

#define Span vec2
const uint span = (wide ? 2 : 1) * gl_WorkGroupSize.x;

vec2 load_span(Rows row, uint d) {
  if (wide) return uintBitsToFloat(unpack32(Words(offset_by(row, d)).v[gl_SubgroupInvocationID]));
  return vec2(offset_by(row, d).v[gl_SubgroupInvocationID], 0.0);
}

// Element i, which is a constant.
float of_span(vec2 own, const uint i) {
  return wide ? subgroupBroadcast(i % 2 == 0 ? own.x : own.y, i / 2) : subgroupBroadcast(own.x, i);
}

// Element d of a row; row.v[d] is a load of each lane's own.
float load_one(Rows row, uint d) { return row.v[d]; }
#else
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Fours { vec4 v; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Ones { float v; };

#define Span vec4
const uint span = 4;

vec4 load_span(Rows row, uint d) { return Fours(offset_by(row, d)).v; }
#define of_span(four, i) four[i]
float load_one(Rows row, uint d) { return Ones(offset_by(row, d)).v; }
#endif

#endif

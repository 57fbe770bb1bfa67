// Rows of f32 that all lanes read at the same address, for kernels on CPU-type devices: with a constant offset
// from a row's beginning such a load costs nothing there.
#ifndef VITRINE_ROWS_GLSL
#define VITRINE_ROWS_GLSL

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Fours { vec4 v; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Ones { float v; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Rows { float v[]; };

Rows offset_by(Rows base, uint elements) { return Rows(uint64_t(base) + 4ul * elements); }

// Element d of a row; row.v[d] is a load of each lane's own.
float load_one(Rows row, uint d) { return Ones(offset_by(row, d)).v; }

// Elements d to d + 3 of a row; behind the row's end, whatever is there.
vec4 load_four(Rows row, uint d) { return Fours(offset_by(row, d)).v; }

#endif

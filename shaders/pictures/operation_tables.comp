//! variant u32
// The tables of operations that make another byte of a byte: a workgroup takes a picture, counts its bytes where
// the operation goes by them, and writes what each byte becomes, the three channels' one a byte of a word. All
// sums are of whole numbers, so their order is nobody's business.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "lib/soft_double.glsl"
#include "picture_operation.h"
#include "lib/picture_operation.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 256;
layout(constant_id = 1) const uint picture_pixels = 224 * 224;

layout(push_constant) uniform Push { PictureOperationParams p; };
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) readonly buffer Operations { uint operations[]; };
layout(set = 0, binding = 2) writeonly buffer Y { uint y[]; };

// How often each byte is there, channel by channel; of equalize, then, how often it and half a step before it.
shared uint counts[3 * 256];
shared uint grey_sum;
shared uint first[3], last[3], steps[3];

// Pillow's int(byte * scale + offset), in doubles.
int stretched(int byte, uint lowest, uint highest) {
  const uvec2 scale = double_quotient(double_from_int(255), highest - lowest);
  const uvec2 offset = double_minus(double_product(double_from_int(int(lowest)), scale));
  return clamp(double_floor(double_sum(double_product(double_from_int(byte), scale), offset)), 0, 255);
}

void main() {
  const uint picture = linear_group(), lane = gl_LocalInvocationID.x;
  if (picture >= p.pictures) return;
  const uint at = (picture * p.operations + p.operation) * VITRINE_OPERATION_WORDS;
  const uint kind = operations[at + VITRINE_OPERATION_KIND];
  const uint argument = operations[at + VITRINE_OPERATION_ARGUMENT];
  // Of other operations nobody reads a table.
  if (kind == VITRINE_OPERATION_NONE || kind > VITRINE_OPERATION_LAST_TABLE) return;
  const bool by_counts = kind == VITRINE_OPERATION_AUTOCONTRAST || kind == VITRINE_OPERATION_EQUALIZE;

  if (by_counts || kind == VITRINE_OPERATION_CONTRAST) {
    for (uint i = lane; i < 3 * 256; i += local_size) counts[i] = 0;
    if (lane == 0) grey_sum = 0;
    barrier();
    uint own_sum = 0;
    for (uint i = lane; i < picture_pixels; i += local_size) {
      const ivec3 pixel = unpack_pixel(x[picture * picture_pixels + i]);
      if (by_counts) {
        atomicAdd(counts[pixel.r], 1u);
        atomicAdd(counts[256 + pixel.g], 1u);
        atomicAdd(counts[512 + pixel.b], 1u);
      } else {
        own_sum += uint(grey_of(pixel));
      }
    }
    if (!by_counts) atomicAdd(grey_sum, own_sum);
    barrier();
  }
  if (by_counts) {
    if (lane < 3) {
      uint low = 256, high = 0, different = 0;
      for (uint i = 0; i < 256; ++i) {
        if (counts[lane * 256 + i] == 0) continue;
        low = min(low, i);
        high = i;
        ++different;
      }
      first[lane] = low;
      last[lane] = high;
      const uint step = different <= 1 ? 0u : (picture_pixels - counts[lane * 256 + high]) / 255;
      steps[lane] = step;
      if (kind == VITRINE_OPERATION_EQUALIZE) {
        uint sum = step / 2;
        for (uint i = 0; i < 256; ++i) {
          const uint count = counts[lane * 256 + i];
          counts[lane * 256 + i] = sum;
          sum += count;
        }
      }
    }
    barrier();
  }

  // As Pillow rounds it.
  const int mean = int(grey_sum / picture_pixels + (2 * (grey_sum % picture_pixels) >= picture_pixels ? 1 : 0));
  const float factor = uintBitsToFloat(argument);
  for (uint i = lane; i < 256; i += local_size) {
    const int byte = int(i);
    ivec3 to = ivec3(byte);
    if (kind == VITRINE_OPERATION_BRIGHTNESS) {
      to = ivec3(blended(0, byte, factor));
    } else if (kind == VITRINE_OPERATION_CONTRAST) {
      to = ivec3(blended(mean, byte, factor));
    } else if (kind == VITRINE_OPERATION_POSTERIZE) {
      to = ivec3(byte & int(argument));
    } else if (kind == VITRINE_OPERATION_SOLARIZE) {
      to = ivec3(i < argument ? byte : 255 - byte);
    } else if (kind == VITRINE_OPERATION_SOLARIZE_ADD) {
      to = ivec3(i < 128 ? min(byte + int(argument), 255) : byte);
    } else if (kind == VITRINE_OPERATION_INVERT) {
      to = ivec3(255 - byte);
    } else {
      for (uint c = 0; c < 3; ++c) {
        if (kind == VITRINE_OPERATION_AUTOCONTRAST) {
          if (last[c] > first[c]) to[c] = stretched(byte, first[c], last[c]);
        } else if (steps[c] != 0) {
          to[c] = int(min(counts[c * 256 + i] / steps[c], 255u));
        }
      }
    }
    y[picture * 256 + i] = pack_pixel(to);
  }
}

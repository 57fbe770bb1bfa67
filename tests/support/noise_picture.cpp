#include "tests/support/noise_picture.h"

#include <cstdio>

namespace vitrine::test {

std::vector<uint32_t> noise_picture(uint64_t seed, uint32_t width, uint32_t height) {
  std::vector<uint32_t> pixels(uint64_t{width} * height);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + (uint64_t{width} << 32) + height;
  for (uint64_t i = 0; i < pixels.size(); ++i) {
    // splitmix64
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    // Noise, flat black and flat white in turn: overshoot only shows at edges.
    const uint64_t patch = (i % width / 7 + i / width / 5) % 4;
    const auto noise = static_cast<uint32_t>(z & 0xffffff);
    pixels[i] = 0xff000000u | (patch == 0 ? 0u : patch == 1 ? 0xffffffu : noise);
  }
  return pixels;
}

std::string fnv(std::span<const std::byte> bytes) {
  uint64_t value = 0xcbf29ce484222325u;
  for (const std::byte byte : bytes) value = (value ^ static_cast<uint64_t>(byte)) * 0x100000001b3u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::vector<uint8_t> rgb_of(std::span<const uint32_t> pixels) {
  std::vector<uint8_t> out;
  for (const uint32_t pixel : pixels) {
    for (uint32_t shift = 0; shift < 24; shift += 8) out.push_back(static_cast<uint8_t>(pixel >> shift));
  }
  return out;
}

}  // namespace vitrine::test

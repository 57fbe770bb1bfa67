// Safetensors files made by hand, so that they can break the rules.
#pragma once

#include <cstdint>
#include <string>

namespace vitrine::test {

// N, the header, the data; N is the header's length unless one is given.
inline std::string safetensors_bytes(const std::string& header, const std::string& data,
                                     uint64_t announced = UINT64_MAX) {
  const uint64_t length = announced == UINT64_MAX ? header.size() : announced;
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(length >> (8 * i) & 255);
  return file + header + data;
}

}  // namespace vitrine::test

// The inputs of a recorded step, as numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/graph/executable.h"

namespace vitrine {

template <typename T>
std::span<T> input_as(Executable& executable, std::string_view name, uint32_t set) {
  const std::span<std::byte> bytes = executable.input(executable.input_index(name), set);
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace vitrine

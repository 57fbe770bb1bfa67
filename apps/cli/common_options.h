// Options that every command takes.
#pragma once

#include <cstdint>
#include <string>

namespace vitrine::cli {

struct CommonOptions {
  std::string device;          // index or part of a name; empty: VITRINE_DEVICE, else the best one
  std::string dtype = "auto";  // "f32", "f16" or "auto"
  uint64_t seed = 0;
};

}  // namespace vitrine::cli

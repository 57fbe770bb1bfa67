// The main loop of a SPIR-V compute module, and the same module with that loop walked a number of times that
// compilers know and unroll. What one pass costs is then a difference of two compilations, whatever a
// compiler assumes of loops, and whoever wrote the shader. A pure reader and writer: it needs no device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace vitrine::capture {

struct MainLoop {
  uint32_t header = 0;  // id of its first block
  uint32_t selections =
      0;  // branches around it and returns before it, which make it less likely for compilers
  uint32_t inner_loops = 0;  // inside, of those that the shader doesn't ask to unroll
  bool has_barrier = false;  // of the workgroup
};

// The largest loop that lies in no other and isn't to be unrolled; one with a barrier of the workgroup before
// any without. Nothing for a module without loops. Throws Error(failed) for what is no well-formed module.
std::optional<MainLoop> main_loop_of(std::span<const uint32_t> words);

// The module with members of the push constants, by their number, replaced by what they are: words of 32 bits
// that are loaded by themselves. Throws as above.
std::vector<uint32_t> with_push_constants(std::span<const uint32_t> words,
                                          const std::map<uint32_t, uint32_t>& members);

// The module with exactly so many passes. Throws Error(failed) where the loop has no branch out of it, and
// for none where that stands at its end.
std::vector<uint32_t> with_passes(std::span<const uint32_t> words, const MainLoop& loop, uint32_t passes);

}  // namespace vitrine::capture

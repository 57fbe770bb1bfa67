#include "runtime/vk/facts/compiler_figures.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace vitrine {
namespace {

// Where a driver's word goes. Drivers are told apart by their words: none uses one in two senses.
struct Word {
  std::string_view name;
  std::optional<double> CompilerFigures::* figure;
};

constexpr std::array<Word, 31> words{{
    // Mesa's RADV (AMD). Spilled SGPRs go to lanes of VGPRs, not to memory.
    {"VGPRs", &CompilerFigures::registers},
    {"Spilled VGPRs", &CompilerFigures::spills},
    {"Scratch size", &CompilerFigures::scratch_bytes},
    {"Subgroups per SIMD", &CompilerFigures::occupancy},
    {"Latency", &CompilerFigures::cycles},
    {"Instructions", &CompilerFigures::instructions},  // Honeykrisp's and ANV's too
    {"Code size", &CompilerFigures::code_bytes},       // everybody's
    // Mesa's NVK (NVIDIA). "Spills to reg" stay in registers.
    {"Number of GPRs", &CompilerFigures::registers},
    {"Spills to memory", &CompilerFigures::spills},
    {"Fills from memory", &CompilerFigures::spills},
    {"SLM size", &CompilerFigures::scratch_bytes},
    {"Max warps/SM", &CompilerFigures::occupancy},
    {"Static cycle count", &CompilerFigures::cycles},
    {"Instruction count", &CompilerFigures::instructions},
    // Mesa's Turnip (Qualcomm). STP and LDP store to and load from private memory.
    {"Registers used", &CompilerFigures::registers},
    {"STP Count", &CompilerFigures::spills},
    {"LDP Count", &CompilerFigures::spills},
    {"Max Waves Per Core", &CompilerFigures::occupancy},
    {"Estimated cycles stalled on SY", &CompilerFigures::cycles},
    {"Instruction Count", &CompilerFigures::instructions},  // ANV's too, until 25
    // Mesa's Honeykrisp (Apple).
    {"GPRs", &CompilerFigures::registers},
    {"Spills", &CompilerFigures::spills},  // ANV's too
    {"Fills", &CompilerFigures::spills},
    {"Scratch", &CompilerFigures::scratch_bytes},
    {"Threads", &CompilerFigures::occupancy},
    // Mesa's ANV (Intel); Cycles and what stands above are its words since 26. Registers are a thread's, of
    // 32 bytes.
    {"Spill Count", &CompilerFigures::spills},
    {"Fill Count", &CompilerFigures::spills},
    {"Scratch Memory Size", &CompilerFigures::scratch_bytes},
    {"Cycle Count", &CompilerFigures::cycles},
    {"Cycles", &CompilerFigures::cycles},
    {"Max live registers", &CompilerFigures::registers},
}};

}  // namespace

CompilerFigures figures_of(std::span<const ExecutableStatistics> executables) {
  CompilerFigures out;
  for (const ExecutableStatistics& executable : executables) {
    for (const auto& [name, value] : executable.values) {
      const auto word = std::ranges::find(words, name, &Word::name);
      if (word == words.end()) continue;
      std::optional<double>& figure = out.*(word->figure);
      // More is worse, except for occupancy.
      if (!figure || (word->figure == &CompilerFigures::occupancy ? value < *figure : value > *figure)) {
        figure = value;
      }
    }
  }
  return out;
}

}  // namespace vitrine

#include "runtime/vk/facts/compiler_figures.h"

#include <catch2/catch_test_macros.hpp>

namespace vitrine {

TEST_CASE("AMD's figures are understood, and scalar spills stay in registers") {
  const ExecutableStatistics radv{"compute",
                                  64,
                                  {{"SGPRs", 108},
                                   {"VGPRs", 72},
                                   {"Spilled SGPRs", 9},
                                   {"Spilled VGPRs", 0},
                                   {"Scratch size", 0},
                                   {"Subgroups per SIMD", 12},
                                   {"Latency", 2992},
                                   {"Instructions", 18},
                                   {"Code size", 96}}};
  CompilerFigures figures = figures_of(std::span(&radv, 1));
  CHECK(figures.registers == 72);
  CHECK(figures.occupancy == 12);
  CHECK(figures.cycles == 2992);
  CHECK(figures.code_bytes == 96);
  CHECK_FALSE(figures.spills_to_memory());
}

TEST_CASE("Intel's figures are understood in the words of both of its drivers") {
  const ExecutableStatistics older{
      "compute",
      8,
      {{"Instruction Count", 9}, {"Cycle Count", 70}, {"Spill Count", 2}, {"Max live registers", 90}}};
  const ExecutableStatistics newer{
      "compute", 8, {{"Instructions", 9}, {"Cycles", 70}, {"Spills", 2}, {"Max live registers", 90}}};
  for (const ExecutableStatistics& anv : {older, newer}) {
    const CompilerFigures figures = figures_of(std::span(&anv, 1));
    CHECK(figures.registers == 90);
    CHECK(figures.instructions == 9);
    CHECK(figures.cycles == 70);
    CHECK(figures.spills == 2);
  }
}

TEST_CASE("spills to memory are found in every driver's words") {
  const std::vector<std::vector<std::pair<std::string, double>>> spilling = {{{"Spilled VGPRs", 3}},
                                                                             {{"Scratch size", 1024}},
                                                                             {{"Spills to memory", 1}},
                                                                             {{"Fills from memory", 1}},
                                                                             {{"SLM size", 16}},
                                                                             {{"STP Count", 2}},
                                                                             {{"LDP Count", 2}},
                                                                             {{"Spills", 4}, {"Fills", 0}},
                                                                             {{"Scratch", 64}},
                                                                             {{"Spill Count", 1}},
                                                                             {{"Scratch Memory Size", 512}}};
  for (const auto& values : spilling) {
    const ExecutableStatistics executable{"compute", 32, values};
    CAPTURE(values.front().first);
    CHECK(figures_of(std::span(&executable, 1)).spills_to_memory());
  }
  const ExecutableStatistics clean{"compute",
                                   32,
                                   {{"Spilled SGPRs", 7},
                                    {"Spills to reg", 5},
                                    {"Spills to memory", 0},
                                    {"STP Count", 0},
                                    {"Unknown to us", 9}}};
  CHECK_FALSE(figures_of(std::span(&clean, 1)).spills_to_memory());
  CHECK_FALSE(figures_of({}).spills_to_memory());
  CHECK_FALSE(figures_of({}).registers);
}

TEST_CASE("of several executables the worse figure counts") {
  const std::vector<ExecutableStatistics> two = {{"a", 32, {{"GPRs", 10}, {"Threads", 1024}, {"Spills", 1}}},
                                                 {"b", 32, {{"GPRs", 90}, {"Threads", 384}, {"Spills", 0}}}};
  const CompilerFigures figures = figures_of(two);
  CHECK(figures.registers == 90);
  CHECK(figures.occupancy == 384);
  CHECK(figures.spills == 1);
}

}  // namespace vitrine

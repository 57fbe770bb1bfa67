// Devices that don't exist, for tests of what is decided from capabilities alone.
#pragma once

#include <vector>

#include "runtime/vk/capabilities.h"

namespace vitrine::test {

// A plausible discrete GPU that has everything which Vitrine asks for and no optional feature.
Capabilities plain_gpu();
// The same with every optional feature, subgroups of 32 to 64 and 16x16x16 cooperative matrices.
Capabilities rich_gpu();
// Intel's Arc A770 as Mesa's driver describes it: subgroups of 8 to 32, whose lanes share 128 registers, and
// 8x8x16 matrices.
Capabilities arc_gpu();
// The same of Xe2: at least 16 lanes, registers twice as wide, 8x16x16 matrices.
Capabilities xe2_gpu();
// Mesa's software driver as it describes itself.
Capabilities software_driver();

// One of each kind that kernels and tiles are chosen by, each with a name.
std::vector<Capabilities> devices_of_all_kinds();

}  // namespace vitrine::test

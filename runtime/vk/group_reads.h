// What a compute shader does with the numbers of workgroups, and so along which axes its dispatches may be
// cut into several (vkCmdDispatchBase): there gl_WorkGroupID counts on, and gl_NumWorkGroups is the part's.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace vitrine {

enum class GroupReads : uint8_t {
  none,   // it doesn't look at the number
  rows,   // only as the length of a row of workgroups, times gl_WorkGroupID.y (shaders/lib/index.glsl)
  other,  // in a way that a part would get wrong
};

// Of each axis. A pure reader; a module that it doesn't understand reads everything.
std::array<GroupReads, 3> group_reads_of(std::span<const uint32_t> words);

// Along which axes a dispatch of so many workgroups may be cut.
std::array<bool, 3> cuttable_axes(std::span<const uint32_t> words, const std::array<uint32_t, 3>& groups);

}  // namespace vitrine

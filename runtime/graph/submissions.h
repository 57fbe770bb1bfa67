// Which steps of a plan are submitted together, and which dispatches in parts: desktop watchdogs end a
// submission that takes too long, and others on the same queue wait for it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace vitrine {

struct Plan;
struct Step;

// Some of a dispatch's workgroups.
struct GroupRange {
  std::array<uint32_t, 3> first{0, 0, 0}, groups{1, 1, 1};
  uint64_t count() const { return uint64_t{groups[0]} * groups[1] * groups[2]; }
  bool operator==(const GroupRange&) const = default;
};

// Cuts workgroups into ranges of at most `most` each, as even as whole groups allow, along the longest of the
// axes that may be cut and, where single groups of that are too many still, along the next. In order, and
// together each workgroup once.
std::vector<GroupRange> cut_groups(const std::array<uint32_t, 3>& groups, const std::array<bool, 3>& may_cut,
                                   uint64_t most);

// Groups steps into slices of at most `budget` seconds by their `seconds`; returns how many there are. A step
// that takes longer alone is cut into parts, each a slice, as far as its shader allows.
uint32_t assign_slices(std::vector<Step>& steps, double budget);

// The seconds of each slice.
std::vector<double> seconds_of_slices(const Plan& plan);

// The steps that take longer than a submission is meant to and can't be cut any further, a sentence each.
std::vector<std::string> overlong_steps(const Plan& plan);

}  // namespace vitrine

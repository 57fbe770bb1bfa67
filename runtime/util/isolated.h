// Work in a process of its own, so that a driver that crashes or hangs takes nothing else down.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace vitrine {

// Forks and calls `work` in the child, which reports by calling what it is given with lines of text; `take`
// gets each in this process. Nothing when the child came to its end, else what ended it: a signal, an exit
// status, or that it said nothing for `patience_seconds`. No Vulkan device may be open in this process.
using Report = std::function<void(const std::string& line)>;
std::optional<std::string> run_isolated(const std::function<void(const Report&)>& work, const Report& take,
                                        int patience_seconds);

}  // namespace vitrine

// This program once more, in a process of its own, so that a driver that crashes or hangs takes nothing else
// down.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace vitrine {

// Starts it with these arguments and gives `take` each line that it reports. Nothing when it ended with
// status 0, else what ended it: the driver, an exit status, or that it said nothing for `patience_seconds`.
// Where `take` throws it is ended first. Error(failed) where it can't be started.
std::optional<std::string> run_isolated(const std::vector<std::string>& arguments,
                                        const std::function<void(const std::string& line)>& take,
                                        int patience_seconds);

// In such a process: a line for the one that started it. Ends the process where nobody reads it any more.
void report(const std::string& line);

}  // namespace vitrine

// vitrine doctor: which kernels compute right on this device.
#pragma once

#include <cstddef>
#include <string>

#include "apps/cli/common_options.h"

namespace vitrine::cli {

// Tests every kernel (`only`: an operator's, or OPERATOR=KERNEL) in processes of their own, prints the
// verdicts and keeps them for planning. Throws Error(failed) when one is wrong.
void run_self_tests(const CommonOptions& common, const std::string& only, bool json);

// In such a process: those behind the first so many, each reported before it runs, as JSON lines.
// Ends behind the first one that fails, since nothing that a device does after that proves much.
void run_self_tests_behind(size_t first, const CommonOptions& common, const std::string& only);

}  // namespace vitrine::cli

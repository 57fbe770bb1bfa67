// vitrine doctor: which kernels compute right on this device.
#pragma once

#include <string>

#include "apps/cli/common_options.h"

namespace vitrine::cli {

// Tests every kernel (`only`: an operator's, or OPERATOR=KERNEL) in processes of their own, prints the
// verdicts and keeps them for planning. Throws Error(failed) when one is wrong.
void run_self_tests(const CommonOptions& common, const std::string& only, bool json);

}  // namespace vitrine::cli

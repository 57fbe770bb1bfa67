// vitrine bench --startup: what the way to the first result costs, by part.
#pragma once

#include <cstdint>

#include "apps/cli/common_options.h"
#include "apps/cli/model_options.h"

namespace vitrine::cli {

// Goes the way of every command from nothing to one batch's result, once, and prints what each part of it
// took. What comes before (the operating system starting the process) is bench/startup.py's to measure, and
// so is what a start is like with empty caches and with full ones. `each_kernel`: the first run by pipeline,
// too.
void bench_startup(const ModelFlags& flags, uint64_t batch, bool each_kernel, bool json,
                   const CommonOptions& common);

}  // namespace vitrine::cli

// vitrine bench --train --data: how fast a training's pictures can be read, decoded and changed.
#pragma once

#include <filesystem>
#include <string>

#include "apps/cli/common_options.h"

namespace vitrine::cli {

// One epoch of the configuration's data, with nothing done to it on the device: what a device that is fast
// enough would be given.
void bench_input(const std::string& config_file, const std::filesystem::path& data, bool json,
                 const CommonOptions& common);

}  // namespace vitrine::cli

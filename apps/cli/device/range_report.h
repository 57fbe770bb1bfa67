// vitrine doctor --model: how large a model's numbers are, layer by layer, beside what f16 can hold.
#pragma once

#include <string>

#include "apps/cli/common_options.h"
#include "apps/cli/model_options.h"

namespace vitrine::cli {

// Runs the model with magnitudes, on the images of an .npy file or (with an empty name) on eight of random
// pixels, and prints a row a layer, or as JSON a line a layer.
void report_ranges(const ModelFlags& flags, const std::string& input, const CommonOptions& common, bool json);

// One sentence for stderr: the largest magnitude that the guard has seen, and where.
std::string range_sentence(RangeGuard& guard);

}  // namespace vitrine::cli

// What is known of a device on disk: which kernels measured fastest, and which passed their self-test. One
// file for each device and driver version, beside the pipeline cache.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "runtime/graph/kernel_choice.h"
#include "runtime/graph/plan.h"
#include "runtime/vk/pipeline_cache.h"

namespace vitrine {

// The file's name for a device, unique to the device and its driver's version.
std::string kernel_choices_name(const Capabilities& device);

std::string kernel_choices_to_json(const Capabilities& device, const KernelChoices& choices);

// What `folder` holds for the device; nothing where it holds nothing. A file that can't be used is ignored,
// and `warn` told so in one sentence.
KernelChoices load_kernel_choices(const Capabilities& device,
                                  const std::function<void(const std::string&)>& warn = {},
                                  const std::optional<std::filesystem::path>& folder = cache_folder());
// Adds to what the folder holds, newer knowledge over older, and gives the file's path. Throws Error(failed)
// where there is no folder or it can't be written to.
std::filesystem::path add_kernel_choices(const Capabilities& device, const KernelChoices& choices,
                                         const std::optional<std::filesystem::path>& folder = cache_folder());

// The options with `warn`, and with what is stored of the device, unless they hold choices already. What is
// only faster is left out with PlanOptions::untuned; what failed its self-test never is.
PlanOptions with_stored_choices(PlanOptions options, const Capabilities& device,
                                const std::function<void(const std::string&)>& warn = {});

}  // namespace vitrine

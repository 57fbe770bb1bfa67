// What vendors publish of their GPUs, kernels are chosen by, and Vulkan doesn't tell.
#pragma once

#include "runtime/vk/capabilities.h"

namespace vitrine {

// Fills in the registers and the matrix units' lanes of the vendors that it knows.
void add_hardware_facts(Capabilities& device);

}  // namespace vitrine

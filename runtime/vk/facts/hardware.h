// What vendors publish of their GPUs, kernels are chosen by, and Vulkan doesn't tell.
#pragma once

#include "runtime/vk/capabilities.h"

namespace vitrine {

// Fills in the registers, the matrix units' lanes and a compute unit's rates of the vendors that it knows, as
// far as what Vulkan tells tells generations apart. Clocks and memory's speed are a card's own: none here.
void add_hardware_facts(Capabilities& device);

}  // namespace vitrine

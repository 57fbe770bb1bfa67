// What a profile hides of the driver: features by the names that Vitrine has for them, and extensions.
#pragma once

#include <vulkan/vulkan_core.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::pretend {

bool can_be_hidden(std::string_view name);

// No switch but a bit of what subgroups can do; hidden, the basic operations are left, which all devices
// have.
constexpr std::string_view hidden_subgroup_arithmetic = "subgroup_arithmetic";

// Calls `visit` with each switch of the chain that belongs to what is hidden.
void visit_hidden_features(VkBaseOutStructure* chain, std::span<const std::string> hidden,
                           const std::function<void(VkBool32&)>& visit);

// Only extensions that the layer knows are listed: what it has never heard of could go round it (another way
// of mapping memory, say).
bool is_listed(std::string_view extension, std::span<const std::string> hidden);

}  // namespace vitrine::pretend

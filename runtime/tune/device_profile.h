// A device's capabilities as a file: what `vitrine devices --profile` writes on one machine, plans and
// estimates are made from on another (`vitrine inspect --device-profile`), and the cards of devices/
// are written in. Its keys are the members of Capabilities.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/vk/capabilities.h"

namespace vitrine {

// As a person reads it: a line a member, and one a matrix, a heap and a type of memory. UUIDs are left out:
// they name a machine, and no plan looks at them.
std::string device_profile_to_json(const Capabilities& device);

// What the text or the file says. Limits, subgroups and who it is have to be there; what else is left out is
// taken as not there or not known. Error(bad_file) names the file and the member for everything else, for
// unknown members too, and for numbers that no Vulkan 1.3 device has.
Capabilities parse_device_profile(std::string_view text, const std::string& name);
Capabilities read_device_profile(const std::filesystem::path& file);

}  // namespace vitrine

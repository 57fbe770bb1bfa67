// vitrine devices: every Vulkan device, what it supports, which one would be used and why.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/open_device.h"
#include "runtime/tune/device_profile.h"
#include "runtime/util/error.h"
#include "runtime/vk/device_facts.h"

namespace vitrine::cli {
namespace {

// The names in Capabilities::has, as a list.
std::vector<std::string> names_of(Need needs) {
  std::vector<std::string> names;
  for (uint32_t bit = 1; bit != 0; bit <<= 1) {
    if (contains(needs, static_cast<Need>(bit))) names.push_back(to_string(static_cast<Need>(bit)));
  }
  return names;
}

void print_json(const DeviceList& list) {
  for (size_t i = 0; i < list.devices.size(); ++i) {
    const Capabilities& device = list.devices[i].capabilities;
    nlohmann::ordered_json line;
    line["index"] = i;
    line["name"] = device.name;
    line["kind"] = name_of(device.type);
    line["driver"] = device.driver_name;
    line["driver_info"] = device.driver_info;
    line["vulkan"] = version_text(device.api_version);
    line["supports"] = names_of(device.has);
    line["subgroup_size"] = device.subgroup_size;
    line["min_subgroup_size"] = device.min_subgroup_size;
    line["max_subgroup_size"] = device.max_subgroup_size;
    line["max_workgroup_invocations"] = device.max_workgroup_invocations;
    line["shared_bytes"] = device.max_shared_bytes;
    line["device_memory_bytes"] = device_local_bytes(device);
    line["unified_memory"] = device.unified_memory();
    line["max_storage_range_bytes"] = device.max_storage_range;
    line["timestamps"] = device.timestamp_valid_bits != 0;
    line["cooperative_matrices"] = nlohmann::ordered_json::array();
    for (const CooperativeShape& shape : device.cooperative_shapes) {
      line["cooperative_matrices"].push_back(shape_text(shape));
    }
    line["flexible_matrices"] = nlohmann::ordered_json::array();
    for (const FlexibleShape& shape : device.flexible_shapes) {
      line["flexible_matrices"].push_back(shape_text(shape));
    }
    line["flexible_reserved_shared_bytes"] = device.flexible_reserved_shared;
    line["multiprocessors"] = device.multiprocessors;
    line["quirks"] = device.quirks;
    line["advice"] = device.advice;
    line["chosen"] = list.choice.chosen == i;
    line["reason"] = list.choice.reasons[i];
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }
}

void print_text(const DeviceList& list) {
  for (size_t i = 0; i < list.devices.size(); ++i) {
    const Capabilities& device = list.devices[i].capabilities;
    std::printf("%s %zu  %s\n", list.choice.chosen == i ? "*" : " ", i, device.name.c_str());
    for (const DeviceFact& fact : device_facts(device))
      std::printf("     %-10s %s\n", fact.name.c_str(), fact.value.c_str());
    std::printf("     %s\n", list.choice.reasons[i].c_str());
  }
}

}  // namespace

void add_devices(CLI::App& app, const CommonOptions& common) {
  CLI::App* command =
      app.add_subcommand("devices", "List the Vulkan devices and say which one would be used");
  auto json = std::make_shared<bool>(false);
  auto profile = std::make_shared<bool>(false);
  CLI::Option* json_flag = command->add_flag("--json", *json, "One JSON object a line, one line a device");
  command
      ->add_flag("--profile", *profile,
                 "The capabilities of the one that would be used, as a file that `vitrine inspect "
                 "--device-profile` reads")
      ->excludes(json_flag);
  command->callback([&common, json, profile] {
    const DeviceList list = list_devices(common);
    if (*profile) {
      std::fputs(device_profile_to_json(list.devices[list.choice.index()].capabilities).c_str(), stdout);
    } else if (*json) {
      print_json(list);
    } else {
      print_text(list);
    }
    list.choice.index();  // throws when none can be used: the list above says why
  });
}

}  // namespace vitrine::cli

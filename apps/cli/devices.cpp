// vitrine devices: every Vulkan device, what it supports, which one would be used and why.
#include <vulkan/vulkan_core.h>

#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/open_device.h"
#include "runtime/util/error.h"

namespace vitrine::cli {
namespace {

std::string version_text(uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." + std::to_string(VK_API_VERSION_MINOR(version)) +
         "." + std::to_string(VK_API_VERSION_PATCH(version));
}

std::string shape_text(const CooperativeShape& shape) {
  return std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k) + " " +
         shape.a + "*" + shape.b + "+" + shape.c;
}

// The smallest of which the others are multiples.
std::string shape_text(const FlexibleShape& shape) {
  const std::string scope =
      shape.workgroup == 0 ? "subgroup" : "workgroup of " + std::to_string(shape.workgroup);
  return shape_text(CooperativeShape{shape.m, shape.n, shape.k, shape.a, shape.b, shape.c, shape.result}) +
         " in a " + scope;
}

uint64_t device_local_bytes(const Capabilities& device) {
  uint64_t bytes = 0;
  for (const MemoryHeap& heap : device.heaps) bytes += heap.device_local ? heap.bytes : 0;
  return bytes;
}

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
    line["chosen"] = list.choice.chosen == i;
    line["reason"] = list.choice.reasons[i];
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }
}

void print_text(const DeviceList& list) {
  for (size_t i = 0; i < list.devices.size(); ++i) {
    const Capabilities& device = list.devices[i].capabilities;
    std::printf("%s %zu  %s\n", list.choice.chosen == i ? "*" : " ", i, device.name.c_str());
    std::printf("     kind       %s\n", std::string(name_of(device.type)).c_str());
    std::printf("     driver     %s, %s, Vulkan %s\n", device.driver_name.c_str(), device.driver_info.c_str(),
                version_text(device.api_version).c_str());
    std::printf("     supports   %s\n", to_string(device.has).c_str());
    std::printf("     subgroups  %" PRIu32, device.subgroup_size);
    if (device.min_subgroup_size != device.max_subgroup_size) {
      std::printf(" (%" PRIu32 " to %" PRIu32 ")", device.min_subgroup_size, device.max_subgroup_size);
    }
    std::printf(", workgroups up to %" PRIu32 ", shared memory %" PRIu32 " KiB\n",
                device.max_workgroup_invocations, device.max_shared_bytes / 1024);
    std::printf("     memory     %.1f GiB, %s\n",
                static_cast<double>(device_local_bytes(device)) / (1u << 30),
                device.unified_memory() ? "written by the host directly" : "written through staging buffers");
    for (const CooperativeShape& shape : device.cooperative_shapes) {
      std::printf("     matrices   %s\n", shape_text(shape).c_str());
    }
    for (const FlexibleShape& shape : device.flexible_shapes) {
      std::printf("     flexible   multiples of %s\n", shape_text(shape).c_str());
    }
    for (const std::string& quirk : device.quirks) std::printf("     quirk      %s\n", quirk.c_str());
    std::printf("     %s\n", list.choice.reasons[i].c_str());
  }
}

}  // namespace

void add_devices(CLI::App& app, const CommonOptions& common) {
  CLI::App* command =
      app.add_subcommand("devices", "List the Vulkan devices and say which one would be used");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "One JSON object a line, one line a device");
  command->callback([&common, json] {
    const DeviceList list = list_devices(common);
    if (*json) {
      print_json(list);
    } else {
      print_text(list);
    }
    list.choice.index();  // throws when none can be used: the list above says why
  });
}

}  // namespace vitrine::cli

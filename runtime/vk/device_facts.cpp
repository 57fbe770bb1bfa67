#include "runtime/vk/device_facts.h"

#include <vulkan/vulkan_core.h>

#include <cstdio>

namespace vitrine {

std::string version_text(uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." + std::to_string(VK_API_VERSION_MINOR(version)) +
         "." + std::to_string(VK_API_VERSION_PATCH(version));
}

std::string shape_text(const CooperativeShape& shape) {
  return std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k) + " " +
         shape.a + "*" + shape.b + "+" + shape.c;
}

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

std::string driver_text(const Capabilities& device) {
  return device.driver_name + (device.driver_info.empty() ? "" : " " + device.driver_info);
}

std::string device_and_driver(const Capabilities& device) {
  const bool named = device.type == DeviceType::cpu && device.name.starts_with(device.driver_name);
  return device.name + ", " + (named ? device.driver_info : driver_text(device));
}

std::string device_heading(const Capabilities& device) {
  std::string text = device_and_driver(device) + "\n";
  for (const std::string& advice : device.advice) text += advice + "\n";
  return text;
}

std::vector<DeviceFact> device_facts(const Capabilities& device) {
  std::vector<DeviceFact> facts;
  facts.push_back({"kind", std::string(name_of(device.type))});
  facts.push_back({"driver", device.driver_name +
                                 (device.driver_info.empty() ? "" : ", " + device.driver_info) + ", Vulkan " +
                                 version_text(device.api_version)});
  facts.push_back({"supports", to_string(device.has)});
  std::string subgroups = std::to_string(device.subgroup_size);
  if (device.min_subgroup_size != device.max_subgroup_size) {
    subgroups += " (" + std::to_string(device.min_subgroup_size) + " to " +
                 std::to_string(device.max_subgroup_size) + ")";
  }
  facts.push_back({"subgroups", subgroups + ", workgroups up to " +
                                    std::to_string(device.max_workgroup_invocations) + ", shared memory " +
                                    std::to_string(device.max_shared_bytes / 1024) + " KiB"});
  char memory[48];
  std::snprintf(memory, sizeof memory, "%.1f GiB, ",
                static_cast<double>(device_local_bytes(device)) / (1u << 30));
  facts.push_back(
      {"memory", memory + std::string(device.unified_memory() ? "written by the host directly"
                                                              : "written through staging buffers")});
  for (const CooperativeShape& shape : device.cooperative_shapes)
    facts.push_back({"matrices", shape_text(shape)});
  for (const FlexibleShape& shape : device.flexible_shapes)
    facts.push_back({"flexible", "multiples of " + shape_text(shape)});
  for (const std::string& quirk : device.quirks) facts.push_back({"quirk", quirk});
  for (const std::string& advice : device.advice) facts.push_back({"advice", advice});
  return facts;
}

}  // namespace vitrine

#include "runtime/vk/instance_functions.h"

#include <type_traits>

namespace vitrine {

InstanceFunctions load_instance_functions(VkInstance instance, PFN_vkGetInstanceProcAddr get) {
  InstanceFunctions out;
  const auto load = [&](auto& pointer, const char* name) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(get(instance, name));
  };
  load(out.destroy_instance, "vkDestroyInstance");
  load(out.enumerate_physical_devices, "vkEnumeratePhysicalDevices");
  load(out.get_properties, "vkGetPhysicalDeviceProperties");
  load(out.get_properties2, "vkGetPhysicalDeviceProperties2");
  load(out.get_features, "vkGetPhysicalDeviceFeatures");
  load(out.get_features2, "vkGetPhysicalDeviceFeatures2");
  load(out.get_memory_properties, "vkGetPhysicalDeviceMemoryProperties");
  load(out.get_queue_family_properties, "vkGetPhysicalDeviceQueueFamilyProperties");
  load(out.enumerate_device_extensions, "vkEnumerateDeviceExtensionProperties");
  load(out.create_device, "vkCreateDevice");
  load(out.get_device_proc_addr, "vkGetDeviceProcAddr");
  load(out.create_messenger, "vkCreateDebugUtilsMessengerEXT");
  load(out.destroy_messenger, "vkDestroyDebugUtilsMessengerEXT");
  load(out.set_object_name, "vkSetDebugUtilsObjectNameEXT");
  load(out.begin_label, "vkCmdBeginDebugUtilsLabelEXT");
  load(out.end_label, "vkCmdEndDebugUtilsLabelEXT");
  load(out.get_cooperative_matrix_properties, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  load(out.get_flexible_matrix_properties,
       "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV");
  out.get_instance_proc_addr = get;
  return out;
}

}  // namespace vitrine

// Where the loader comes in: instances, devices, and which function of the layer stands for which of
// Vulkan's.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "runtime/util/error.h"
#include "tests/pretend/layer/features.h"
#include "tests/pretend/layer/state.h"

namespace vitrine::pretend {
namespace {

constexpr const char* profile_variable = "VITRINE_PRETEND";

// The loader's link to whoever lies below.
template <typename Info>
Info* find_link(const void* chain, VkStructureType type, VkLayerFunction function) {
  for (auto* at = static_cast<const VkBaseInStructure*>(chain); at != nullptr; at = at->pNext) {
    if (at->sType != type) continue;
    auto* info = reinterpret_cast<Info*>(const_cast<VkBaseInStructure*>(at));
    if (info->function == function) return info;
  }
  return nullptr;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info,
                                               const VkAllocationCallbacks* callbacks, VkInstance* handle) {
  auto* link = find_link<VkLayerInstanceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO, VK_LAYER_LINK_INFO);
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  auto made = std::make_unique<Instance>();
  try {
    const char* path = std::getenv(profile_variable);
    if (path == nullptr) throw Error(ErrorCode::usage, std::string(profile_variable) + " names no profile");
    made->profile = read_profile(path);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pretend: %s\n", error.what());
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  made->get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(made->get(VK_NULL_HANDLE, "vkCreateInstance"));
  const VkResult result = create(info, callbacks, handle);
  if (result != VK_SUCCESS) return result;
  made->handle = *handle;
#define PRETEND_LOAD(name) made->next.name = reinterpret_cast<PFN_##name>(made->get(*handle, #name));
  PRETEND_NEXT_OF_INSTANCE(PRETEND_LOAD)
#undef PRETEND_LOAD
  keep(std::move(made));
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance handle, const VkAllocationCallbacks* callbacks) {
  if (handle == VK_NULL_HANDLE) return;
  const std::unique_ptr<Instance> instance = release_instance(handle);
  instance->next.vkDestroyInstance(handle, callbacks);
}

VKAPI_ATTR VkResult VKAPI_CALL create_messenger(VkInstance handle,
                                                const VkDebugUtilsMessengerCreateInfoEXT* info,
                                                const VkAllocationCallbacks* callbacks,
                                                VkDebugUtilsMessengerEXT* messenger) {
  Instance& instance = instance_of(handle);
  const VkResult result = instance.next.vkCreateDebugUtilsMessengerEXT(handle, info, callbacks, messenger);
  if (result == VK_SUCCESS) instance.complaints.add(*messenger, *info);
  return result;
}

VKAPI_ATTR void VKAPI_CALL destroy_messenger(VkInstance handle, VkDebugUtilsMessengerEXT messenger,
                                             const VkAllocationCallbacks* callbacks) {
  Instance& instance = instance_of(handle);
  instance.complaints.remove(messenger);
  instance.next.vkDestroyDebugUtilsMessengerEXT(handle, messenger, callbacks);
}

// VK_SUCCESS, or what a driver answers to somebody who wants what it hasn't got.
VkResult check_wishes(const PhysicalDevice& device, const VkDeviceCreateInfo& info) {
  const Profile& profile = device.profile();
  for (uint32_t i = 0; i < info.enabledExtensionCount; ++i) {
    if (is_listed(info.ppEnabledExtensionNames[i], profile.hidden)) continue;
    device.instance->complaints.say(
        "pretend-device", std::string(info.ppEnabledExtensionNames[i]) + " is enabled, which isn't listed");
    return VK_ERROR_EXTENSION_NOT_PRESENT;
  }
  bool hidden_one = false;
  visit_hidden_features(static_cast<VkBaseOutStructure*>(const_cast<void*>(info.pNext)), profile.hidden,
                        [&](VkBool32& one) { hidden_one |= one != VK_FALSE; });
  if (hidden_one) {
    device.instance->complaints.say("pretend-device", "a feature is enabled which the device hasn't got");
    return VK_ERROR_FEATURE_NOT_PRESENT;
  }
  for (const VkDeviceQueueCreateInfo& queue : std::span(info.pQueueCreateInfos, info.queueCreateInfoCount)) {
    const bool known = queue.queueFamilyIndex < profile.queue_families.size();
    if (known && queue.queueCount <= profile.queue_families[queue.queueFamilyIndex].queues) continue;
    device.instance->complaints.say(
        "pretend-device", std::to_string(queue.queueCount) + " queues of family " +
                              std::to_string(queue.queueFamilyIndex) + " are wanted, which hasn't got them");
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* callbacks, VkDevice* handle) {
  PhysicalDevice& below = physical_of(physical);
  auto* link = find_link<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO,
                                                  VK_LAYER_LINK_INFO);
  auto* callback = find_link<VkLayerDeviceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO, VK_LOADER_DATA_CALLBACK);
  if (!link || !callback) return VK_ERROR_INITIALIZATION_FAILED;
  const VkResult allowed = check_wishes(below, *info);
  if (allowed != VK_SUCCESS) return allowed;

  // The budget is told by the layer, whether or not the driver could.
  std::vector<const char*> extensions(info->ppEnabledExtensionNames,
                                      info->ppEnabledExtensionNames + info->enabledExtensionCount);
  std::erase_if(extensions, [](const char* name) {
    return std::string_view(name) == VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
  });
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = below.real_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo real = *info;
  real.queueCreateInfoCount = 1;
  real.pQueueCreateInfos = &queue;
  real.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  real.ppEnabledExtensionNames = extensions.data();

  const PFN_vkGetInstanceProcAddr get_of_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create =
      reinterpret_cast<PFN_vkCreateDevice>(get_of_instance(below.instance->handle, "vkCreateDevice"));
  const VkResult result = create(physical, &real, callbacks, handle);
  if (result != VK_SUCCESS) return result;

  auto made = std::make_unique<Device>();
  made->handle = *handle;
  made->physical = &below;
  made->set_loader_data = callback->u.pfnSetDeviceLoaderData;
#define PRETEND_LOAD(name) made->next.name = reinterpret_cast<PFN_##name>(get(*handle, #name));
  PRETEND_NEXT_OF_DEVICE(PRETEND_LOAD)
#undef PRETEND_LOAD
  made->next.vkGetDeviceProcAddr = get;
  keep(std::move(made));
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice handle, const VkAllocationCallbacks* callbacks) {
  if (handle == VK_NULL_HANDLE) return;
  device_of(handle).queues.clear();  // their threads still ask for the device
  const std::unique_ptr<Device> device = release_device(handle);
  device->next.vkDestroyDevice(handle, callbacks);
}

PFN_vkVoidFunction VKAPI_CALL get_instance_function(VkInstance handle, const char* name);
PFN_vkVoidFunction VKAPI_CALL get_device_function(VkDevice handle, const char* name);

using Table = std::map<std::string_view, PFN_vkVoidFunction>;

const Table& instance_table() {
  static const Table table = [] {
    Table all;
    const auto add = [&](const std::vector<Hook>& hooks) {
      for (const Hook& hook : hooks) all[hook.name] = hook.function;
    };
    add({PRETEND_HOOK(vkCreateInstance, create_instance), PRETEND_HOOK(vkDestroyInstance, destroy_instance),
         PRETEND_HOOK(vkCreateDevice, create_device),
         PRETEND_HOOK(vkGetInstanceProcAddr, get_instance_function),
         PRETEND_HOOK(vkCreateDebugUtilsMessengerEXT, create_messenger),
         PRETEND_HOOK(vkDestroyDebugUtilsMessengerEXT, destroy_messenger)});
    add(physical_device_hooks());
    return all;
  }();
  return table;
}

const Table& device_table() {
  static const Table table = [] {
    Table all;
    const auto add = [&](const std::vector<Hook>& hooks) {
      for (const Hook& hook : hooks) all[hook.name] = hook.function;
    };
    add({PRETEND_HOOK(vkDestroyDevice, destroy_device),
         PRETEND_HOOK(vkGetDeviceProcAddr, get_device_function)});
    for (const auto& hooks : {memory_hooks(), buffer_hooks(), descriptor_hooks(), command_hooks(),
                              queue_hooks(), query_hooks(), pipeline_hooks()}) {
      add(hooks);
    }
    return all;
  }();
  return table;
}

PFN_vkVoidFunction find_in(const Table& table, const char* name) {
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

PFN_vkVoidFunction VKAPI_CALL get_instance_function(VkInstance handle, const char* name) {
  const PFN_vkVoidFunction ours = find_in(instance_table(), name);
  if (handle == VK_NULL_HANDLE) return ours;
  const PFN_vkVoidFunction below = instance_of(handle).get(handle, name);
  if (below == nullptr) return nullptr;
  if (ours != nullptr) return ours;
  const PFN_vkVoidFunction of_device = find_in(device_table(), name);
  return of_device != nullptr ? of_device : below;
}

PFN_vkVoidFunction VKAPI_CALL get_device_function(VkDevice handle, const char* name) {
  const PFN_vkVoidFunction below = device_of(handle).next.vkGetDeviceProcAddr(handle, name);
  const PFN_vkVoidFunction ours = find_in(device_table(), name);
  return below != nullptr && ours != nullptr ? ours : below;
}

}  // namespace
}  // namespace vitrine::pretend

extern "C" __attribute__((visibility("default"))) VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* answer) {
  if (answer->loaderLayerInterfaceVersion < CURRENT_LOADER_LAYER_INTERFACE_VERSION)
    return VK_ERROR_INITIALIZATION_FAILED;
  answer->loaderLayerInterfaceVersion = CURRENT_LOADER_LAYER_INTERFACE_VERSION;
  answer->pfnGetInstanceProcAddr = vitrine::pretend::get_instance_function;
  answer->pfnGetDeviceProcAddr = vitrine::pretend::get_device_function;
  answer->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

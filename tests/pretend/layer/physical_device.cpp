// What is told of a device before it is opened: identity, limits, features, memory, queues, extensions.
#include <algorithm>
#include <cstring>

#include "tests/pretend/layer/features.h"
#include "tests/pretend/layer/limits.h"
#include "tests/pretend/layer/state.h"

namespace vitrine::pretend {
namespace {

// The driver's memory type behind one that is told. Whatever the program may map has to be mapped there, too,
// and what it may not by the queues that only copy.
uint32_t real_type_of(const MemoryType& type, const VkPhysicalDeviceMemoryProperties& real) {
  constexpr VkMemoryPropertyFlags mappable =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags wanted = mappable | (type.flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  for (uint32_t i = 0; i < real.memoryTypeCount; ++i) {
    if ((real.memoryTypes[i].propertyFlags & wanted) == wanted) return i;
  }
  return 0;
}

// The first that does all that the families which are told can do.
uint32_t real_family_of(const NextOfInstance& next, VkPhysicalDevice handle) {
  uint32_t count = 0;
  next.vkGetPhysicalDeviceQueueFamilyProperties(handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  next.vkGetPhysicalDeviceQueueFamilyProperties(handle, &count, families.data());
  for (uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0) return i;
  }
  return 0;
}

std::unique_ptr<PhysicalDevice> look_at(Instance& instance, VkPhysicalDevice handle) {
  auto made = std::make_unique<PhysicalDevice>();
  made->instance = &instance;
  made->handle = handle;
  instance.next.vkGetPhysicalDeviceProperties(handle, &made->real);
  made->limits = made->real.limits;
  narrow(made->limits, instance.profile.limits);

  // What was compiled for another profile, or by another driver, is none of this device's.
  const std::string_view cache_uuid(reinterpret_cast<const char*>(made->real.pipelineCacheUUID),
                                    VK_UUID_SIZE);
  uint64_t hash = fingerprint_of(cache_uuid, instance.profile.fingerprint);
  for (size_t i = 0; i < made->uuid.size(); i += sizeof hash) {
    std::memcpy(made->uuid.data() + i, &hash, sizeof hash);
    hash = fingerprint_of("further", hash);
  }

  VkPhysicalDeviceMemoryProperties memory{};
  instance.next.vkGetPhysicalDeviceMemoryProperties(handle, &memory);
  for (const MemoryType& type : instance.profile.memory_types)
    made->real_types.push_back(real_type_of(type, memory));
  made->heap_used.resize(instance.profile.heaps.size());
  made->real_family = real_family_of(instance.next, handle);
  return made;
}

void tell(const PhysicalDevice& device, VkPhysicalDeviceProperties& properties) {
  properties.limits = device.limits;
  std::ranges::copy(device.uuid, properties.pipelineCacheUUID);
  properties.apiVersion = std::min(properties.apiVersion, VK_MAKE_API_VERSION(0, 1, 3, 0));
  const auto& identity = device.profile().identity;
  if (!identity) return;
  properties.vendorID = identity->vendor_id;
  properties.deviceID = identity->device_id;
  properties.deviceType = identity->type;
  std::memset(properties.deviceName, 0, sizeof properties.deviceName);
  std::ranges::copy(identity->name, properties.deviceName);
}

template <size_t size>
void set_text(char (&to)[size], std::string_view text) {
  std::memset(to, 0, size);
  std::ranges::copy(text, to);
}

// No driver of Vulkan's list, or what is known of that one would be held to be true of this.
constexpr VkDriverId no_driver{};

template <typename Properties>
void tell_driver(const PhysicalDevice& device, Properties& properties) {
  if (!device.profile().identity) return;
  properties.driverID = no_driver;
  set_text(properties.driverName, "pretend");
  set_text(properties.driverInfo, "over " + std::string(device.real.deviceName).substr(0, 200));
}

template <typename Properties>
Properties* as(VkBaseOutStructure* structure, VkStructureType type) {
  return structure->sType == type ? reinterpret_cast<Properties*>(structure) : nullptr;
}

void tell_operations(const PhysicalDevice& device, VkSubgroupFeatureFlags& operations) {
  const std::vector<std::string>& hidden = device.profile().hidden;
  if (std::ranges::find(hidden, hidden_subgroup_arithmetic) == hidden.end()) return;
  operations = VK_SUBGROUP_FEATURE_BASIC_BIT;
}

void tell_chain(const PhysicalDevice& device, VkBaseOutStructure* chain) {
  for (VkBaseOutStructure* at = chain; at != nullptr; at = at->pNext) {
    if (auto* all = as<VkPhysicalDeviceVulkan11Properties>(
            at, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES)) {
      std::ranges::copy(device.uuid, all->deviceUUID);
      tell_operations(device, all->subgroupSupportedOperations);
    } else if (auto* ids =
                   as<VkPhysicalDeviceIDProperties>(at, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES)) {
      std::ranges::copy(device.uuid, ids->deviceUUID);
    } else if (auto* subgroups = as<VkPhysicalDeviceSubgroupProperties>(
                   at, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES)) {
      tell_operations(device, subgroups->supportedOperations);
    } else if (auto* newer = as<VkPhysicalDeviceVulkan12Properties>(
                   at, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES)) {
      tell_driver(device, *newer);
    } else if (auto* driver = as<VkPhysicalDeviceDriverProperties>(
                   at, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES)) {
      tell_driver(device, *driver);
    }
  }
  narrow_chain(chain, device.profile().limits);
}

// Only what is software can be put on another face: of a real GPU, memory has its own ways.
VKAPI_ATTR VkResult VKAPI_CALL list_devices(VkInstance handle, uint32_t* count, VkPhysicalDevice* listed) {
  Instance& instance = instance_of(handle);
  uint32_t had = 0;
  VkResult result = instance.next.vkEnumeratePhysicalDevices(handle, &had, nullptr);
  std::vector<VkPhysicalDevice> all(had);
  if (result == VK_SUCCESS) result = instance.next.vkEnumeratePhysicalDevices(handle, &had, all.data());
  if (result != VK_SUCCESS) return result;
  std::erase_if(all, [&](VkPhysicalDevice one) {
    return instance.of(one).real.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU;
  });
  const auto have = static_cast<uint32_t>(all.size());
  const bool fits = listed == nullptr || *count >= have;
  *count = listed == nullptr ? have : std::min(*count, have);
  if (listed != nullptr) std::copy_n(all.begin(), *count, listed);
  return fits ? VK_SUCCESS : VK_INCOMPLETE;
}

VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice handle, VkPhysicalDeviceProperties* properties) {
  const PhysicalDevice& device = physical_of(handle);
  *properties = device.real;
  tell(device, *properties);
}

VKAPI_ATTR void VKAPI_CALL get_properties2(VkPhysicalDevice handle, VkPhysicalDeviceProperties2* properties) {
  const PhysicalDevice& device = physical_of(handle);
  device.instance->next.vkGetPhysicalDeviceProperties2(handle, properties);
  tell(device, properties->properties);
  tell_chain(device, static_cast<VkBaseOutStructure*>(properties->pNext));
}

VKAPI_ATTR void VKAPI_CALL get_features2(VkPhysicalDevice handle, VkPhysicalDeviceFeatures2* features) {
  const PhysicalDevice& device = physical_of(handle);
  device.instance->next.vkGetPhysicalDeviceFeatures2(handle, features);
  visit_hidden_features(reinterpret_cast<VkBaseOutStructure*>(features), device.profile().hidden,
                        [](VkBool32& one) { one = VK_FALSE; });
}

VKAPI_ATTR void VKAPI_CALL get_features(VkPhysicalDevice handle, VkPhysicalDeviceFeatures* features) {
  VkPhysicalDeviceFeatures2 all{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  get_features2(handle, &all);
  *features = all.features;
}

VKAPI_ATTR void VKAPI_CALL get_memory(VkPhysicalDevice handle, VkPhysicalDeviceMemoryProperties* memory) {
  const Profile& profile = physical_of(handle).profile();
  *memory = {};
  for (const Heap& heap : profile.heaps) {
    memory->memoryHeaps[memory->memoryHeapCount++] = {
        heap.bytes, heap.device_local ? VkMemoryHeapFlags{VK_MEMORY_HEAP_DEVICE_LOCAL_BIT} : 0};
  }
  for (const MemoryType& type : profile.memory_types)
    memory->memoryTypes[memory->memoryTypeCount++] = {type.flags, type.heap};
}

VKAPI_ATTR void VKAPI_CALL get_memory2(VkPhysicalDevice handle, VkPhysicalDeviceMemoryProperties2* memory) {
  PhysicalDevice& device = physical_of(handle);
  get_memory(handle, &memory->memoryProperties);
  for (auto* at = static_cast<VkBaseOutStructure*>(memory->pNext); at != nullptr; at = at->pNext) {
    auto* budget = as<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(
        at, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
    if (!budget) continue;
    const std::scoped_lock lock(device.mutex);
    for (size_t i = 0; i < VK_MAX_MEMORY_HEAPS; ++i) {
      const bool exists = i < device.heap_used.size();
      budget->heapBudget[i] = exists ? device.profile().heaps[i].budget : 0;
      budget->heapUsage[i] = exists ? device.heap_used[i] : 0;
    }
  }
}

VkQueueFamilyProperties told(const QueueFamily& family) {
  return {.queueFlags = family.flags,
          .queueCount = family.queues,
          .timestampValidBits = family.timestamp_bits,
          .minImageTransferGranularity = {1, 1, 1}};
}

VKAPI_ATTR void VKAPI_CALL get_families(VkPhysicalDevice handle, uint32_t* count,
                                        VkQueueFamilyProperties* families) {
  const std::vector<QueueFamily>& all = physical_of(handle).profile().queue_families;
  const auto have = static_cast<uint32_t>(all.size());
  *count = families == nullptr ? have : std::min(*count, have);
  if (families == nullptr) return;
  for (uint32_t i = 0; i < *count; ++i) families[i] = told(all[i]);
}

VKAPI_ATTR void VKAPI_CALL get_families2(VkPhysicalDevice handle, uint32_t* count,
                                         VkQueueFamilyProperties2* families) {
  const std::vector<QueueFamily>& all = physical_of(handle).profile().queue_families;
  const auto have = static_cast<uint32_t>(all.size());
  *count = families == nullptr ? have : std::min(*count, have);
  if (families == nullptr) return;
  for (uint32_t i = 0; i < *count; ++i) families[i].queueFamilyProperties = told(all[i]);
}

VKAPI_ATTR VkResult VKAPI_CALL get_surface_support(VkPhysicalDevice handle, uint32_t family,
                                                   VkSurfaceKHR surface, VkBool32* supported) {
  const PhysicalDevice& device = physical_of(handle);
  const VkResult result = device.instance->next.vkGetPhysicalDeviceSurfaceSupportKHR(
      handle, device.real_family, surface, supported);
  if (family < device.profile().queue_families.size() &&
      (device.profile().queue_families[family].flags & VK_QUEUE_GRAPHICS_BIT) == 0) {
    *supported = VK_FALSE;
  }
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL list_extensions(VkPhysicalDevice handle, const char* layer, uint32_t* count,
                                               VkExtensionProperties* listed) {
  const PhysicalDevice& device = physical_of(handle);
  const auto& enumerate = device.instance->next.vkEnumerateDeviceExtensionProperties;
  if (layer != nullptr) return enumerate(handle, layer, count, listed);
  uint32_t had = 0;
  enumerate(handle, nullptr, &had, nullptr);
  std::vector<VkExtensionProperties> all(had);
  const VkResult result = enumerate(handle, nullptr, &had, all.data());
  if (result != VK_SUCCESS) return result;
  std::erase_if(all, [&](const VkExtensionProperties& one) {
    return !is_listed(one.extensionName, device.profile().hidden);
  });
  if (listed == nullptr) {
    *count = static_cast<uint32_t>(all.size());
    return VK_SUCCESS;
  }
  const bool fits = *count >= all.size();
  *count = std::min(*count, static_cast<uint32_t>(all.size()));
  std::copy_n(all.begin(), *count, listed);
  return fits ? VK_SUCCESS : VK_INCOMPLETE;
}

}  // namespace

PhysicalDevice& Instance::of(VkPhysicalDevice device) {
  const std::scoped_lock lock(mutex);
  std::unique_ptr<PhysicalDevice>& known = physical[device];
  if (!known) known = look_at(*this, device);
  return *known;
}

std::vector<Hook> physical_device_hooks() {
  return {PRETEND_HOOK(vkEnumeratePhysicalDevices, list_devices),
          PRETEND_HOOK(vkGetPhysicalDeviceProperties, get_properties),
          PRETEND_HOOK(vkGetPhysicalDeviceProperties2, get_properties2),
          PRETEND_HOOK(vkGetPhysicalDeviceProperties2KHR, get_properties2),
          PRETEND_HOOK(vkGetPhysicalDeviceFeatures, get_features),
          PRETEND_HOOK(vkGetPhysicalDeviceFeatures2, get_features2),
          PRETEND_HOOK(vkGetPhysicalDeviceFeatures2KHR, get_features2),
          PRETEND_HOOK(vkGetPhysicalDeviceMemoryProperties, get_memory),
          PRETEND_HOOK(vkGetPhysicalDeviceMemoryProperties2, get_memory2),
          PRETEND_HOOK(vkGetPhysicalDeviceMemoryProperties2KHR, get_memory2),
          PRETEND_HOOK(vkGetPhysicalDeviceQueueFamilyProperties, get_families),
          PRETEND_HOOK(vkGetPhysicalDeviceQueueFamilyProperties2, get_families2),
          PRETEND_HOOK(vkGetPhysicalDeviceQueueFamilyProperties2KHR, get_families2),
          PRETEND_HOOK(vkGetPhysicalDeviceSurfaceSupportKHR, get_surface_support),
          PRETEND_HOOK(vkEnumerateDeviceExtensionProperties, list_extensions)};
}

}  // namespace vitrine::pretend

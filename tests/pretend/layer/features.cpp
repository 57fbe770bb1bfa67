#include "tests/pretend/layer/features.h"

#include <algorithm>
#include <cstddef>

#include "runtime/vk/newer_vulkan.h"

namespace vitrine::pretend {
namespace {

struct Switch {
  std::string_view name;
  VkStructureType type;
  size_t offset;
};

#define IN_CORE(member)                         \
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, \
      offsetof(VkPhysicalDeviceFeatures2, features) + offsetof(VkPhysicalDeviceFeatures, member)
#define IN_11(member) \
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, offsetof(VkPhysicalDeviceVulkan11Features, member)
#define IN_12(member) \
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, offsetof(VkPhysicalDeviceVulkan12Features, member)
#define IN_13(member) \
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES, offsetof(VkPhysicalDeviceVulkan13Features, member)
#define IN_16BIT(member)                                    \
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, \
      offsetof(VkPhysicalDevice16BitStorageFeatures, member)
#define IN_8BIT(member)                                    \
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, \
      offsetof(VkPhysicalDevice8BitStorageFeatures, member)
#define IN_SMALL_TYPES(member)                                    \
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, \
      offsetof(VkPhysicalDeviceShaderFloat16Int8Features, member)
#define IN_ADDRESSES(member)                                        \
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, \
      offsetof(VkPhysicalDeviceBufferDeviceAddressFeatures, member)
#define IN_SUBGROUPS(member)                                        \
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, \
      offsetof(VkPhysicalDeviceSubgroupSizeControlFeatures, member)

constexpr Switch switches[] = {
    {"storage16", IN_11(storageBuffer16BitAccess)},
    {"storage16", IN_11(uniformAndStorageBuffer16BitAccess)},
    {"storage16", IN_11(storagePushConstant16)},
    {"storage16", IN_16BIT(storageBuffer16BitAccess)},
    {"storage16", IN_16BIT(uniformAndStorageBuffer16BitAccess)},
    {"storage16", IN_16BIT(storagePushConstant16)},
    {"fp16", IN_12(shaderFloat16)},
    {"fp16", IN_SMALL_TYPES(shaderFloat16)},
    {"int8", IN_12(storageBuffer8BitAccess)},
    {"int8", IN_12(uniformAndStorageBuffer8BitAccess)},
    {"int8", IN_12(storagePushConstant8)},
    {"int8", IN_12(shaderInt8)},
    {"int8", IN_8BIT(storageBuffer8BitAccess)},
    {"int8", IN_8BIT(uniformAndStorageBuffer8BitAccess)},
    {"int8", IN_8BIT(storagePushConstant8)},
    {"int8", IN_SMALL_TYPES(shaderInt8)},
    {"int64", IN_CORE(shaderInt64)},
    {"addresses", IN_12(bufferDeviceAddress)},
    {"addresses", IN_12(bufferDeviceAddressCaptureReplay)},
    {"addresses", IN_12(bufferDeviceAddressMultiDevice)},
    {"addresses", IN_ADDRESSES(bufferDeviceAddress)},
    {"addresses", IN_ADDRESSES(bufferDeviceAddressCaptureReplay)},
    {"addresses", IN_ADDRESSES(bufferDeviceAddressMultiDevice)},
    {"subgroup_control", IN_13(subgroupSizeControl)},
    {"subgroup_control", IN_13(computeFullSubgroups)},
    {"subgroup_control", IN_SUBGROUPS(subgroupSizeControl)},
    {"subgroup_control", IN_SUBGROUPS(computeFullSubgroups)},
    {"coopmat", VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
     offsetof(VkPhysicalDeviceCooperativeMatrixFeaturesKHR, cooperativeMatrix)},
    {"coopmat2", VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV,
     offsetof(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, cooperativeMatrixFlexibleDimensions)},
};

// An extension, and what hides it.
struct Extension {
  std::string_view name, hidden_with;
};
constexpr Extension extensions[] = {
    {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, ""},
    {VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME, "calibrated_timestamps"},
    {VK_KHR_CALIBRATED_TIMESTAMPS_EXTENSION_NAME, "calibrated_timestamps"},
    {VK_KHR_SWAPCHAIN_EXTENSION_NAME, ""},
    {VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME, ""},
    {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, "coopmat"},
    {VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME, "coopmat2"},
};

}  // namespace

bool can_be_hidden(std::string_view name) {
  return name == hidden_subgroup_arithmetic ||
         std::ranges::any_of(switches, [&](const Switch& one) { return one.name == name; }) ||
         (!name.empty() &&
          std::ranges::find(extensions, name, &Extension::hidden_with) != std::end(extensions));
}

void visit_hidden_features(VkBaseOutStructure* chain, std::span<const std::string> hidden,
                           const std::function<void(VkBool32&)>& visit) {
  for (; chain != nullptr; chain = chain->pNext) {
    for (const Switch& one : switches) {
      if (one.type != chain->sType || std::ranges::find(hidden, one.name) == hidden.end()) continue;
      visit(*reinterpret_cast<VkBool32*>(reinterpret_cast<std::byte*>(chain) + one.offset));
    }
  }
}

bool is_listed(std::string_view extension, std::span<const std::string> hidden) {
  const auto found = std::ranges::find(extensions, extension, &Extension::name);
  return found != std::end(extensions) && std::ranges::find(hidden, found->hidden_with) == hidden.end();
}

}  // namespace vitrine::pretend

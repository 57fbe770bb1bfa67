#include "runtime/vk/facts/snapshot.h"

#include <algorithm>
#include <cstring>

#include "runtime/vk/facts/hardware.h"
#include "runtime/vk/newer_vulkan.h"
#include "runtime/vk/result.h"

namespace vitrine {
namespace {

DeviceType type_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return DeviceType::integrated;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return DeviceType::discrete;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return DeviceType::virtual_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return DeviceType::cpu;
    default:
      return DeviceType::other;
  }
}

std::string component_name(VkComponentTypeKHR type) {
  switch (type) {
    case VK_COMPONENT_TYPE_FLOAT16_KHR:
      return "f16";
    case VK_COMPONENT_TYPE_FLOAT32_KHR:
      return "f32";
    case VK_COMPONENT_TYPE_FLOAT64_KHR:
      return "f64";
    case VK_COMPONENT_TYPE_SINT8_KHR:
      return "s8";
    case VK_COMPONENT_TYPE_SINT16_KHR:
      return "s16";
    case VK_COMPONENT_TYPE_SINT32_KHR:
      return "s32";
    case VK_COMPONENT_TYPE_SINT64_KHR:
      return "s64";
    case VK_COMPONENT_TYPE_UINT8_KHR:
      return "u8";
    case VK_COMPONENT_TYPE_UINT16_KHR:
      return "u16";
    case VK_COMPONENT_TYPE_UINT32_KHR:
      return "u32";
    case VK_COMPONENT_TYPE_UINT64_KHR:
      return "u64";
    default:
      break;
  }
  // VK_COMPONENT_TYPE_BFLOAT16_KHR, _FLOAT8_E4M3_EXT and _FLOAT8_E5M2_EXT, which older headers don't name.
  if (static_cast<int>(type) == 1000141000) return "bf16";
  if (static_cast<int>(type) == 1000491002) return "e4m3";
  if (static_cast<int>(type) == 1000491003) return "e5m2";
  return "type" + std::to_string(static_cast<int>(type));
}

void copy_uuid(std::array<uint8_t, 16>& to, const uint8_t (&from)[VK_UUID_SIZE]) {
  std::copy(std::begin(from), std::end(from), to.begin());
}

std::vector<CooperativeShape> cooperative_shapes(const InstanceFunctions& functions,
                                                 VkPhysicalDevice device) {
  if (functions.get_cooperative_matrix_properties == nullptr) return {};
  uint32_t count = 0;
  check(functions.get_cooperative_matrix_properties(device, &count, nullptr),
        "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  std::vector<VkCooperativeMatrixPropertiesKHR> listed(
      count, {.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR});
  check(functions.get_cooperative_matrix_properties(device, &count, listed.data()),
        "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  listed.resize(count);
  std::vector<CooperativeShape> shapes;
  for (const VkCooperativeMatrixPropertiesKHR& row : listed) {
    if (row.scope != VK_SCOPE_SUBGROUP_KHR || row.saturatingAccumulation) continue;
    CooperativeShape shape{row.MSize,
                           row.NSize,
                           row.KSize,
                           component_name(row.AType),
                           component_name(row.BType),
                           component_name(row.CType),
                           component_name(row.ResultType)};
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(std::move(shape));
  }
  return shapes;
}

std::vector<FlexibleShape> flexible_shapes(const InstanceFunctions& functions, VkPhysicalDevice device) {
  if (functions.get_flexible_matrix_properties == nullptr) return {};
  constexpr const char* name = "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV";
  uint32_t count = 0;
  check(functions.get_flexible_matrix_properties(device, &count, nullptr), name);
  VkCooperativeMatrixFlexibleDimensionsPropertiesNV empty{};
  empty.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV;
  std::vector<VkCooperativeMatrixFlexibleDimensionsPropertiesNV> listed(count, empty);
  check(functions.get_flexible_matrix_properties(device, &count, listed.data()), name);
  listed.resize(count);
  std::vector<FlexibleShape> shapes;
  for (const VkCooperativeMatrixFlexibleDimensionsPropertiesNV& row : listed) {
    const bool workgroup = row.scope == VK_SCOPE_WORKGROUP_KHR;
    if ((!workgroup && row.scope != VK_SCOPE_SUBGROUP_KHR) || row.saturatingAccumulation) continue;
    FlexibleShape shape{row.MGranularity,
                        row.NGranularity,
                        row.KGranularity,
                        component_name(row.AType),
                        component_name(row.BType),
                        component_name(row.CType),
                        component_name(row.ResultType),
                        workgroup ? row.workgroupInvocations : 0};
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(std::move(shape));
  }
  return shapes;
}

void read_limits(Capabilities& out, const VkPhysicalDeviceLimits& limits) {
  std::copy_n(limits.maxComputeWorkGroupCount, 3, out.max_workgroup_count.begin());
  std::copy_n(limits.maxComputeWorkGroupSize, 3, out.max_workgroup_size.begin());
  out.max_workgroup_invocations = limits.maxComputeWorkGroupInvocations;
  out.max_shared_bytes = limits.maxComputeSharedMemorySize;
  out.max_push_bytes = limits.maxPushConstantsSize;
  out.max_storage_buffers = std::min({limits.maxPerStageDescriptorStorageBuffers,
                                      limits.maxDescriptorSetStorageBuffers, limits.maxPerStageResources});
  out.max_storage_range = limits.maxStorageBufferRange;
  out.storage_alignment = limits.minStorageBufferOffsetAlignment;
  out.timestamp_period_ns = static_cast<double>(limits.timestampPeriod);
}

void read_memory(Capabilities& out, const VkPhysicalDeviceMemoryProperties& memory) {
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memory.memoryHeaps[i];
    out.heaps.push_back({heap.size, (heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0});
  }
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryType& type = memory.memoryTypes[i];
    const auto has = [&](VkMemoryPropertyFlags flag) { return (type.propertyFlags & flag) != 0; };
    out.memory_types.push_back(
        {type.heapIndex, has(VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT), has(VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT),
         has(VK_MEMORY_PROPERTY_HOST_COHERENT_BIT), has(VK_MEMORY_PROPERTY_HOST_CACHED_BIT)});
  }
}

// Everything that needs Vulkan 1.2 or 1.3 structures.
void read_modern(Capabilities& out, const InstanceFunctions& functions, VkPhysicalDevice device,
                 const DeviceExtensions& extensions) {
  const bool is_1_3 = out.api_version >= VK_API_VERSION_1_3;

  VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceVulkan11Properties properties11{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES};
  VkPhysicalDeviceVulkan12Properties properties12{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
  VkPhysicalDeviceVulkan13Properties properties13{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES};
  VkPhysicalDeviceCooperativeMatrixPropertiesKHR coopmat_properties{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR};

  VkPhysicalDeviceFeatures2 features{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan11Features features11{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features features12{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan13Features features13{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR coopmat{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  VkPhysicalDeviceCooperativeMatrix2FeaturesNV coopmat2{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV};
  VkPhysicalDeviceCooperativeMatrix2PropertiesNV coopmat2_properties{};
  coopmat2_properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};

  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV sm_builtins{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceShaderCorePropertiesAMD amd_cores{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};

  StructureChain property_chain(properties);
  property_chain.add(properties11);
  property_chain.add(properties12);
  if (is_1_3) property_chain.add(properties13);
  StructureChain feature_chain(features);
  feature_chain.add(features11);
  feature_chain.add(features12);
  if (is_1_3) feature_chain.add(features13);
  const bool lists_sms = extensions.has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME);
  if (lists_sms) property_chain.add(sm_builtins);
  const bool lists_cores = extensions.has(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME);
  if (lists_cores) property_chain.add(amd_cores);
  const bool lists_coopmat = extensions.has(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  if (lists_coopmat) {
    property_chain.add(coopmat_properties);
    feature_chain.add(coopmat);
  }
  if (lists_coopmat && extensions.has(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME)) {
    property_chain.add(coopmat2_properties);
    feature_chain.add(coopmat2);
  }
  if (extensions.has(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME)) feature_chain.add(statistics);
  functions.get_properties2(device, &properties);
  functions.get_features2(device, &features);

  copy_uuid(out.device_uuid, properties11.deviceUUID);
  copy_uuid(out.driver_uuid, properties11.driverUUID);
  out.subgroup_size = out.min_subgroup_size = out.max_subgroup_size = properties11.subgroupSize;
  if ((properties11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0) {
    out.subgroup_operations = properties11.subgroupSupportedOperations;
  }
  out.max_allocation = properties11.maxMemoryAllocationSize;
  out.driver_name = properties12.driverName;
  out.driver_info = properties12.driverInfo;
  out.driver_id = static_cast<uint32_t>(properties12.driverID);
  // Before 1.3 there is no such limit to ask for; such devices are refused anyway.
  out.max_buffer_bytes = is_1_3 ? properties13.maxBufferSize : properties11.maxMemoryAllocationSize;

  if (lists_sms) {
    out.multiprocessors = sm_builtins.shaderSMCount;
    out.unit_subgroups = sm_builtins.shaderWarpsPerSM;
  }
  if (lists_cores) {
    out.unit_subgroups = amd_cores.simdPerComputeUnit * amd_cores.wavefrontsPerSimd;
    out.multiprocessors = amd_cores.shaderEngineCount * amd_cores.shaderArraysPerEngineCount *
                          amd_cores.computeUnitsPerShaderArray;
  }

  out.timeline_semaphore = features12.timelineSemaphore;
  out.synchronization2 = features13.synchronization2;
  out.maintenance4 = features13.maintenance4;
  out.scalar_layout = features12.scalarBlockLayout;
  out.memory_model = features12.vulkanMemoryModel;
  out.mixed_dot_product = properties13.integerDotProduct4x8BitPackedMixedSignednessAccelerated;
  out.pipeline_statistics = statistics.pipelineExecutableInfo;

  const auto grant = [&](bool condition, Need need) {
    if (condition) out.has = out.has | need;
  };
  grant(features11.storageBuffer16BitAccess, Need::storage16);
  grant(features12.shaderFloat16, Need::fp16);
  grant(features12.storageBuffer8BitAccess && features12.shaderInt8, Need::int8);
  grant(features.features.shaderInt64, Need::int64);
  grant(features12.bufferDeviceAddress, Need::addresses);
  grant((out.subgroup_operations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0, Need::subgroup_arithmetic);
  if (features13.subgroupSizeControl && features13.computeFullSubgroups) {
    // Devices with one size (NVK, Honeykrisp) list no stage that can be asked for it, and need not be.
    const bool can_ask = (properties13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
    grant(can_ask || properties13.minSubgroupSize == properties13.maxSubgroupSize, Need::subgroup_control);
    out.min_subgroup_size = properties13.minSubgroupSize;
    out.max_subgroup_size = properties13.maxSubgroupSize;
    out.max_workgroup_subgroups = properties13.maxComputeWorkgroupSubgroups;
  }
  // MoltenVK's compiler has to know a matrix's size before specialization constants tell it
  // (https://github.com/KhronosGroup/MoltenVK/pull/2753).
  const bool sizes_are_constants = out.driver_id != VK_DRIVER_ID_MOLTENVK;
  if (coopmat.cooperativeMatrix && sizes_are_constants && out.memory_model &&
      (coopmat_properties.cooperativeMatrixSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0) {
    out.cooperative_shapes = cooperative_shapes(functions, device);
    const bool f16 = std::ranges::any_of(out.cooperative_shapes, [](const CooperativeShape& shape) {
      return shape.a == "f16" && shape.b == "f16";
    });
    grant(f16, Need::coopmat);
    if (f16 && coopmat2.cooperativeMatrixFlexibleDimensions) {
      grant(true, Need::coopmat2);
      grant(coopmat2.cooperativeMatrixPerElementOperations, Need::coopmat2_elements);
      grant(coopmat2.cooperativeMatrixReductions, Need::coopmat2_reductions);
      grant(coopmat2.cooperativeMatrixConversions, Need::coopmat2_conversions);
      grant(coopmat2.cooperativeMatrixTensorAddressing, Need::coopmat2_tensors);
      grant(coopmat2.cooperativeMatrixWorkgroupScope, Need::coopmat2_workgroups);
      out.flexible_shapes = flexible_shapes(functions, device);
      out.flexible_max_dimension = coopmat2_properties.cooperativeMatrixFlexibleDimensionsMaxDimension;
      out.flexible_reserved_shared = coopmat2_properties.cooperativeMatrixWorkgroupScopeReservedSharedMemory;
    }
  }
}

}  // namespace

DeviceExtensions::DeviceExtensions(const InstanceFunctions& functions, VkPhysicalDevice device) {
  uint32_t count = 0;
  check(functions.enumerate_device_extensions(device, nullptr, &count, nullptr),
        "vkEnumerateDeviceExtensionProperties");
  std::vector<VkExtensionProperties> listed(count);
  check(functions.enumerate_device_extensions(device, nullptr, &count, listed.data()),
        "vkEnumerateDeviceExtensionProperties");
  listed.resize(count);
  for (const VkExtensionProperties& extension : listed) names_.emplace_back(extension.extensionName);
}

bool DeviceExtensions::has(std::string_view name) const {
  return std::ranges::find(names_, name) != names_.end();
}

std::vector<VkQueueFamilyProperties> queue_families(const InstanceFunctions& functions,
                                                    VkPhysicalDevice device) {
  uint32_t count = 0;
  functions.get_queue_family_properties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  functions.get_queue_family_properties(device, &count, families.data());
  families.resize(count);
  return families;
}

std::optional<uint32_t> choose_queue_family(std::span<const VkQueueFamilyProperties> families) {
  std::optional<uint32_t> computes;
  for (uint32_t i = 0; i < families.size(); ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0 || families[i].queueCount == 0) continue;
    if (families[i].timestampValidBits != 0) return i;
    if (!computes) computes = i;
  }
  return computes;
}

std::optional<QueuePlace> choose_copy_queue(std::span<const VkQueueFamilyProperties> families,
                                            uint32_t family, uint32_t taken) {
  // What else copies is for video and optical flow, and has its own way of doing it.
  constexpr VkQueueFlags only_copies =
      VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT | VK_QUEUE_PROTECTED_BIT;
  std::optional<QueuePlace> computes;
  for (uint32_t i = 0; i < families.size(); ++i) {
    const VkQueueFlags flags = families[i].queueFlags;
    if (i == family || families[i].queueCount == 0) continue;
    if ((flags & VK_QUEUE_TRANSFER_BIT) != 0 && (flags & ~only_copies) == 0) return QueuePlace{i, 0};
    // Who computes copies, whether or not it says so.
    const bool computes_only =
        (flags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)) == VK_QUEUE_COMPUTE_BIT;
    if (computes_only && !computes) computes = QueuePlace{i, 0};
  }
  if (computes) return computes;
  if (family < families.size() && taken < families[family].queueCount) return QueuePlace{family, taken};
  return std::nullopt;
}

Capabilities take_snapshot(const InstanceFunctions& functions, VkPhysicalDevice device) {
  Capabilities out;
  VkPhysicalDeviceProperties properties{};
  functions.get_properties(device, &properties);
  out.name = properties.deviceName;
  out.type = type_of(properties.deviceType);
  out.vendor_id = properties.vendorID;
  out.device_id = properties.deviceID;
  out.driver_version = properties.driverVersion;
  out.api_version = properties.apiVersion;
  copy_uuid(out.pipeline_cache_uuid, properties.pipelineCacheUUID);
  read_limits(out, properties.limits);

  VkPhysicalDeviceFeatures features{};
  functions.get_features(device, &features);
  out.robust_buffer_access = features.robustBufferAccess;

  VkPhysicalDeviceMemoryProperties memory{};
  functions.get_memory_properties(device, &memory);
  read_memory(out, memory);

  const std::vector<VkQueueFamilyProperties> families = queue_families(functions, device);
  if (const std::optional<uint32_t> family = choose_queue_family(families)) {
    out.has_compute_queue = true;
    out.timestamp_valid_bits = families[*family].timestampValidBits;
  }

  const DeviceExtensions extensions(functions, device);
  out.memory_budget = extensions.has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  out.portability_subset = extensions.has("VK_KHR_portability_subset");
  if (out.api_version >= VK_API_VERSION_1_2 && functions.get_properties2 != nullptr &&
      functions.get_features2 != nullptr) {
    read_modern(out, functions, device, extensions);
  }
  add_hardware_facts(out);
  return out;
}

}  // namespace vitrine

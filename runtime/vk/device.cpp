#include "runtime/vk/device.h"

#include <volk.h>

#include <algorithm>
#include <array>
#include <string>

#include "runtime/util/error.h"
#include "runtime/vk/facts/snapshot.h"
#include "runtime/vk/newer_vulkan.h"
#include "runtime/vk/result.h"
#include "runtime/vk/vma.h"

namespace vitrine {
namespace {

// The features that Vitrine's shaders and runtime use, where the device has them; nothing else is on.
// A snapshot after quirks decides, so that what a quirk took away isn't enabled either.
class EnabledFeatures {
 public:
  EnabledFeatures(const Capabilities& device, const InstanceFunctions& functions, VkPhysicalDevice physical,
                  bool draws) {
    const auto on = [&](Need need) -> VkBool32 { return device.supports(need) ? VK_TRUE : VK_FALSE; };
    features_.features.shaderInt64 = on(Need::int64);
    features11_.storageBuffer16BitAccess = on(Need::storage16);
    features12_.shaderFloat16 = on(Need::fp16);
    features12_.storageBuffer8BitAccess = on(Need::int8);
    features12_.shaderInt8 = on(Need::int8);
    features12_.bufferDeviceAddress = on(Need::addresses);
    features12_.scalarBlockLayout = device.scalar_layout;
    features12_.timelineSemaphore = VK_TRUE;
    features12_.vulkanMemoryModel = device.memory_model;
    features13_.synchronization2 = VK_TRUE;
    features13_.maintenance4 = VK_TRUE;
    features13_.subgroupSizeControl = on(Need::subgroup_control);
    features13_.computeFullSubgroups = on(Need::subgroup_control);
    features13_.dynamicRendering = draws ? VK_TRUE : VK_FALSE;
    if (draws) extensions_.push_back(VK_KHR_SWAPCHAIN_EXTENSION_NAME);
    chain_.add(features11_);
    chain_.add(features12_);
    chain_.add(features13_);

    VkPhysicalDeviceVulkan12Features had{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    ask(functions, physical, had);
    features12_.hostQueryReset = had.hostQueryReset;
    if (device.memory_model) features12_.vulkanMemoryModelDeviceScope = had.vulkanMemoryModelDeviceScope;
    if (device.supports(Need::coopmat)) {
      coopmat_.cooperativeMatrix = VK_TRUE;
      add(coopmat_, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    }
    if (device.supports(Need::coopmat2)) {
      coopmat2_.cooperativeMatrixFlexibleDimensions = VK_TRUE;
      coopmat2_.cooperativeMatrixReductions = on(Need::coopmat2_reductions);
      coopmat2_.cooperativeMatrixConversions = on(Need::coopmat2_conversions);
      coopmat2_.cooperativeMatrixPerElementOperations = on(Need::coopmat2_elements);
      coopmat2_.cooperativeMatrixTensorAddressing = on(Need::coopmat2_tensors);
      coopmat2_.cooperativeMatrixWorkgroupScope = on(Need::coopmat2_workgroups);
      add(coopmat2_, VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME);
    }
    if (device.pipeline_statistics) {
      statistics_.pipelineExecutableInfo = VK_TRUE;
      add(statistics_, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    }
    const DeviceExtensions listed(functions, physical);
    for (const char* name :
         {VK_KHR_CALIBRATED_TIMESTAMPS_EXTENSION_NAME, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME}) {
      if (calibrates_ || !listed.has(name)) continue;
      extensions_.push_back(name);
      calibrates_ = true;
    }
    if (device.memory_budget) extensions_.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    // A device that lists it wants it enabled.
    if (device.portability_subset) extensions_.push_back("VK_KHR_portability_subset");
  }
  EnabledFeatures(const EnabledFeatures&) = delete;
  EnabledFeatures& operator=(const EnabledFeatures&) = delete;

  const VkPhysicalDeviceFeatures2& head() const { return features_; }
  const std::vector<const char*>& extensions() const { return extensions_; }
  bool resets_queries() const { return features12_.hostQueryReset == VK_TRUE; }
  bool calibrates_timestamps() const { return calibrates_; }

 private:
  template <typename Features>
  static void ask(const InstanceFunctions& functions, VkPhysicalDevice physical, Features& features) {
    VkPhysicalDeviceFeatures2 head{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    head.pNext = &features;
    functions.get_features2(physical, &head);
    features.pNext = nullptr;
  }
  template <typename Features>
  void add(Features& features, const char* extension) {
    chain_.add(features);
    extensions_.push_back(extension);
  }

  VkPhysicalDeviceFeatures2 features_{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan11Features features11_{.sType =
                                                   VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features features12_{.sType =
                                                   VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan13Features features13_{.sType =
                                                   VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR coopmat_{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  VkPhysicalDeviceCooperativeMatrix2FeaturesNV coopmat2_{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics_{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  StructureChain chain_{features_};
  std::vector<const char*> extensions_;
  bool calibrates_ = false;
};

}  // namespace

Device::Device(std::shared_ptr<Instance> instance, const PhysicalDevice& physical, DeviceOptions options)
    : instance_(std::move(instance)),
      capabilities_(physical.capabilities),
      table_(std::make_unique<VolkDeviceTable>()),
      physical_(physical.handle) {
  create_device(physical.handle, options);
  try {
    create_allocator(physical.handle, options);
  } catch (...) {
    destroy_device();
    throw;
  }
}

void Device::create_device(VkPhysicalDevice physical, const DeviceOptions& options) {
  const InstanceFunctions& functions = instance_->functions();
  const bool draws = options.drawing_family.has_value();
  const std::optional<uint32_t> family =
      draws ? options.drawing_family : choose_queue_family(queue_families(functions, physical));
  if (!family) {
    throw Error(ErrorCode::no_device, "device '" + capabilities_.name + "' has no queue that computes");
  }
  queue_family_ = *family;

  const EnabledFeatures features(capabilities_, functions, physical, draws);
  resets_queries_ = features.resets_queries();
  calibrates_timestamps_ = features.calibrates_timestamps();
  const std::vector<VkQueueFamilyProperties> families = queue_families(functions, physical);
  const uint32_t taken = draws && families[*family].queueCount > 1 ? 2 : 1;
  const std::optional<QueuePlace> copies =
      capabilities_.stages() ? choose_copy_queue(families, *family, taken) : std::nullopt;
  const std::array<float, 3> priorities{1.0f, 1.0f, 1.0f};
  std::vector<VkDeviceQueueCreateInfo> queues;
  const auto want = [&](uint32_t of_family, uint32_t count) {
    VkDeviceQueueCreateInfo& queue = queues.emplace_back();
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueFamilyIndex = of_family;
    queue.queueCount = count;
    queue.pQueuePriorities = priorities.data();
  };
  const bool of_same_family = copies && copies->family == queue_family_;
  want(queue_family_, of_same_family ? taken + 1 : taken);
  if (copies && !of_same_family) want(copies->family, 1);
  VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &features.head();
  info.queueCreateInfoCount = static_cast<uint32_t>(queues.size());
  info.pQueueCreateInfos = queues.data();
  info.enabledExtensionCount = static_cast<uint32_t>(features.extensions().size());
  info.ppEnabledExtensionNames = features.extensions().data();
  const VkResult created = [&] {
    const std::scoped_lock lists_lock(loader_lists_mutex());
    return functions.create_device(physical, &info, nullptr, &handle_);
  }();
  if (created != VK_SUCCESS) {
    throw Error(ErrorCode::no_device, "device '" + capabilities_.name +
                                          "' can't be opened: vkCreateDevice failed with " +
                                          name_of(created));
  }
  {
    const std::shared_lock lists_lock(loader_lists_mutex());
    volkLoadDeviceTable(table_.get(), handle_);
  }
  table_->vkGetDeviceQueue(handle_, queue_family_, 0, &queue_);
  table_->vkGetDeviceQueue(handle_, queue_family_, taken - 1, &present_queue_);
  const QueuePlace copy_place = copies.value_or(QueuePlace{queue_family_, 0});
  copy_queue_family_ = copy_place.family;
  copy_timestamp_bits_ = families[copy_place.family].timestampValidBits;
  table_->vkGetDeviceQueue(handle_, copy_place.family, copy_place.number, &copy_queue_);
}

void Device::destroy_device() {
  const std::scoped_lock lists_lock(loader_lists_mutex());
  table_->vkDestroyDevice(handle_, nullptr);
}

void Device::create_allocator(VkPhysicalDevice physical, const DeviceOptions& options) {
  VmaVulkanFunctions entry_points{};
  entry_points.vkGetInstanceProcAddr = instance_->functions().get_instance_proc_addr;
  entry_points.vkGetDeviceProcAddr = instance_->functions().get_device_proc_addr;
  std::array<VkDeviceSize, VK_MAX_MEMORY_HEAPS> limits{};
  limits.fill(options.heap_limit.value_or(VK_WHOLE_SIZE));

  VmaAllocatorCreateInfo info{};
  info.physicalDevice = physical;
  info.device = handle_;
  info.instance = instance_->handle();
  info.vulkanApiVersion = VK_API_VERSION_1_3;
  info.pVulkanFunctions = &entry_points;
  info.pHeapSizeLimit = limits.data();
  // On a card large buffers have memory of their own (memory.cpp), and what small ones share need not be
  // large: it counts as used from the first one on.
  if (!capabilities_.unified_memory()) info.preferredLargeHeapBlockSize = 4 * alone_bytes;
  if (capabilities_.memory_budget) info.flags |= VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT;
  if (capabilities_.supports(Need::addresses)) info.flags |= VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT;
  const std::shared_lock lists_lock(loader_lists_mutex());
  check(vmaCreateAllocator(&info, &allocator_), "vmaCreateAllocator");
}

Device::~Device() {
  // Whoever has work in flight waits for it before letting its objects go; this only guards the end.
  table_->vkDeviceWaitIdle(handle_);
  vmaDestroyAllocator(allocator_);
  destroy_device();
}

void Device::submit(std::span<const VkSubmitInfo2> submissions, VkFence fence) {
  const std::scoped_lock lock(queue_mutex_);
  check(table_->vkQueueSubmit2(queue_, static_cast<uint32_t>(submissions.size()), submissions.data(), fence),
        "vkQueueSubmit2");
}

void Device::submit_copies(std::span<const VkSubmitInfo2> submissions) {
  const std::scoped_lock lock(copies_apart() ? copy_mutex_ : queue_mutex_);
  check(table_->vkQueueSubmit2(copy_queue_, static_cast<uint32_t>(submissions.size()), submissions.data(),
                               VK_NULL_HANDLE),
        "vkQueueSubmit2");
}

VkResult Device::present(const VkPresentInfoKHR& info) {
  const std::scoped_lock lock(presents_apart() ? present_mutex_ : queue_mutex_);
  return table_->vkQueuePresentKHR(present_queue_, &info);
}

void Device::wait_idle() {
  const std::scoped_lock lock(queue_mutex_, present_mutex_, copy_mutex_);
  check(table_->vkDeviceWaitIdle(handle_), "vkDeviceWaitIdle");
}

void Device::set_name_of(VkObjectType type, uint64_t handle, std::string_view name) const {
  if (!instance_->debug_utils()) return;
  const std::string text(name);
  const VkDebugUtilsObjectNameInfoEXT info{.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
                                           .pNext = nullptr,
                                           .objectType = type,
                                           .objectHandle = handle,
                                           .pObjectName = text.c_str()};
  const std::shared_lock lists_lock(loader_lists_mutex());
  check(instance_->functions().set_object_name(handle_, &info), "vkSetDebugUtilsObjectNameEXT");
}

void Device::begin_label(VkCommandBuffer commands, std::string_view name) const {
  if (!instance_->debug_utils()) return;
  const std::string text(name);
  const VkDebugUtilsLabelEXT label{.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT,
                                   .pNext = nullptr,
                                   .pLabelName = text.c_str(),
                                   .color = {}};
  const std::shared_lock lists_lock(loader_lists_mutex());
  instance_->functions().begin_label(commands, &label);
}

void Device::end_label(VkCommandBuffer commands) const {
  if (!instance_->debug_utils()) return;
  const std::shared_lock lists_lock(loader_lists_mutex());
  instance_->functions().end_label(commands);
}

MemoryStatistics Device::memory() const {
  const std::scoped_lock lock(memory_mutex_);
  return memory_;
}

void Device::reset_peaks() {
  const std::scoped_lock lock(memory_mutex_);
  memory_.device.peak_bytes = memory_.device.bytes;
  memory_.host.peak_bytes = memory_.host.bytes;
}

void Device::count_allocated(bool on_device, uint64_t bytes) {
  const std::scoped_lock lock(memory_mutex_);
  MemoryUse& use = on_device ? memory_.device : memory_.host;
  use.bytes += bytes;
  use.peak_bytes = std::max(use.peak_bytes, use.bytes);
  ++memory_.buffers_made;
}

void Device::count_freed(bool on_device, uint64_t bytes) {
  const std::scoped_lock lock(memory_mutex_);
  (on_device ? memory_.device : memory_.host).bytes -= bytes;
}

uint64_t Device::allocations() const {
  VmaTotalStatistics statistics{};
  vmaCalculateStatistics(allocator_, &statistics);
  return statistics.total.statistics.allocationCount;
}

std::vector<HeapBudget> Device::heap_budgets() const {
  std::array<VmaBudget, VK_MAX_MEMORY_HEAPS> budgets{};
  vmaGetHeapBudgets(allocator_, budgets.data());
  std::vector<HeapBudget> out;
  for (size_t i = 0; i < capabilities_.heaps.size() && i < budgets.size(); ++i) {
    out.push_back({budgets[i].usage, budgets[i].budget});
  }
  return out;
}

}  // namespace vitrine

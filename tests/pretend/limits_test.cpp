// What lies beyond a make-believe device's limits is an error there, whatever the driver below could do: the
// validation layer is told of the limits, and the layer sees what can go past it.
#include <volk.h>

#include <array>
#include <catch2/catch_test_macros.hpp>

#include "runtime/graph/bound_dispatch.h"
#include "runtime/vk/facts/snapshot.h"
#include "runtime/vk/memory.h"
#include "tests/pretend/pretend_device.h"
#include "tests/support/spirv_builder.h"

namespace vitrine::test {
namespace {

VkPipelineLayout make_layout(Device& device, uint32_t push_bytes, uint32_t sets = 0) {
  VkDescriptorSetLayoutCreateInfo set_info{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  VkDescriptorSetLayout set = VK_NULL_HANDLE;
  REQUIRE(device.vk().vkCreateDescriptorSetLayout(device.handle(), &set_info, nullptr, &set) == VK_SUCCESS);
  const std::vector<VkDescriptorSetLayout> all(sets, set);
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes};
  VkPipelineLayoutCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = sets;
  info.pSetLayouts = all.data();
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  REQUIRE(device.vk().vkCreatePipelineLayout(device.handle(), &info, nullptr, &layout) == VK_SUCCESS);
  device.vk().vkDestroyDescriptorSetLayout(device.handle(), set, nullptr);
  return layout;
}

}  // namespace

TEST_CASE("push constants and descriptor sets beyond the limits are told of twice") {
  const OpenedDevice opened = open_pretended("least");
  Device& device = *opened.device;
  const auto told_of = [&](uint32_t push_bytes, uint32_t sets) {
    device.vk().vkDestroyPipelineLayout(device.handle(), make_layout(device, push_bytes, sets), nullptr);
    const auto told = opened.messages->take();
    const size_t ours = count_of(told, "pretend-pipeline-layout");
    CHECK((told.size() > ours) == (ours > 0));  // the validation layer says so as well
    return ours;
  };
  CHECK(told_of(128, 4) == 0);
  CHECK(told_of(132, 4) == 1);
  CHECK(told_of(128, 5) == 1);
}

TEST_CASE("a pipeline that isn't made for dispatches in parts is told of") {
  const OpenedDevice opened = open_pretended("least");
  const Device& device = *opened.device;
  using namespace spirv;
  SpirvBuilder empty;
  constexpr uint32_t shader = 1, logical = 0, glsl450 = 1, compute = 5, local_size = 17, none = 0;
  enum : uint32_t { main = 1, nothing, procedure, label };
  empty.op(OpCapability, {shader}).op(14, {logical, glsl450});  // OpMemoryModel
  empty.text_op(OpEntryPoint, {compute, main}, "main").op(OpExecutionMode, {main, local_size, 1, 1, 1});
  empty.op(OpTypeVoid, {nothing}).op(OpTypeFunction, {procedure, nothing});
  empty.op(OpFunction, {nothing, main, none, procedure}).op(OpLabel, {label}).op(OpReturn, {});
  empty.op(OpFunctionEnd, {});
  VkShaderModuleCreateInfo module_info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_info.codeSize = empty.words().size() * sizeof(uint32_t);
  module_info.pCode = empty.words().data();
  VkShaderModule module = VK_NULL_HANDLE;
  const VolkDeviceTable& vk = opened.device->vk();
  REQUIRE(vk.vkCreateShaderModule(device.handle(), &module_info, nullptr, &module) == VK_SUCCESS);
  const VkPipelineLayout layout = make_layout(*opened.device, 16);
  const auto told_of = [&](VkPipelineCreateFlags flags) {
    VkComputePipelineCreateInfo info{.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.flags = flags;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module;
    info.stage.pName = "main";
    info.layout = layout;
    VkPipeline pipeline = VK_NULL_HANDLE;
    CHECK(vk.vkCreateComputePipelines(device.handle(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline) ==
          VK_SUCCESS);
    vk.vkDestroyPipeline(device.handle(), pipeline, nullptr);
    return count_of(opened.messages->take(), "pretend-pipeline-in-parts");
  };
  CHECK(told_of(VK_PIPELINE_CREATE_DISPATCH_BASE_BIT) == 0);
  CHECK(told_of(0) == 1);
  vk.vkDestroyPipelineLayout(device.handle(), layout, nullptr);
  vk.vkDestroyShaderModule(device.handle(), module, nullptr);
}

TEST_CASE("descriptors that begin anywhere are told of") {
  const OpenedDevice opened = open_pretended("least");
  Device& device = *opened.device;
  const Buffer buffer(device, BufferKind::device, 4096, "buffer");
  const VkDescriptorSetLayoutBinding binding{0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                             VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set_info{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set_info.bindingCount = 1;
  set_info.pBindings = &binding;
  VkDescriptorSetLayout layout = VK_NULL_HANDLE;
  REQUIRE(device.vk().vkCreateDescriptorSetLayout(device.handle(), &set_info, nullptr, &layout) ==
          VK_SUCCESS);
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
  VkDescriptorPoolCreateInfo pool_info{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool_info.maxSets = 1;
  pool_info.poolSizeCount = 1;
  pool_info.pPoolSizes = &size;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  REQUIRE(device.vk().vkCreateDescriptorPool(device.handle(), &pool_info, nullptr, &pool) == VK_SUCCESS);
  VkDescriptorSetAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocate.descriptorPool = pool;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  REQUIRE(device.vk().vkAllocateDescriptorSets(device.handle(), &allocate, &set) == VK_SUCCESS);
  const auto told_of = [&](uint64_t offset) {
    const VkDescriptorBufferInfo info{buffer.handle(), offset, 64};
    VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set;
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &info;
    device.vk().vkUpdateDescriptorSets(device.handle(), 1, &write, 0, nullptr);
    return count_of(opened.messages->take(), "pretend-descriptor");
  };
  CHECK(told_of(256) == 0);
  CHECK(told_of(32) == 1);
  device.vk().vkDestroyDescriptorPool(device.handle(), pool, nullptr);
  device.vk().vkDestroyDescriptorSetLayout(device.handle(), layout, nullptr);
}

TEST_CASE("the queues are one behind several: those that only copy, and those that compute") {
  const OpenedDevice opened = open_pretended("discrete_card");
  const InstanceFunctions& functions = opened.instance->functions();
  const VkPhysicalDevice physical = opened.device->physical();
  const std::vector<VkQueueFamilyProperties> families = queue_families(functions, physical);
  REQUIRE(families.size() == 2);
  CHECK(families[0].queueFlags == VK_QUEUE_TRANSFER_BIT);
  CHECK((families[1].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0);
  CHECK(choose_queue_family(families) == 1u);

  const std::array<float, 2> priorities{1, 1};
  std::array<VkDeviceQueueCreateInfo, 2> queues{};
  for (uint32_t i = 0; i < queues.size(); ++i) {
    queues[i].sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queues[i].queueFamilyIndex = i;
    queues[i].queueCount = families[i].queueCount;
    queues[i].pQueuePriorities = priorities.data();
  }
  VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.queueCreateInfoCount = 2;
  info.pQueueCreateInfos = queues.data();
  VkDevice device = VK_NULL_HANDLE;
  REQUIRE(functions.create_device(physical, &info, nullptr, &device) == VK_SUCCESS);
  VolkDeviceTable vk{};
  volkLoadDeviceTable(&vk, device);
  std::array<VkQueue, 3> all{};
  vk.vkGetDeviceQueue(device, 0, 0, &all[0]);
  vk.vkGetDeviceQueue(device, 0, 1, &all[1]);
  vk.vkGetDeviceQueue(device, 1, 0, &all[2]);
  CHECK(all[0] != all[1]);
  CHECK(all[0] != all[2]);
  for (const VkQueue queue : all) {
    CHECK(vk.vkQueueSubmit(queue, 0, nullptr, VK_NULL_HANDLE) == VK_SUCCESS);
    CHECK(vk.vkQueueWaitIdle(queue) == VK_SUCCESS);
  }
  VkQueue again = VK_NULL_HANDLE;
  vk.vkGetDeviceQueue(device, 0, 1, &again);
  CHECK(again == all[1]);
  vk.vkDestroyDevice(device, nullptr);
  opened.require_silence();

  // More queues than there are aren't given.
  queues[1].queueCount = 2;
  CHECK(functions.create_device(physical, &info, nullptr, &device) == VK_ERROR_INITIALIZATION_FAILED);
}

}  // namespace vitrine::test

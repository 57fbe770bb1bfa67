#include "runtime/vk/pipeline.h"

#include <volk.h>

#include <bit>
#include <string>

#include "runtime/util/error.h"
#include "runtime/vk/device.h"
#include "runtime/vk/result.h"
#include "runtime/vk/shared_memory.h"
#include "runtime/vk/specialize.h"

namespace vitrine {
namespace {

std::string text_of(const std::array<uint32_t, 3>& size) {
  return std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]);
}

// Collects what all checks need to complain.
class PipelineCheck {
 public:
  PipelineCheck(const Capabilities& device, const Reflection& module, const PipelineRequest& request)
      : device_(device), module_(module), request_(request) {}

  void run() const {
    check_needs();
    check_bindings();
    check_push_constants();
    check_constants();
    check_workgroup();
    check_shared_memory();
    if (request_.subgroup_size != 0) check_subgroup_size();
  }

 private:
  void require(bool condition, const std::string& what) const {
    if (condition) return;
    throw Error(ErrorCode::failed, "shader '" + std::string(request_.shader->shader) + "', variant '" +
                                       std::string(request_.shader->variant) + "': " + what);
  }

  void check_needs() const {
    const ModuleNeeds module = needs_of(module_);
    require(module.unknown.empty(),
            "it declares SPIR-V capability " +
                (module.unknown.empty() ? "" : std::to_string(module.unknown.front())) +
                ", which is never enabled");
    const Need needs = module.needs | request_.shader->needs;
    require(device_.supports(needs),
            "it needs " + to_string(needs) + ", device '" + device_.name + "' has " + to_string(device_.has));
    require((module.subgroup_operations & ~device_.subgroup_operations) == 0,
            "it uses subgroup operations that device '" + device_.name + "' lacks");
  }

  void check_bindings() const {
    const std::vector<ReflectedBinding>& bindings = module_.bindings;
    const uint32_t expected = request_.shader->bind == BindMode::descriptors ? request_.operands : 0;
    require(bindings.size() == expected, "it has " + std::to_string(bindings.size()) + " bindings, " +
                                             std::to_string(expected) + " operands are bound");
    for (uint32_t i = 0; i < bindings.size(); ++i) {
      const ReflectedBinding& binding = bindings[i];
      require(binding.set == 0 && binding.binding == i, "binding " + std::to_string(i) + " expected, set " +
                                                            std::to_string(binding.set) + " binding " +
                                                            std::to_string(binding.binding) + " found");
      require(binding.storage_buffer, "binding " + std::to_string(i) + " is no storage buffer");
    }
    require(bindings.size() <= device_.max_storage_buffers,
            "it has " + std::to_string(bindings.size()) + " bindings, device '" + device_.name + "' takes " +
                std::to_string(device_.max_storage_buffers));
    if (request_.shader->bind == BindMode::addresses) {
      require(request_.shader->access.size() == request_.operands,
              "it declares access to " + std::to_string(request_.shader->access.size()) + " addresses, " +
                  std::to_string(request_.operands) + " are given");
    }
  }

  void check_push_constants() const {
    const uint32_t given = push_bytes_of(request_);
    require(module_.push_bytes == given, "its push constants take " + std::to_string(module_.push_bytes) +
                                             " bytes, " + std::to_string(given) + " are given");
    require(given <= device_.max_push_bytes, "it takes " + std::to_string(given) +
                                                 " bytes of push constants, device '" + device_.name +
                                                 "' has " + std::to_string(device_.max_push_bytes));
  }

  void check_constants() const {
    const std::vector<ReflectedConstant>& constants = module_.constants;
    require(constants.size() == request_.constants.size(),
            "it has " + std::to_string(constants.size()) + " specialization constants, " +
                std::to_string(request_.constants.size()) + " are given");
    for (uint32_t i = 0; i < constants.size(); ++i) {
      require(constants[i].id == i, "specialization constant " + std::to_string(i) + " expected, " +
                                        std::to_string(constants[i].id) + " found");
      require(constants[i].bytes == 4,
              "specialization constant " + std::to_string(i) + " is no 32-bit value");
    }
  }

  void check_workgroup() const {
    const std::array<uint32_t, 3> size = module_.workgroup_size_with(request_.constants);
    uint64_t invocations = 1;
    for (size_t i = 0; i < 3; ++i) {
      require(size[i] >= 1 && size[i] <= device_.max_workgroup_size[i],
              "its workgroup is " + text_of(size) + ", device '" + device_.name + "' allows " +
                  text_of(device_.max_workgroup_size));
      invocations *= size[i];
    }
    require(invocations <= device_.max_workgroup_invocations,
            "its workgroup of " + text_of(size) + " has " + std::to_string(invocations) +
                " invocations, device '" + device_.name + "' allows " +
                std::to_string(device_.max_workgroup_invocations));
  }

  void check_shared_memory() const {
    // Nothing where it can't be counted: then the driver has to say.
    const uint64_t bytes = shared_bytes_of(request_.shader->words, request_.constants).value_or(0);
    require(bytes <= device_.max_shared_bytes, "its workgroup shares " + std::to_string(bytes) +
                                                   " bytes of memory, device '" + device_.name + "' has " +
                                                   std::to_string(device_.max_shared_bytes));
  }

  void check_subgroup_size() const {
    const uint32_t wanted = request_.subgroup_size;
    require(
        device_.supports(Need::subgroup_control) || device_.min_subgroup_size == device_.max_subgroup_size,
        "a subgroup size is asked for, device '" + device_.name + "' can't choose it");
    require(std::has_single_bit(wanted) && wanted >= device_.min_subgroup_size &&
                wanted <= device_.max_subgroup_size,
            "subgroup size " + std::to_string(wanted) + " is asked for, device '" + device_.name + "' has " +
                std::to_string(device_.min_subgroup_size) + " to " +
                std::to_string(device_.max_subgroup_size));
    const std::array<uint32_t, 3> size = module_.workgroup_size_with(request_.constants);
    require(size[0] % wanted == 0, "its workgroup of " + text_of(size) +
                                       " can't be divided into full subgroups of " + std::to_string(wanted));
    const uint64_t subgroups = uint64_t{size[0]} * size[1] * size[2] / wanted;
    require(device_.max_workgroup_subgroups == 0 || subgroups <= device_.max_workgroup_subgroups,
            "its workgroup of " + text_of(size) + " has " + std::to_string(subgroups) +
                " subgroups, device '" + device_.name + "' allows " +
                std::to_string(device_.max_workgroup_subgroups));
  }

  const Capabilities& device_;
  const Reflection& module_;
  const PipelineRequest& request_;
};

DeviceHandle<VkDescriptorSetLayout> make_set_layout(const Device& device, uint32_t operands) {
  std::vector<VkDescriptorSetLayoutBinding> bindings(operands);
  for (uint32_t i = 0; i < operands; ++i) {
    bindings[i] = {.binding = i,
                   .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                   .descriptorCount = 1,
                   .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                   .pImmutableSamplers = nullptr};
  }
  VkDescriptorSetLayoutCreateInfo info{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  info.bindingCount = operands;
  info.pBindings = bindings.data();
  VkDescriptorSetLayout layout = VK_NULL_HANDLE;
  check(device.vk().vkCreateDescriptorSetLayout(device.handle(), &info, nullptr, &layout),
        "vkCreateDescriptorSetLayout");
  return {device.handle(), layout, device.vk().vkDestroyDescriptorSetLayout};
}

DeviceHandle<VkPipelineLayout> make_layout(const Device& device, VkDescriptorSetLayout set,
                                           uint32_t push_bytes) {
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes};
  VkPipelineLayoutCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = set == VK_NULL_HANDLE ? 0 : 1;
  info.pSetLayouts = &set;
  info.pushConstantRangeCount = push_bytes == 0 ? 0 : 1;
  info.pPushConstantRanges = &range;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  check(device.vk().vkCreatePipelineLayout(device.handle(), &info, nullptr, &layout),
        "vkCreatePipelineLayout");
  return {device.handle(), layout, device.vk().vkDestroyPipelineLayout};
}

DeviceHandle<VkShaderModule> make_module(const Device& device, std::span<const uint32_t> words) {
  VkShaderModuleCreateInfo info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = words.size_bytes();
  info.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  check(device.vk().vkCreateShaderModule(device.handle(), &info, nullptr, &module), "vkCreateShaderModule");
  return {device.handle(), module, device.vk().vkDestroyShaderModule};
}

DeviceHandle<VkPipeline> make_pipeline(const Device& device, const PipelineRequest& request,
                                       VkPipelineLayout layout, bool capture) {
  std::vector<uint32_t> specialized;
  if (device.capabilities().ignores_specialization)
    specialized = specialize(request.shader->words, request.constants);
  const DeviceHandle<VkShaderModule> module =
      make_module(device, specialized.empty() ? request.shader->words : specialized);
  std::vector<VkSpecializationMapEntry> entries(request.constants.size());
  for (uint32_t i = 0; i < entries.size(); ++i) entries[i] = {i, i * 4, 4};
  const VkSpecializationInfo specialization{static_cast<uint32_t>(entries.size()), entries.data(),
                                            request.constants.size_bytes(), request.constants.data()};
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup_size{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  subgroup_size.requiredSubgroupSize = request.subgroup_size;

  VkComputePipelineCreateInfo info{.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .pNext = nullptr,
                .flags = 0,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = module.get(),
                .pName = "main",
                .pSpecializationInfo = &specialization};
  const Capabilities& capabilities = device.capabilities();
  if (request.subgroup_size != 0 && capabilities.supports(Need::subgroup_control)) {
    info.stage.flags |= VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    // Where there is one size only, some drivers can't be asked for it.
    if (capabilities.min_subgroup_size != capabilities.max_subgroup_size) info.stage.pNext = &subgroup_size;
  }
  info.layout = layout;
  // For vkCmdDispatchBase, also where no dispatch is cut: NVIDIA's 580.159.04 gives a pipeline with this bit
  // the program of one that was made before of the same code without, with or without a VkPipelineCache, and
  // each part then computes the first one's workgroups.
  info.flags |= VK_PIPELINE_CREATE_DISPATCH_BASE_BIT;
  if (capture) info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result =
      device.vk().vkCreateComputePipelines(device.handle(), request.cache, 1, &info, nullptr, &pipeline);
  if (result != VK_SUCCESS) {
    throw Error(ErrorCode::failed, "shader '" + std::string(request.shader->shader) + "', variant '" +
                                       std::string(request.shader->variant) +
                                       "' can't be compiled by device '" + device.capabilities().name +
                                       "': " + name_of(result));
  }
  return {device.handle(), pipeline, device.vk().vkDestroyPipeline};
}

double to_double(const VkPipelineExecutableStatisticKHR& statistic) {
  switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return statistic.value.b32 ? 1 : 0;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return static_cast<double>(statistic.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      return static_cast<double>(statistic.value.u64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
      return statistic.value.f64;
    default:
      return 0;
  }
}

}  // namespace

uint32_t push_bytes_of(const PipelineRequest& request) {
  const bool pushes_addresses = request.shader->bind == BindMode::addresses;
  return request.params_bytes + (pushes_addresses ? 8 * request.operands : 0);
}

void check_pipeline(const Capabilities& device, const Reflection& module, const PipelineRequest& request) {
  PipelineCheck(device, module, request).run();
}

Pipeline::Pipeline(Device& device, const PipelineRequest& request)
    : device_(&device),
      reflection_(reflect(request.shader->words)),
      push_bytes_(push_bytes_of(request)),
      captured_(request.capture_statistics && device.capabilities().pipeline_statistics) {
  check_pipeline(device.capabilities(), reflection_, request);
  if (request.shader->bind == BindMode::descriptors) set_layout_ = make_set_layout(device, request.operands);
  layout_ = make_layout(device, set_layout_.get(), push_bytes_);
  pipeline_ = make_pipeline(device, request, layout_.get(), captured_);
  device.set_name(VK_OBJECT_TYPE_PIPELINE, pipeline_.get(),
                  std::string(request.shader->shader) + "/" + std::string(request.shader->variant));
}

std::vector<ExecutableStatistics> Pipeline::statistics() const {
  std::vector<ExecutableStatistics> out;
  if (!captured_) return out;
  const VolkDeviceTable& vk = device_->vk();
  VkPipelineInfoKHR pipeline{.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR};
  pipeline.pipeline = pipeline_.get();
  uint32_t count = 0;
  check(vk.vkGetPipelineExecutablePropertiesKHR(device_->handle(), &pipeline, &count, nullptr),
        "vkGetPipelineExecutablePropertiesKHR");
  std::vector<VkPipelineExecutablePropertiesKHR> executables(
      count, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR});
  check(vk.vkGetPipelineExecutablePropertiesKHR(device_->handle(), &pipeline, &count, executables.data()),
        "vkGetPipelineExecutablePropertiesKHR");
  executables.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    VkPipelineExecutableInfoKHR which{.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
    which.pipeline = pipeline_.get();
    which.executableIndex = i;
    uint32_t lines = 0;
    check(vk.vkGetPipelineExecutableStatisticsKHR(device_->handle(), &which, &lines, nullptr),
          "vkGetPipelineExecutableStatisticsKHR");
    std::vector<VkPipelineExecutableStatisticKHR> statistics(
        lines, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
    check(vk.vkGetPipelineExecutableStatisticsKHR(device_->handle(), &which, &lines, statistics.data()),
          "vkGetPipelineExecutableStatisticsKHR");
    statistics.resize(lines);
    ExecutableStatistics entry{executables[i].name, executables[i].subgroupSize, {}};
    for (const auto& statistic : statistics) entry.values.emplace_back(statistic.name, to_double(statistic));
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace vitrine

// Compute pipelines: a shader variant with its specialization constants, checked against what the
// SPIR-V says of itself before a driver sees it.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/vk/handle.h"
#include "runtime/vk/reflection.h"
#include "runtime/vk/shader_table.h"

namespace vitrine {

class Device;

struct PipelineRequest {
  const ShaderVariant* shader = nullptr;
  std::span<const uint32_t> constants;  // values of specialization constants 0..n-1
  uint32_t subgroup_size = 0;           // a size that it must run with, in full subgroups; 0: any
  uint32_t operands = 0;                // buffers bound, or addresses pushed
  uint32_t params_bytes = 0;            // of the parameter struct, without addresses
  VkPipelineCache cache = VK_NULL_HANDLE;
  bool capture_statistics = false;  // for Pipeline::statistics(); ignored where the device has none
};

// Bytes of push constants that a request takes: its addresses, then its parameters.
uint32_t push_bytes_of(const PipelineRequest& request);

// Throws Error(failed), naming shader and variant, when the request doesn't fit the module or the
// module doesn't fit the device. Drivers crash on some of these rather than refuse.
void check_pipeline(const Capabilities& device, const Reflection& module, const PipelineRequest& request);

// What the driver's compiler says of one executable that it made of a pipeline.
struct ExecutableStatistics {
  std::string executable;
  uint32_t subgroup_size = 0;
  std::vector<std::pair<std::string, double>> values;  // in the driver's words
};

class Pipeline {
 public:
  // Pipelines may be created on several threads at once, with the same cache.
  Pipeline(Device& device, const PipelineRequest& request);

  VkPipeline handle() const { return pipeline_.get(); }
  VkPipelineLayout layout() const { return layout_.get(); }
  // Null for BindMode::addresses.
  VkDescriptorSetLayout set_layout() const { return set_layout_.get(); }
  uint32_t push_bytes() const { return push_bytes_; }
  const Reflection& reflection() const { return reflection_; }
  // Empty unless the request captured them and the device has them.
  std::vector<ExecutableStatistics> statistics() const;

 private:
  Device* device_;
  Reflection reflection_;
  uint32_t push_bytes_ = 0;
  bool captured_ = false;
  DeviceHandle<VkDescriptorSetLayout> set_layout_;
  DeviceHandle<VkPipelineLayout> layout_;
  DeviceHandle<VkPipeline> pipeline_;
};

}  // namespace vitrine

// A Vulkan layer that tells what a program's compute pipelines are made of and what the driver's compiler
// says of them, and how they are launched: one JSON line a pipeline, and one a launch, appended to the file
// that VITRINE_CAPTURE names. Whoever wrote the shaders, the figures are made the same way: as the program
// has them, and with none, one and two passes through the main loop (passes.h).
//
// Behind the file's name may stand "+code", for the machine's code, and what compilers are told where passes
// are counted: "+push10=1" that the push constants' member 10 is 1, so that they drop the code for what isn't
// so,
// "+constant9=0" that specialization constant 9 is 0: ncnn reads the loop's length from a push constant then.
// (A compiler that knows it sees that what would follow two passes can't be.)
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "bench/capture/passes.h"
#include "runtime/vk/reflection.h"
#include "runtime/vk/shared_memory.h"

namespace vitrine::capture {
namespace {

using Json = nlohmann::ordered_json;

// clang-format off
#define CAPTURE_NEXT_OF_DEVICE(X) \
  X(vkDestroyDevice) X(vkCreateShaderModule) X(vkDestroyShaderModule) X(vkCreateComputePipelines) \
  X(vkDestroyPipeline) X(vkGetPipelineExecutablePropertiesKHR) X(vkGetPipelineExecutableStatisticsKHR) \
  X(vkGetPipelineExecutableInternalRepresentationsKHR) X(vkSetDebugUtilsObjectNameEXT) X(vkCmdBindPipeline) \
  X(vkCmdPushConstants) X(vkCmdDispatch)
// clang-format on

struct Instance {
  VkInstance handle = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr get = nullptr;
};
struct Device {
  PFN_vkGetDeviceProcAddr get = nullptr;
#define CAPTURE_MEMBER(name) PFN_##name name = nullptr;
  CAPTURE_NEXT_OF_DEVICE(CAPTURE_MEMBER)
#undef CAPTURE_MEMBER
  std::map<VkShaderModule, std::vector<uint32_t>> modules;
};

// By the loader's table, which is an object's first word. Never destroyed: programs may end with devices
// alive.
struct State {
  std::mutex mutex;
  std::map<const void*, Instance> instances;
  std::map<const void*, Device> devices;
  std::map<VkCommandBuffer, VkPipeline> bound;
  std::map<VkCommandBuffer, std::vector<uint32_t>> pushed;
};
State& state() {
  static auto* kept = new State;
  return *kept;
}
const void* key_of(const void* object) { return *static_cast<const void* const*>(object); }
Instance& instance_of(const void* object) {
  const std::lock_guard lock(state().mutex);
  return state().instances.at(key_of(object));
}
Device& device_of(const void* object) {
  const std::lock_guard lock(state().mutex);
  return state().devices.at(key_of(object));
}

// The file to write, whether the machine's code is wanted, and what compilers are told where passes are
// counted: specialization constants, and members of the push constants.
struct Wish {
  std::string path = "/dev/null";
  bool code = false;
  std::map<uint32_t, uint32_t> constants, pushed;
};
const Wish& wish() {
  static const Wish* made = [] {
    auto* one = new Wish;
    const char* value = std::getenv("VITRINE_CAPTURE");
    std::istringstream parts(value ? value : "");
    if (std::string path; std::getline(parts, path, '+')) one->path = path;
    for (std::string part; std::getline(parts, part, '+');) {
      uint32_t id = 0, known = 0;
      if (std::sscanf(part.c_str(), "constant%u=%u", &id, &known) == 2) one->constants[id] = known;
      if (std::sscanf(part.c_str(), "push%u=%u", &id, &known) == 2) one->pushed[id] = known;
      one->code |= part == "code";
    }
    return one;
  }();
  return *made;
}

void write_line(const Json& line) {
  static auto* file = new std::ofstream(wish().path, std::ios::app);
  const std::lock_guard lock(state().mutex);
  *file << line.dump() << std::endl;  // programs may end without a word
}

template <typename Info>
const Info* find_in_chain(const void* chain, VkStructureType type) {
  for (auto* at = static_cast<const VkBaseInStructure*>(chain); at != nullptr; at = at->pNext) {
    if (at->sType == type) return reinterpret_cast<const Info*>(at);
  }
  return nullptr;
}
// The loader's link to whoever lies below.
template <typename Info>
Info* find_link(const void* chain, VkStructureType type) {
  const auto* info = find_in_chain<Info>(chain, type);
  while (info && info->function != VK_LAYER_LINK_INFO) info = find_in_chain<Info>(info->pNext, type);
  return const_cast<Info*>(info);
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info,
                                               const VkAllocationCallbacks* callbacks, VkInstance* handle) {
  auto* link =
      find_link<VkLayerInstanceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get(VK_NULL_HANDLE, "vkCreateInstance"));
  const VkResult result = create(info, callbacks, handle);
  if (result != VK_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  state().instances[key_of(*handle)] = {*handle, get};
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* callbacks, VkDevice* handle) {
  const Instance& instance = instance_of(physical);
  auto* link = find_link<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr get_of_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;

  // Figures are asked for even if the program doesn't.
  std::vector<const char*> extensions(info->ppEnabledExtensionNames,
                                      info->ppEnabledExtensionNames + info->enabledExtensionCount);
  VkDeviceCreateInfo wanted = *info;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR figures{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
      .pNext = const_cast<void*>(info->pNext),
      .pipelineExecutableInfo = VK_TRUE};
  if (!find_in_chain<VkBaseInStructure>(info->pNext, figures.sType)) {
    extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    wanted.pNext = &figures;
    wanted.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
    wanted.ppEnabledExtensionNames = extensions.data();
  }
  const auto create =
      reinterpret_cast<PFN_vkCreateDevice>(get_of_instance(instance.handle, "vkCreateDevice"));
  const VkResult result = create(physical, &wanted, callbacks, handle);
  if (result != VK_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  Device& device = state().devices[key_of(*handle)];
  device.get = get;
#define CAPTURE_LOAD(name) device.name = reinterpret_cast<PFN_##name>(get(*handle, #name));
  CAPTURE_NEXT_OF_DEVICE(CAPTURE_LOAD)
#undef CAPTURE_LOAD
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice handle, const VkShaderModuleCreateInfo* info,
                                             const VkAllocationCallbacks* callbacks, VkShaderModule* module) {
  Device& device = device_of(handle);
  const VkResult result = device.vkCreateShaderModule(handle, info, callbacks, module);
  if (result != VK_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  device.modules[*module].assign(info->pCode, info->pCode + info->codeSize / 4);
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL destroy_module(VkDevice handle, VkShaderModule module,
                                          const VkAllocationCallbacks* callbacks) {
  Device& device = device_of(handle);
  {
    const std::lock_guard lock(state().mutex);
    device.modules.erase(module);
  }
  device.vkDestroyShaderModule(handle, module, callbacks);
}

double number_of(const VkPipelineExecutableStatisticKHR& one) {
  switch (one.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return one.value.b32;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return static_cast<double>(one.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      return static_cast<double>(one.value.u64);
    default:
      return one.value.f64;
  }
}

// What the compiler shows of an executable, by its names: intermediate forms, and assembly.
Json code_of(const Device& device, VkDevice handle, const VkPipelineExecutableInfoKHR& which) {
  Json out = Json::object();
  uint32_t count = 0;
  device.vkGetPipelineExecutableInternalRepresentationsKHR(handle, &which, &count, nullptr);
  std::vector<VkPipelineExecutableInternalRepresentationKHR> texts(
      count, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR});
  device.vkGetPipelineExecutableInternalRepresentationsKHR(handle, &which, &count, texts.data());
  std::vector<std::string> kept(count);
  for (uint32_t i = 0; i < count; ++i) {
    kept[i].resize(texts[i].dataSize);
    texts[i].pData = kept[i].data();
  }
  device.vkGetPipelineExecutableInternalRepresentationsKHR(handle, &which, &count, texts.data());
  for (uint32_t i = 0; i < count; ++i) {
    if (texts[i].isText) out[texts[i].name] = kept[i].c_str();
  }
  return out;
}

// The compiler's figures of a pipeline: a list of executables.
Json figures_of(const Device& device, VkDevice handle, VkPipeline pipeline) {
  Json out = Json::array();
  const VkPipelineInfoKHR whole{.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline};
  uint32_t count = 0;
  if (device.vkGetPipelineExecutablePropertiesKHR(handle, &whole, &count, nullptr) != VK_SUCCESS) return out;
  std::vector<VkPipelineExecutablePropertiesKHR> executables(
      count, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR});
  device.vkGetPipelineExecutablePropertiesKHR(handle, &whole, &count, executables.data());
  for (uint32_t i = 0; i < count; ++i) {
    const VkPipelineExecutableInfoKHR which{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline, .executableIndex = i};
    uint32_t values = 0;
    device.vkGetPipelineExecutableStatisticsKHR(handle, &which, &values, nullptr);
    std::vector<VkPipelineExecutableStatisticKHR> statistics(
        values, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
    device.vkGetPipelineExecutableStatisticsKHR(handle, &which, &values, statistics.data());
    Json words = Json::object();
    for (const auto& one : statistics) words[one.name] = number_of(one);
    out.push_back(
        {{"name", executables[i].name}, {"subgroup", executables[i].subgroupSize}, {"statistics", words}});
    if (wish().code) out.back()["code"] = code_of(device, handle, which);
  }
  return out;
}

// Compiles a pipeline once more, from these words, and gives its figures.
Json compile(const Device& device, VkDevice handle, const VkComputePipelineCreateInfo& info,
             std::span<const uint32_t> words) {
  VkShaderModuleCreateInfo code{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  code.codeSize = words.size_bytes();
  code.pCode = words.data();
  VkComputePipelineCreateInfo again = info;
  again.flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  if (wish().code) again.flags |= VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  again.basePipelineHandle = VK_NULL_HANDLE;
  if (device.vkCreateShaderModule(handle, &code, nullptr, &again.stage.module) != VK_SUCCESS) return nullptr;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result =
      device.vkCreateComputePipelines(handle, VK_NULL_HANDLE, 1, &again, nullptr, &pipeline);
  device.vkDestroyShaderModule(handle, again.stage.module, nullptr);
  if (result != VK_SUCCESS) return nullptr;
  Json figures = figures_of(device, handle, pipeline);
  device.vkDestroyPipeline(handle, pipeline, nullptr);
  return figures;
}

// Specialization constants, some of them with other values of 32 bits.
class Respecialized {
 public:
  Respecialized(const VkSpecializationInfo& constants, const std::map<uint32_t, uint32_t>& values)
      : data_(static_cast<const char*>(constants.pData), constants.dataSize), constants_(constants) {
    for (uint32_t i = 0; i < constants.mapEntryCount; ++i) {
      const VkSpecializationMapEntry& entry = constants.pMapEntries[i];
      const auto found = values.find(entry.constantID);
      if (found != values.end() && entry.size == 4) std::memcpy(&data_[entry.offset], &found->second, 4);
    }
    constants_.pData = data_.data();
  }
  Respecialized(const Respecialized&) = delete;
  Respecialized& operator=(const Respecialized&) = delete;
  const VkSpecializationInfo* get() const { return &constants_; }

 private:
  std::string data_;
  VkSpecializationInfo constants_;
};

Json describe(const Device& device, VkDevice handle, const VkComputePipelineCreateInfo& info,
              const std::vector<uint32_t>& words) {
  std::map<uint32_t, uint32_t> given;
  if (const VkSpecializationInfo* constants = info.stage.pSpecializationInfo) {
    for (uint32_t i = 0; i < constants->mapEntryCount; ++i) {
      const VkSpecializationMapEntry& entry = constants->pMapEntries[i];
      if (entry.size != 4) continue;
      std::memcpy(&given[entry.constantID], static_cast<const char*>(constants->pData) + entry.offset, 4);
    }
  }
  const Reflection module = reflect(words);
  std::vector<uint32_t> values;
  Json named = Json::object();
  for (const ReflectedConstant& constant : module.constants) {
    if (constant.id > 1000) break;
    if (constant.id >= values.size()) values.resize(constant.id + 1, 0);
    const auto found = given.find(constant.id);
    values[constant.id] =
        found == given.end() ? static_cast<uint32_t>(constant.default_value) : found->second;
    named[std::to_string(constant.id)] = values[constant.id];
  }
  Json line{{"constants", named}, {"workgroup", module.workgroup_size_with(values)}};
  if (const auto bytes = shared_bytes_of(words, values)) line["shared_bytes"] = *bytes;
  line["figures"] = compile(device, handle, info, words);
  const std::optional<MainLoop> loop = main_loop_of(words);
  if (!loop) return line;
  line["loop"] = {
      {"selections", loop->selections}, {"inner_loops", loop->inner_loops}, {"barrier", loop->has_barrier}};
  VkComputePipelineCreateInfo counted = info;
  std::optional<Respecialized> others;
  if (info.stage.pSpecializationInfo) {
    counted.stage.pSpecializationInfo =
        others.emplace(*info.stage.pSpecializationInfo, wish().constants).get();
  }
  const std::vector<uint32_t> known = with_push_constants(words, wish().pushed);
  if (!wish().pushed.empty()) line["known"] = compile(device, handle, counted, known);
  for (const uint32_t passes : {0, 1, 2}) {
    line["passes"].push_back(compile(device, handle, counted, with_passes(known, *loop, passes)));
  }
  return line;
}

VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice handle, VkPipelineCache cache, uint32_t count,
                                                const VkComputePipelineCreateInfo* infos,
                                                const VkAllocationCallbacks* callbacks,
                                                VkPipeline* pipelines) {
  Device& device = device_of(handle);
  const VkResult result = device.vkCreateComputePipelines(handle, cache, count, infos, callbacks, pipelines);
  if (result != VK_SUCCESS) return result;
  for (uint32_t i = 0; i < count; ++i) {
    std::vector<uint32_t> words;
    {
      const std::lock_guard lock(state().mutex);
      words = device.modules[infos[i].stage.module];
    }
    const auto id = reinterpret_cast<uint64_t>(pipelines[i]);
    try {
      Json line{{"pipeline", id}};
      line.update(describe(device, handle, infos[i], words));
      write_line(line);
    } catch (const std::exception& error) {
      write_line({{"pipeline", id}, {"error", error.what()}});
    }
  }
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL set_name(VkDevice handle, const VkDebugUtilsObjectNameInfoEXT* info) {
  if (info->objectType == VK_OBJECT_TYPE_PIPELINE && info->pObjectName) {
    write_line({{"pipeline", info->objectHandle}, {"name", info->pObjectName}});
  }
  return device_of(handle).vkSetDebugUtilsObjectNameEXT(handle, info);
}

// What is launched, and how often: programs make pipelines that they then don't use.
VKAPI_ATTR void VKAPI_CALL bind(VkCommandBuffer commands, VkPipelineBindPoint point, VkPipeline pipeline) {
  if (point == VK_PIPELINE_BIND_POINT_COMPUTE) {
    const std::lock_guard lock(state().mutex);
    state().bound[commands] = pipeline;
  }
  device_of(commands).vkCmdBindPipeline(commands, point, pipeline);
}

VKAPI_ATTR void VKAPI_CALL push(VkCommandBuffer commands, VkPipelineLayout layout, VkShaderStageFlags stages,
                                uint32_t offset, uint32_t size, const void* values) {
  {
    const std::lock_guard lock(state().mutex);
    std::vector<uint32_t>& pushed = state().pushed[commands];
    pushed.resize(std::max<size_t>(pushed.size(), (offset + size) / 4));
    std::memcpy(pushed.data() + offset / 4, values, size);  // both are multiples of four
  }
  device_of(commands).vkCmdPushConstants(commands, layout, stages, offset, size, values);
}

VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
  VkPipeline pipeline = VK_NULL_HANDLE;
  std::vector<uint32_t> pushed;
  {
    const std::lock_guard lock(state().mutex);
    pipeline = state().bound[commands];
    pushed = state().pushed[commands];
  }
  write_line({{"pipeline", reinterpret_cast<uint64_t>(pipeline)}, {"groups", {x, y, z}}, {"pushed", pushed}});
  device_of(commands).vkCmdDispatch(commands, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice handle, const VkAllocationCallbacks* callbacks) {
  if (handle == VK_NULL_HANDLE) return;
  const void* key = key_of(handle);
  device_of(handle).vkDestroyDevice(handle, callbacks);
  const std::lock_guard lock(state().mutex);
  state().devices.erase(key);
}

PFN_vkVoidFunction VKAPI_CALL get_instance_function(VkInstance handle, const char* name);
PFN_vkVoidFunction VKAPI_CALL get_device_function(VkDevice handle, const char* name);

// Compiles only where the function is what Vulkan calls under that name.
#define CAPTURE_HOOK(name, function) \
  {#name, reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_##name>(&function))}

PFN_vkVoidFunction find_hook(std::string_view name) {
  static const std::map<std::string_view, PFN_vkVoidFunction> hooks{
      CAPTURE_HOOK(vkCreateInstance, create_instance),
      CAPTURE_HOOK(vkCreateDevice, create_device),
      CAPTURE_HOOK(vkGetInstanceProcAddr, get_instance_function),
      CAPTURE_HOOK(vkGetDeviceProcAddr, get_device_function),
      CAPTURE_HOOK(vkDestroyDevice, destroy_device),
      CAPTURE_HOOK(vkCreateShaderModule, create_module),
      CAPTURE_HOOK(vkDestroyShaderModule, destroy_module),
      CAPTURE_HOOK(vkCreateComputePipelines, create_pipelines),
      CAPTURE_HOOK(vkCmdBindPipeline, bind),
      CAPTURE_HOOK(vkCmdPushConstants, push),
      CAPTURE_HOOK(vkCmdDispatch, dispatch),
      CAPTURE_HOOK(vkSetDebugUtilsObjectNameEXT, set_name)};
  const auto found = hooks.find(name);
  return found == hooks.end() ? nullptr : found->second;
}

PFN_vkVoidFunction VKAPI_CALL get_instance_function(VkInstance handle, const char* name) {
  const PFN_vkVoidFunction ours = find_hook(name);
  if (handle == VK_NULL_HANDLE) return ours;
  const PFN_vkVoidFunction below = instance_of(handle).get(handle, name);
  return below != nullptr && ours != nullptr ? ours : below;
}

PFN_vkVoidFunction VKAPI_CALL get_device_function(VkDevice handle, const char* name) {
  const PFN_vkVoidFunction below = device_of(handle).get(handle, name);
  const PFN_vkVoidFunction ours = find_hook(name);
  return below != nullptr && ours != nullptr ? ours : below;
}

}  // namespace
}  // namespace vitrine::capture

extern "C" __attribute__((visibility("default"))) VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* answer) {
  if (answer->loaderLayerInterfaceVersion < CURRENT_LOADER_LAYER_INTERFACE_VERSION) {
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  answer->loaderLayerInterfaceVersion = CURRENT_LOADER_LAYER_INTERFACE_VERSION;
  answer->pfnGetInstanceProcAddr = vitrine::capture::get_instance_function;
  answer->pfnGetDeviceProcAddr = vitrine::capture::get_device_function;
  answer->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

#include "runtime/vk/instance.h"

#include <volk.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/vk/facts/quirks.h"
#include "runtime/vk/facts/snapshot.h"
#include "runtime/vk/result.h"

namespace vitrine {
namespace {

constexpr const char* validation_layer = "VK_LAYER_KHRONOS_validation";
// Older layers don't know what a wait for a timeline semaphore's value orders, and report hazards that are
// none (KhronosGroup/Vulkan-ValidationLayers, issue 7457, of 1.3.275). This is the oldest whose checks were
// seen to be right.
constexpr uint32_t first_layer_that_checks_synchronization = VK_MAKE_API_VERSION(0, 1, 4, 309);
constexpr std::string_view install_hint =
    "install a Vulkan driver, on Debian and Ubuntu: apt install libvulkan1 mesa-vulkan-drivers";

// Loads the loader once in a process. volk's globals stay as the first instance sets them: only
// vkGetDeviceProcAddr among them is used afterwards, which the loader makes fit every device.
void load_loader() {
  static std::mutex mutex;
  static bool loaded = false;
  const std::scoped_lock lock(mutex);
  if (loaded) return;
  if (volkInitialize() != VK_SUCCESS) {
    throw Error(ErrorCode::no_device,
                "no Vulkan loader (libvulkan.so.1) is installed; " + std::string(install_hint));
  }
  loaded = true;
}

void load_volk_globals(VkInstance instance) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  if (vkGetDeviceProcAddr == nullptr) volkLoadInstanceOnly(instance);
}

// The variable that limits the loader to some drivers, when one is set; part of an error's sentence.
std::string driver_variable() {
  for (const char* name : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') {
      return " (" + std::string(name) + "=" + value + " limits it to those drivers)";
    }
  }
  return "";
}

Error no_driver() {
  return Error(ErrorCode::no_device, "the Vulkan loader finds no driver for any device" + driver_variable() +
                                         "; " + std::string(install_hint));
}

std::vector<VkExtensionProperties> instance_extensions(const char* layer) {
  uint32_t count = 0;
  check(vkEnumerateInstanceExtensionProperties(layer, &count, nullptr),
        "vkEnumerateInstanceExtensionProperties");
  std::vector<VkExtensionProperties> listed(count);
  check(vkEnumerateInstanceExtensionProperties(layer, &count, listed.data()),
        "vkEnumerateInstanceExtensionProperties");
  listed.resize(count);
  return listed;
}

bool lists(const std::vector<VkExtensionProperties>& extensions, std::string_view name) {
  return std::ranges::any_of(extensions, [&](const auto& entry) { return entry.extensionName == name; });
}

// The version of Vulkan that the layer was made for; nothing where it isn't installed.
std::optional<uint32_t> version_of_layer(std::string_view name) {
  uint32_t count = 0;
  check(vkEnumerateInstanceLayerProperties(&count, nullptr), "vkEnumerateInstanceLayerProperties");
  std::vector<VkLayerProperties> listed(count);
  check(vkEnumerateInstanceLayerProperties(&count, listed.data()), "vkEnumerateInstanceLayerProperties");
  listed.resize(count);
  for (const VkLayerProperties& layer : listed) {
    if (layer.layerName == name) return layer.specVersion;
  }
  return std::nullopt;
}

std::string text_of_version(uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." + std::to_string(VK_API_VERSION_MINOR(version)) +
         "." + std::to_string(VK_API_VERSION_PATCH(version));
}

void print_to_stderr(const ValidationMessage& message) {
  const char* severity = message.severity == Severity::error     ? "error"
                         : message.severity == Severity::warning ? "warning"
                                                                 : "note";
  std::fprintf(stderr, "vulkan %s: %s: %s\n", severity, message.id.c_str(), message.text.c_str());
}

// The layer's configuration in both its languages; it must outlive vkCreateInstance.
class LayerConfiguration {
 public:
  LayerConfiguration(Validation mode, bool checks_synchronization, bool has_settings)
      : has_settings_(has_settings) {
    const bool on_the_host = mode == Validation::sync;
    set("validate_core", on_the_host);
    set("check_shaders", on_the_host);
    set("validate_sync", checks_synchronization);
    set("gpuav_enable", !on_the_host);
    // A repeated message counts each time: whoever captures them must not miss the eleventh.
    set("enable_message_limit", false);
    settings_info_.settingCount = static_cast<uint32_t>(used_);
    settings_info_.pSettings = settings_.data();
    if (checks_synchronization) enabled_ = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
    if (!on_the_host) {
      enabled_ = {VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT,
                  VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_RESERVE_BINDING_SLOT_EXT};
      disabled_ = {VK_VALIDATION_FEATURE_DISABLE_CORE_CHECKS_EXT};
    }
    features_info_.enabledValidationFeatureCount = static_cast<uint32_t>(enabled_.size());
    features_info_.pEnabledValidationFeatures = enabled_.data();
    features_info_.disabledValidationFeatureCount = static_cast<uint32_t>(disabled_.size());
    features_info_.pDisabledValidationFeatures = disabled_.data();
  }
  LayerConfiguration(const LayerConfiguration&) = delete;
  LayerConfiguration& operator=(const LayerConfiguration&) = delete;

  void add_to(StructureChain& chain) {
    if (has_settings_) {
      chain.add(settings_info_);
    } else {
      chain.add(features_info_);
    }
  }

 private:
  void set(const char* name, bool value) {
    values_[used_] = value ? VK_TRUE : VK_FALSE;
    settings_[used_] = {validation_layer, name, VK_LAYER_SETTING_TYPE_BOOL32_EXT, 1, &values_[used_]};
    ++used_;
  }

  bool has_settings_;
  size_t used_ = 0;
  std::array<VkBool32, 8> values_{};
  std::array<VkLayerSettingEXT, 8> settings_{};
  VkLayerSettingsCreateInfoEXT settings_info_{.sType = VK_STRUCTURE_TYPE_LAYER_SETTINGS_CREATE_INFO_EXT};
  std::vector<VkValidationFeatureEnableEXT> enabled_;
  std::vector<VkValidationFeatureDisableEXT> disabled_;
  VkValidationFeaturesEXT features_info_{.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
};

}  // namespace

std::shared_mutex& loader_lists_mutex() {
  static std::shared_mutex mutex;
  return mutex;
}

// Where receive_message delivers. It outlives the VkInstance: layers still speak while it is destroyed.
struct MessageTarget {
  std::mutex mutex;
  std::function<void(const ValidationMessage&)> sink;
};

namespace {

VKAPI_ATTR VkBool32 VKAPI_CALL receive_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                               VkDebugUtilsMessageTypeFlagsEXT,
                                               const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  MessageTarget& target = *static_cast<MessageTarget*>(user);
  ValidationMessage message;
  message.severity = severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT     ? Severity::error
                     : severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT ? Severity::warning
                                                                                   : Severity::info;
  if (data->pMessageIdName != nullptr) message.id = data->pMessageIdName;
  if (data->pMessage != nullptr) message.text = data->pMessage;
  const std::scoped_lock lock(target.mutex);
  target.sink(message);
  return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info(MessageTarget& target) {
  return {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
          .pNext = nullptr,
          .flags = 0,
          .messageSeverity =
              VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
          // Not GENERAL: the loader uses it to complain about drivers that don't concern us.
          .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
          .pfnUserCallback = receive_message,
          .pUserData = &target};
}

}  // namespace

bool ValidationMessage::about_setup() const {
  if (severity == Severity::error) return false;
  // GPU-assisted validation turns features on that it needs, adjusts limits, and says so.
  return id.starts_with("WARNING-Setting") || text.find("Internal Warning") != std::string::npos;
}

Validation validation_from_environment() {
  const char* variable = std::getenv("VITRINE_VALIDATE");
  const std::string_view value = variable == nullptr ? "" : variable;
  if (value.empty() || value == "0") return Validation::off;
  if (value == "1" || value == "sync") return Validation::sync;
  if (value == "gpu") return Validation::gpu;
  throw Error(ErrorCode::usage,
              "VITRINE_VALIDATE is '" + std::string(value) + "', expected 0, 1, sync or gpu");
}

Instance::Instance(InstanceOptions options) : messages_(std::make_unique<MessageTarget>()) {
  validation_ = options.validation ? *options.validation : validation_from_environment();
  const bool to_stderr = !options.sink;
  messages_->sink = to_stderr ? print_to_stderr : std::move(options.sink);

  load_loader();
  // A loader of Vulkan 1.0 refuses versions above it, and lacks what even looking at a device takes.
  if (volkGetInstanceVersion() < VK_API_VERSION_1_1) {
    throw Error(ErrorCode::no_device,
                "the Vulkan loader is of version 1.0, at least 1.1 is needed; " + std::string(install_hint));
  }

  std::vector<const char*> layers;
  bool has_settings = false;
  std::vector<VkExtensionProperties> available = instance_extensions(nullptr);
  if (validation_ != Validation::off) {
    const std::optional<uint32_t> version = version_of_layer(validation_layer);
    if (!version) {
      throw Error(ErrorCode::failed, "validation was asked for but the layer " +
                                         std::string(validation_layer) +
                                         " is not installed (Debian and Ubuntu: vulkan-validationlayers)");
    }
    checks_synchronization_ =
        validation_ == Validation::sync && *version >= first_layer_that_checks_synchronization;
    if (validation_ == Validation::sync && !checks_synchronization_ && to_stderr) {
      std::fprintf(
          stderr,
          "vitrine: the validation layer is of version %s: synchronization is not checked, which layers "
          "before %s get wrong\n",
          text_of_version(*version).c_str(),
          text_of_version(first_layer_that_checks_synchronization).c_str());
    }
    layers.push_back(validation_layer);
    for (const VkExtensionProperties& extension : instance_extensions(validation_layer)) {
      available.push_back(extension);
    }
    has_settings = lists(available, VK_EXT_LAYER_SETTINGS_EXTENSION_NAME);
  }

  std::vector<const char*> extensions;
  VkInstanceCreateFlags flags = 0;
  if (lists(available, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
    extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
  debug_utils_ = lists(available, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  if (debug_utils_) extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  for (const std::string& wanted : options.extensions) {
    if (!lists(available, wanted.c_str())) {
      throw Error(ErrorCode::no_device,
                  "the Vulkan drivers here lack " + wanted + "; " + std::string(install_hint));
    }
    extensions.push_back(wanted.c_str());
  }
  if (validation_ != Validation::off) {
    extensions.push_back(has_settings ? VK_EXT_LAYER_SETTINGS_EXTENSION_NAME
                                      : VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
  }

  const VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                      .pNext = nullptr,
                                      .pApplicationName = "vitrine",
                                      .applicationVersion = 0,
                                      .pEngineName = "vitrine",
                                      .engineVersion = 0,
                                      .apiVersion = VK_API_VERSION_1_3};
  VkInstanceCreateInfo info{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.flags = flags;
  info.pApplicationInfo = &application;
  info.enabledLayerCount = static_cast<uint32_t>(layers.size());
  info.ppEnabledLayerNames = layers.data();
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();

  const bool listen = validation_ != Validation::off && debug_utils_;
  VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(*messages_);
  VkDebugUtilsMessengerCreateInfoEXT early_messenger = messenger;
  LayerConfiguration configuration(validation_, checks_synchronization_, has_settings);
  StructureChain chain(info);
  if (listen) chain.add(early_messenger);
  if (validation_ != Validation::off) configuration.add_to(chain);

  const std::scoped_lock lists_lock(loader_lists_mutex());
  const VkResult created = vkCreateInstance(&info, nullptr, &handle_);
  if (created == VK_ERROR_INCOMPATIBLE_DRIVER) throw no_driver();
  check(created, "vkCreateInstance");
  load_volk_globals(handle_);
  functions_ = load_instance_functions(handle_, vkGetInstanceProcAddr);
  debug_utils_ = functions_.set_object_name != nullptr && functions_.begin_label != nullptr &&
                 functions_.end_label != nullptr;
  if (listen && functions_.create_messenger != nullptr) {
    const VkResult result = functions_.create_messenger(handle_, &messenger, nullptr, &messenger_);
    if (result != VK_SUCCESS) functions_.destroy_instance(handle_, nullptr);
    check(result, "vkCreateDebugUtilsMessengerEXT");
  }
}

Instance::~Instance() {
  const std::scoped_lock lists_lock(loader_lists_mutex());
  if (messenger_ != VK_NULL_HANDLE) functions_.destroy_messenger(handle_, messenger_, nullptr);
  functions_.destroy_instance(handle_, nullptr);
}

std::vector<PhysicalDevice> Instance::devices() const {
  const std::scoped_lock lists_lock(loader_lists_mutex());
  uint32_t count = 0;
  VkResult result = functions_.enumerate_physical_devices(handle_, &count, nullptr);
  // Some loaders say so only here when every driver failed to start.
  if (result == VK_ERROR_INITIALIZATION_FAILED || result == VK_ERROR_INCOMPATIBLE_DRIVER) throw no_driver();
  check(result, "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> handles(count);
  result = functions_.enumerate_physical_devices(handle_, &count, handles.data());
  check(result, "vkEnumeratePhysicalDevices");
  handles.resize(count);
  if (handles.empty()) throw no_driver();

  std::vector<PhysicalDevice> devices;
  devices.reserve(handles.size());
  for (const VkPhysicalDevice handle : handles) {
    devices.push_back({handle, apply_quirks(take_snapshot(functions_, handle))});
  }
  return devices;
}

}  // namespace vitrine

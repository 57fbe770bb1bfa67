// A Vulkan instance: the loader, the validation layers when asked for, and the devices with their
// capabilities. Several instances may live at once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/vk/capabilities.h"
#include "runtime/vk/instance_functions.h"

namespace vitrine {

enum class Validation : uint8_t {
  off,
  sync,  // core checks, and synchronization checks where the layer knows enough for these
  gpu,   // checks inside the shaders, without core checks: the layer wants them run apart
};
// What VITRINE_VALIDATE asks for: unset, empty or 0: off; 1 or sync; gpu. Else an Error.
Validation validation_from_environment();

enum class Severity : uint8_t { info, warning, error };
struct ValidationMessage {
  Severity severity = Severity::info;
  std::string id;  // such as "VUID-vkCmdDispatch-None-08114" or "WARNING-Setting-Limit-Adjusted"
  std::string text;
  // A notice of the layer about its own set-up, not about what the program does.
  bool about_setup() const;
};

struct InstanceOptions {
  // None: as VITRINE_VALIDATE says.
  std::optional<Validation> validation;
  // Where warnings and errors of the layers and drivers go; empty: to stderr. Calls never overlap.
  std::function<void(const ValidationMessage&)> sink;
  // What a window asks for besides; Error(no_device) where the loader and the drivers lack one.
  std::vector<std::string> extensions;
};

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  Capabilities capabilities;
};

// Shared by who names an object, labels a command or asks for a device's functions, held alone by who makes
// or ends an instance or a device, or lists devices: to find whose object it is the loader walks its lists of
// all instances and their devices, and doesn't keep them from changing meanwhile (seen in 1.4.309).
std::shared_mutex& loader_lists_mutex();

struct MessageTarget;

class Instance {
 public:
  // Throws Error(no_device) that says what to install when there is no loader or no driver.
  explicit Instance(InstanceOptions options = {});
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  VkInstance handle() const { return handle_; }
  const InstanceFunctions& functions() const { return functions_; }
  Validation validation() const { return validation_; }
  // With Validation::sync, unless the layer is one of the older ones that get these checks wrong.
  bool checks_synchronization() const { return checks_synchronization_; }
  // Objects can be named and commands labelled for debuggers.
  bool debug_utils() const { return debug_utils_; }

  // All devices in the loader's order, quirks applied. Throws Error(no_device) when there are none.
  std::vector<PhysicalDevice> devices() const;

 private:
  std::unique_ptr<MessageTarget> messages_;
  Validation validation_ = Validation::off;
  bool checks_synchronization_ = false;
  bool debug_utils_ = false;
  VkInstance handle_ = VK_NULL_HANDLE;
  InstanceFunctions functions_;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
};

}  // namespace vitrine

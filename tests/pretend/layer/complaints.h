// Says what was done wrong, so that nobody misses it: on stderr, and to whoever listens to the validation
// layer.
#pragma once

#include <vulkan/vulkan_core.h>

#include <map>
#include <mutex>
#include <string>

namespace vitrine::pretend {

class Complaints {
 public:
  void add(VkDebugUtilsMessengerEXT messenger, const VkDebugUtilsMessengerCreateInfoEXT& info);
  void remove(VkDebugUtilsMessengerEXT messenger);
  // `id` stands where a validation message has its VUID.
  void say(const char* id, const std::string& text);

 private:
  std::mutex mutex_;
  std::map<VkDebugUtilsMessengerEXT, VkDebugUtilsMessengerCreateInfoEXT> messengers_;
};

}  // namespace vitrine::pretend

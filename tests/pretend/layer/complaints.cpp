#include "tests/pretend/layer/complaints.h"

#include <cstdio>

namespace vitrine::pretend {

void Complaints::add(VkDebugUtilsMessengerEXT messenger, const VkDebugUtilsMessengerCreateInfoEXT& info) {
  const std::scoped_lock lock(mutex_);
  messengers_[messenger] = info;
}

void Complaints::remove(VkDebugUtilsMessengerEXT messenger) {
  const std::scoped_lock lock(mutex_);
  messengers_.erase(messenger);
}

void Complaints::say(const char* id, const std::string& text) {
  std::fprintf(stderr, "pretend: %s: %s\n", id, text.c_str());
  VkDebugUtilsMessengerCallbackDataEXT data{.sType =
                                                VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CALLBACK_DATA_EXT};
  data.pMessageIdName = id;
  data.pMessage = text.c_str();
  const std::scoped_lock lock(mutex_);
  for (const auto& [messenger, info] : messengers_) {
    if ((info.messageSeverity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) == 0 ||
        (info.messageType & VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT) == 0) {
      continue;
    }
    info.pfnUserCallback(VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
                         VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT, &data, info.pUserData);
  }
}

}  // namespace vitrine::pretend

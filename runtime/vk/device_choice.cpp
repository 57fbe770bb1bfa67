#include "runtime/vk/device_choice.h"

#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "runtime/util/error.h"

namespace vitrine {
namespace {

int rank_of(DeviceType type) {
  switch (type) {
    case DeviceType::discrete:
      return 4;
    case DeviceType::integrated:
      return 3;
    case DeviceType::virtual_gpu:
      return 2;
    case DeviceType::cpu:
      return 1;
    case DeviceType::other:
      return 0;
  }
  return 0;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string version_text(uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." + std::to_string(VK_API_VERSION_MINOR(version));
}

std::optional<size_t> as_index(std::string_view text, size_t count) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size() || index >= count) return std::nullopt;
  return index;
}

// Which devices `wanted` speaks of. Digits that are no index may still be part of a name ("3090").
std::vector<bool> matches(std::span<const Capabilities> devices, std::string_view wanted) {
  std::vector<bool> matching(devices.size(), wanted.empty());
  if (wanted.empty()) return matching;
  if (const std::optional<size_t> index = as_index(wanted, devices.size())) {
    matching[*index] = true;
    return matching;
  }
  const std::string needle = lower(wanted);
  for (size_t i = 0; i < devices.size(); ++i) {
    matching[i] = lower(devices[i].name).find(needle) != std::string::npos;
  }
  return matching;
}

std::string list_of(std::span<const Capabilities> devices) {
  std::string text;
  for (size_t i = 0; i < devices.size(); ++i) {
    text += (i ? ", " : "") + std::to_string(i) + " '" + devices[i].name + "'";
  }
  return text;
}

}  // namespace

std::optional<std::string> why_unusable(const Capabilities& device) {
  std::vector<std::string> lacks;
  if (device.api_version < VK_API_VERSION_1_3) {
    lacks.push_back("Vulkan 1.3 (it has " + version_text(device.api_version) + ")");
  }
  if (!device.has_compute_queue) lacks.emplace_back("a queue that computes");
  if (!device.synchronization2) lacks.emplace_back("synchronization2");
  if (!device.timeline_semaphore) lacks.emplace_back("timeline semaphores");
  if (!device.maintenance4) lacks.emplace_back("maintenance4");
  if (device.max_push_bytes < required_push_bytes) {
    lacks.push_back(std::to_string(required_push_bytes) + " bytes of push constants (it has " +
                    std::to_string(device.max_push_bytes) + ")");
  }
  if (device.max_storage_buffers < required_storage_buffers) {
    lacks.push_back(std::to_string(required_storage_buffers) + " storage buffers a shader (it has " +
                    std::to_string(device.max_storage_buffers) + ")");
  }
  if (lacks.empty()) return std::nullopt;
  std::string text = "it lacks ";
  for (size_t i = 0; i < lacks.size(); ++i) {
    if (i > 0) text += i + 1 == lacks.size() ? " and " : ", ";
    text += lacks[i];
  }
  return text;
}

DeviceChoice choose_device(std::span<const Capabilities> devices, std::string_view wanted) {
  DeviceChoice choice;
  const std::vector<bool> matching = matches(devices, wanted);
  std::vector<std::optional<std::string>> unusable;
  for (size_t i = 0; i < devices.size(); ++i) {
    unusable.push_back(why_unusable(devices[i]));
    if (!matching[i] || unusable[i]) continue;
    if (!choice.chosen || rank_of(devices[i].type) > rank_of(devices[*choice.chosen].type)) choice.chosen = i;
  }

  const std::string asked = "'" + std::string(wanted) + "'";
  for (size_t i = 0; i < devices.size(); ++i) {
    std::string reason;
    if (choice.chosen == i) {
      reason = wanted.empty()
                   ? "chosen: the best kind of device here (" + std::string(name_of(devices[i].type)) + ")"
                   : "chosen: " + asked + " was asked for";
    } else if (unusable[i]) {
      reason = "can't be used: " + *unusable[i];
    } else if (!matching[i]) {
      reason = "not chosen: " + asked + " was asked for";
    } else if (rank_of(devices[i].type) == rank_of(devices[*choice.chosen].type)) {
      reason =
          "not chosen: device " + std::to_string(*choice.chosen) + " is of the same kind and comes first";
    } else {
      reason = "not chosen: a device of type " + std::string(name_of(devices[*choice.chosen].type)) +
               " goes before one of type " + std::string(name_of(devices[i].type));
    }
    choice.reasons.push_back(std::move(reason));
  }
  if (choice.chosen) return choice;

  const auto matched = std::ranges::find(matching, true);
  if (devices.empty()) {
    choice.failure = "there is no Vulkan device";
  } else if (matched == matching.end()) {
    choice.failure = "no Vulkan device matches " + asked + ", there are " + list_of(devices);
  } else {
    choice.failure = "no Vulkan device can be used";
    if (!wanted.empty()) choice.failure += " as " + asked;
    for (size_t i = 0; i < devices.size(); ++i) {
      if (matching[i]) choice.failure += "; '" + devices[i].name + "': " + *unusable[i];
    }
  }
  return choice;
}

size_t DeviceChoice::index() const {
  if (!chosen) throw Error(ErrorCode::no_device, failure);
  return *chosen;
}

std::string wanted_device(std::string_view option) {
  if (!option.empty()) return std::string(option);
  const char* variable = std::getenv("VITRINE_DEVICE");
  return variable == nullptr ? "" : variable;
}

}  // namespace vitrine

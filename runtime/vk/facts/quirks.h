// What drivers claim but don't do: one table, applied to a snapshot before anybody plans with it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "runtime/vk/capabilities.h"

namespace vitrine {

struct Quirk {
  std::string_view name;   // recorded in Capabilities::quirks when it applied
  uint32_t driver_id = 0;  // VkDriverId
  // Versions in the driver's own encoding, both ends included.
  uint32_t first_version = 0, last_version = std::numeric_limits<uint32_t>::max();
  bool (*applies)(const Capabilities&) = nullptr;  // beyond driver and version
  void (*effect)(Capabilities&) = nullptr;
  std::string_view why;     // what happens without it, and where that is written down
  std::string_view advice;  // what a user could do about it: recorded in Capabilities::advice when it applied
};

std::span<const Quirk> all_quirks();
Capabilities apply_quirks(Capabilities snapshot, std::span<const Quirk> quirks = all_quirks());

}  // namespace vitrine

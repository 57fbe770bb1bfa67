// The devices that are there as files: cards from published figures (devices/), and GPUs as Mesa's
// drivers describe them behind make-believe kernel drivers (tests/zoo/profiles).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/vk/capabilities.h"

namespace vitrine::test {

// By the files' stems, in their order.
std::vector<std::pair<std::string, Capabilities>> published_cards();
std::vector<std::pair<std::string, Capabilities>> zoo_devices();

}  // namespace vitrine::test

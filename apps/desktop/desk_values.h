// The app's state by name, as scripts ask for it.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vitrine::desktop {

struct Desk;
struct DeskValue {
  std::string_view name;
  std::string (*of)(const Desk& desk);
};
std::span<const DeskValue> desk_values();

}  // namespace vitrine::desktop

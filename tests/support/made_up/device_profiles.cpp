#include "tests/support/made_up/device_profiles.h"

#include <algorithm>
#include <filesystem>

#include "runtime/tune/device_profile.h"

namespace vitrine::test {
namespace {

std::vector<std::pair<std::string, Capabilities>> profiles_in(const std::filesystem::path& folder) {
  std::vector<std::pair<std::string, Capabilities>> profiles;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    profiles.emplace_back(entry.path().stem().string(), read_device_profile(entry.path()));
  }
  std::ranges::sort(profiles, {}, [](const auto& profile) { return profile.first; });
  return profiles;
}

}  // namespace

std::vector<std::pair<std::string, Capabilities>> published_cards() {
  return profiles_in(VITRINE_TEST_DATA "/../devices");
}

std::vector<std::pair<std::string, Capabilities>> zoo_devices() {
  return profiles_in(VITRINE_TEST_DATA "/zoo/profiles");
}

}  // namespace vitrine::test

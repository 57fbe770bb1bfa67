// A script: actions one after the other, that drive the app as a person would. For tests and pictures.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/desktop/script/actions.h"

namespace vitrine::desktop {

struct Script {
  std::string name;  // as messages call it
  std::vector<Action> actions;
};

// Error(usage) that names the file and the line, what was found and what was expected.
Script parse_script(std::string_view text, const std::string& name);
Script read_script(const std::filesystem::path& path);

}  // namespace vitrine::desktop

// The keys of the table of actions as Dear ImGui has them.
#pragma once

#include <imgui.h>

#include <string_view>

#include "apps/desktop/actions.h"
#include "apps/desktop/screen.h"

namespace vitrine::desktop {

// Of a letter, a digit, one of key_names(), or a modifier. Error(usage) where there is none.
ImGuiKey imgui_key(std::string_view name);

// Once a frame: performs the actions whose keys were struck.
void perform_struck(Actions& actions, const Screen& screen);

}  // namespace vitrine::desktop

// How the app looks: colors for dark and light, fonts in the monitor's scale.
#pragma once

#include <imgui.h>

#include <cstddef>

#include "apps/desktop/gpu/display_scale.h"

namespace vitrine::desktop {

// Colors that panels draw with themselves.
struct Palette {
  ImU32 background, panel, text, faint_text, line, accent, accent_text, bar, bar_track, good, bad;
};

struct Fonts {
  ImFont* text = nullptr;
  ImFont* small = nullptr;
  ImFont* large = nullptr;
  ImFont* mono = nullptr;
};

void apply_theme(bool dark, float scale);
const Palette& palette();
// Of the curves that are drawn over each other; the first one is the accent.
ImU32 series_color(size_t number);

// Replaces the fonts of ImGui's atlas by the system's DejaVu, Noto, Liberation or the like, or ImGui's own
// where there is none. The atlas has to be uploaded again afterwards.
void load_fonts(const DisplayScale& scale);
const Fonts& fonts();

}  // namespace vitrine::desktop

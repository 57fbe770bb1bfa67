#include "apps/desktop/theme.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/util/system.h"

namespace vitrine::desktop {
namespace {

namespace fs = std::filesystem;

constexpr ImU32 rgb(uint32_t color, uint32_t alpha = 255) {
  return IM_COL32((color >> 16) & 0xff, (color >> 8) & 0xff, color & 0xff, alpha);
}

constexpr Palette dark_palette{.background = rgb(0x15171b),
                               .panel = rgb(0x1d2026),
                               .text = rgb(0xe7e5df),
                               .faint_text = rgb(0x9a9da4),
                               .line = rgb(0x32363e),
                               .accent = rgb(0xf0a13a),
                               .accent_text = rgb(0x1b1305),
                               .bar = rgb(0xc97f1f),
                               .bar_track = rgb(0x2a2e36),
                               .good = rgb(0x7fc77a),
                               .bad = rgb(0xf07a68)};
constexpr Palette light_palette{.background = rgb(0xeeece6),
                                .panel = rgb(0xfbfaf7),
                                .text = rgb(0x23262b),
                                .faint_text = rgb(0x64676e),
                                .line = rgb(0xd3d0c7),
                                .accent = rgb(0xa85a00),
                                .accent_text = rgb(0xffffff),
                                .bar = rgb(0xd98b2b),
                                .bar_track = rgb(0xe3e0d8),
                                .good = rgb(0x2f7d32),
                                .bad = rgb(0xb3261e)};

constexpr std::array dark_series{rgb(0xf0a13a), rgb(0x6fb1ff), rgb(0x7fc77a), rgb(0xf07ab8),
                                 rgb(0xb99bff), rgb(0x5fd0c5), rgb(0xe0d060), rgb(0xf07a68)};
constexpr std::array light_series{rgb(0xa85a00), rgb(0x1f5fbf), rgb(0x2f7d32), rgb(0xb3267e),
                                  rgb(0x6a3fb5), rgb(0x0b7f78), rgb(0x7a6c00), rgb(0xb3261e)};

Palette current = dark_palette;
Fonts loaded;

ImVec4 color(ImU32 value, float alpha = 1) {
  ImVec4 result = ImGui::ColorConvertU32ToFloat4(value);
  result.w *= alpha;
  return result;
}

ImVec4 mixed(ImU32 a, ImU32 b, float share) {
  const ImVec4 from = color(a), to = color(b);
  return {std::lerp(from.x, to.x, share), std::lerp(from.y, to.y, share), std::lerp(from.z, to.z, share), 1};
}

// Below the system's folders of fonts, of Linux's distributions, macOS and Windows.
constexpr std::array text_fonts{"truetype/dejavu/DejaVuSans.ttf",
                                "TTF/DejaVuSans.ttf",
                                "dejavu-sans-fonts/DejaVuSans.ttf",
                                "truetype/noto/NotoSans-Regular.ttf",
                                "truetype/liberation/LiberationSans-Regular.ttf",
                                "Supplemental/Arial.ttf",
                                "segoeui.ttf",
                                "tahoma.ttf"};
constexpr std::array mono_fonts{"truetype/dejavu/DejaVuSansMono.ttf",
                                "TTF/DejaVuSansMono.ttf",
                                "dejavu-sans-mono-fonts/DejaVuSansMono.ttf",
                                "truetype/liberation/LiberationMono-Regular.ttf",
                                "Supplemental/Courier New.ttf",
                                "consola.ttf",
                                "cour.ttf"};

fs::path first_file(std::span<const char* const> names) {
  const std::vector<fs::path> folders = system::font_folders();
  std::error_code none;
  for (const char* name : names) {
    for (const fs::path& folder : folders) {
      if (fs::is_regular_file(folder / name, none)) return folder / name;
    }
  }
  return {};
}

// Latin, Greek and Cyrillic letters, which labels and file names have, and the signs that the panels use.
constexpr std::array<ImWchar, 13> glyphs{0x0020, 0x024f, 0x0370, 0x03ff, 0x0400, 0x04ff, 0x2010,
                                         0x2044, 0x2190, 0x21ff, 0x2200, 0x22ff, 0};

ImFont* load(const fs::path& path, float size, const DisplayScale& scale) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  ImFontConfig config;
  config.SizePixels = std::round(size * scale.layout);
  config.RasterizerDensity = scale.density;
  if (!path.empty()) {
    if (ImFont* font =
            atlas.AddFontFromFileTTF(path.string().c_str(), config.SizePixels, &config, glyphs.data()))
      return font;
  }
  return atlas.AddFontDefault(&config);
}

}  // namespace

const Palette& palette() { return current; }

ImU32 series_color(size_t number) {
  const auto& colors = current.background == dark_palette.background ? dark_series : light_series;
  return colors[number % colors.size()];
}
const Fonts& fonts() { return loaded; }

void load_fonts(const DisplayScale& scale) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  atlas.Clear();
  const fs::path text = first_file(text_fonts), mono = first_file(mono_fonts);
  loaded.text = load(text, 15, scale);
  loaded.small = load(text, 12.5f, scale);
  loaded.large = load(text, 22, scale);
  loaded.mono = load(mono, 13.5f, scale);
  atlas.Build();
  ImGui::GetIO().FontDefault = loaded.text;
}

void apply_theme(bool dark, float scale) {
  current = dark ? dark_palette : light_palette;
  const Palette& p = current;
  ImGuiStyle style;
  if (dark) {
    ImGui::StyleColorsDark(&style);
  } else {
    ImGui::StyleColorsLight(&style);
  }
  style.WindowPadding = {12, 10};
  style.FramePadding = {9, 5};
  style.ItemSpacing = {8, 7};
  style.ItemInnerSpacing = {6, 5};
  style.FrameRounding = style.GrabRounding = style.PopupRounding = style.ChildRounding = 5;
  style.ScrollbarSize = 11;
  style.ScrollbarRounding = 6;
  style.WindowBorderSize = style.FrameBorderSize = style.ChildBorderSize = 0;
  style.PopupBorderSize = 1;
  style.DisabledAlpha = 0.45f;
  style.ScaleAllSizes(scale);

  ImVec4* c = style.Colors;
  c[ImGuiCol_Text] = color(p.text);
  c[ImGuiCol_TextDisabled] = color(p.faint_text);
  c[ImGuiCol_WindowBg] = color(p.background);
  c[ImGuiCol_ChildBg] = color(p.panel);
  c[ImGuiCol_PopupBg] = color(p.panel);
  c[ImGuiCol_Border] = c[ImGuiCol_Separator] = color(p.line);
  const float step = dark ? 0.07f : 0.1f;  // light frames have to stand out from the background, too
  const ImVec4 frame = mixed(p.panel, p.text, step), over = mixed(p.panel, p.text, 2 * step),
               down = mixed(p.panel, p.text, 3 * step);
  c[ImGuiCol_TitleBg] = c[ImGuiCol_TitleBgActive] = frame;
  c[ImGuiCol_FrameBg] = c[ImGuiCol_Button] = c[ImGuiCol_Header] = frame;
  c[ImGuiCol_FrameBgHovered] = c[ImGuiCol_ButtonHovered] = c[ImGuiCol_HeaderHovered] = over;
  c[ImGuiCol_FrameBgActive] = c[ImGuiCol_ButtonActive] = c[ImGuiCol_HeaderActive] = down;
  c[ImGuiCol_SliderGrab] = c[ImGuiCol_CheckMark] = color(p.accent);
  c[ImGuiCol_SliderGrabActive] = color(p.accent);
  c[ImGuiCol_PlotHistogram] = color(p.accent);
  c[ImGuiCol_PlotLines] = color(p.accent);
  c[ImGuiCol_ScrollbarBg] = {0, 0, 0, 0};
  c[ImGuiCol_ScrollbarGrab] = over;
  c[ImGuiCol_ScrollbarGrabHovered] = c[ImGuiCol_ScrollbarGrabActive] = down;
  c[ImGuiCol_TableHeaderBg] = frame;
  c[ImGuiCol_TableBorderStrong] = c[ImGuiCol_TableBorderLight] = color(p.line);
  c[ImGuiCol_TableRowBgAlt] = color(p.text, 0.03f);
  c[ImGuiCol_TextSelectedBg] = color(p.accent, 0.35f);
  c[ImGuiCol_ModalWindowDimBg] = {0, 0, 0, 0.55f};
  c[ImGuiCol_NavHighlight] = color(p.accent);
  ImGui::GetStyle() = style;
}

}  // namespace vitrine::desktop

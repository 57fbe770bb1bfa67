// On the right: what the model says of the picture, and how to look at its maps.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>

#include "apps/desktop/panels/panels.h"
#include "apps/desktop/panels/widgets.h"
#include "apps/desktop/theme.h"
#include "runtime/util/text.h"

namespace vitrine::desktop {
namespace {

void mark_item(Screen& screen, const char* name) {
  screen.areas[name] = area_of(ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
}

void draw_answer_bars(std::span<const TopAnswer> answers) {
  // In a low window the controls below matter more than the unlikely classes.
  const size_t shown = ImGui::GetContentRegionAvail().y < 34 * ImGui::GetFontSize() ? 3 : 5;
  bool first = true;
  for (const TopAnswer& answer : answers.first(std::min(shown, answers.size()))) {
    char number[24];
    const double share = static_cast<double>(answer.probability);
    std::snprintf(number, sizeof number, "%.1f %%", share * 100);
    share_bar(answer.label, share, number, first);
    first = false;
  }
}

// Of a model that reads words: which of the labels the picture is.
void draw_labels(Screen& screen, Actions& actions, const Words& words) {
  const auto box = [&](ActionId id, const char* name, const std::string& text) {
    if (const auto typed = text_box(name, kind_of(id).label, text)) actions.perform(id, {*typed});
    mark_item(screen, name + 2);
    if (!ImGui::IsItemActive()) hint({id});  // which would lie over what is typed for
  };
  box(ActionId::labels, "##labels", words.labels());
  box(ActionId::pattern, "##template", words.pattern());
  if (!words.trouble().empty()) {
    ImGui::PushStyleColor(ImGuiCol_Text, palette().bad);
    ImGui::TextWrapped("%s", words.trouble().c_str());
    ImGui::PopStyleColor();
  } else if (!words.pattern().empty() && words.pattern().find("{}") == std::string::npos) {
    faint_wrapped("The template has no {}: labels are read without it.");
  }
  draw_answer_bars(words.scores());
}

void draw_top(Screen& screen, Actions& actions, const Looking::Seen& seen, const Words& words) {
  heading("WHAT IT SAYS");
  if (words.readable()) {
    draw_labels(screen, actions, words);
  } else if (seen.result.top.empty()) {
    faint_wrapped(seen.result.no_answer);
  } else {
    draw_answer_bars(seen.result.top);
  }
}

void draw_times(const Looking::Seen& seen) {
  char rate[48];
  std::snprintf(rate, sizeof rate, "%.3g images/s", seen.result.seconds > 0 ? 1 / seen.result.seconds : 0.0);
  faint(seconds_text(seen.result.seconds) + "  \xc2\xb7  " + rate);
}

// How a picture lies that has to be turned to stand upright.
const char* lies(int orientation) {
  constexpr std::array ways{"mirrored",
                            "upside down",
                            "mirrored and upside down",
                            "mirrored, on its side",
                            "on its side",
                            "mirrored, on its side",
                            "on its side"};
  return ways[static_cast<size_t>(std::clamp(orientation, 2, 8) - 2)];
}

void draw_orientation(Screen& screen, Actions& actions, const Looking& looking) {
  const Looking::Seen& seen = *looking.seen();
  if (seen.result.orientation == 1) return;
  ImGui::Spacing();
  faint_wrapped(std::string("Its EXIF data says that it is stored ") + lies(seen.result.orientation) + ".");
  bool turn = looking.turns_by_exif();
  if (ImGui::Checkbox(kind_of(ActionId::exif).label, &turn))
    actions.perform(ActionId::exif, {turn ? "on" : "off"});
  mark_item(screen, "turn-by-exif");
  hint({ActionId::exif});
}

// A slider with the position's name above it.
void slider(const char* label, uint64_t& value, uint64_t count, const std::string& shown) {
  int64_t at = static_cast<int64_t>(value);
  const int64_t least = 0, most = static_cast<int64_t>(count) - 1;
  ImGui::TextUnformatted(shown.c_str());
  ImGui::SetNextItemWidth(-1);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {ImGui::GetStyle().FramePadding.x, 1});
  ImGui::SliderScalar(label, ImGuiDataType_S64, &at, &least, &most, "");
  ImGui::PopStyleVar();
  value = static_cast<uint64_t>(std::clamp(at, least, most));
}

void draw_color_maps(MapSelection& selection) {
  const float width = (ImGui::GetContentRegionAvail().x - 2 * ImGui::GetStyle().ItemSpacing.x) / 3;
  bool first = true;
  for (const ColorMap map : color_maps) {
    if (!first) ImGui::SameLine();
    first = false;
    const std::string name(name_of(map));
    if (toggle_button(name.c_str(), selection.map == map, width)) selection.map = map;
    // A strip of its colors below the name.
    const ImVec2 from = ImGui::GetItemRectMin(), to = ImGui::GetItemRectMax();
    constexpr int steps = 24;
    for (int i = 0; i < steps; ++i) {
      const Rgb color = color_of(map, i / (steps - 1.0));
      const float step = (to.x - from.x) / steps;
      ImGui::GetWindowDrawList()->AddRectFilled({from.x + step * static_cast<float>(i), to.y - 3},
                                                {from.x + step * static_cast<float>(i + 1), to.y},
                                                IM_COL32(color[0], color[1], color[2], 255));
    }
  }
}

void draw_controls(Screen& screen, Looking& looking, const Words& words) {
  const ViTConfig* c = looking.config();
  if (!c) return;
  const View view = screen.view();
  MapSelection selection = looking.selection();
  heading(view == View::words ? "WHERE THE WORDS ARE" : "WHERE IT LOOKS");
  if (view == View::attention || view == View::grid || view == View::answers) {
    slider("##layer", selection.layer, looking.layers(), looking.layer_name(selection.layer));
    mark_item(screen, "layer-slider");
    hint({ActionId::layer_above, ActionId::layer_below});
  }
  if (view == View::attention || view == View::answers) {
    // 0: the mean; a head's number after that.
    uint64_t head = selection.head ? *selection.head + 1 : 0;
    slider("##head", head, looking.heads() + 1,
           head == 0 ? "mean of " + counted(looking.heads(), "head") : "head " + std::to_string(head - 1));
    selection.head = head == 0 ? std::nullopt : std::optional(head - 1);
    mark_item(screen, "head-slider");
    hint({ActionId::head_before, ActionId::head_after});
  }
  if (view == View::words) {
    faint_wrapped(!words.readable()       ? "This model reads no words: CLIP and SigLIP do."
                  : words.words().empty() ? "Type words on the left, above the pictures."
                                          : "How like the words each patch is, from the least to the most.");
  } else if (view != View::features) {
    const char* label = kind_of(ActionId::back).label;
    const float back = ImGui::CalcTextSize(label).x + 2 * ImGui::GetStyle().FramePadding.x;
    faint(fitted("from the " + looking.token_name(),
                 ImGui::GetContentRegionAvail().x - (selection.token ? back + 8 : 0)));
    if (selection.token) {
      ImGui::SameLine(ImGui::GetContentRegionMax().x - back);
      if (ImGui::SmallButton(label)) selection.token.reset();
      hint({ActionId::back});
    } else {
      faint_wrapped("Click on a patch to see where its token looks.");
    }
  } else {
    faint_wrapped(
        "The patches' features, reduced to three principal components that are shown as red, green and "
        "blue.");
  }
  ImGui::Spacing();
  auto percent = static_cast<uint64_t>(std::lround(selection.opacity * 100));
  slider("##opacity", percent, 101, "opacity " + std::to_string(percent) + " %");
  if (percent != static_cast<uint64_t>(std::lround(selection.opacity * 100)))
    selection.opacity = static_cast<float>(percent) / 100;
  hint({ActionId::less_map, ActionId::more_map});
  if (view != View::features) draw_color_maps(selection);
  ImGui::Checkbox(kind_of(ActionId::turn_patch_grid).label, &selection.patch_grid);
  looking.select(selection);
  const Looking::Maps* maps = looking.maps(view);
  if (maps) {
    faint(std::to_string(maps->dispatches) + (maps->dispatches == 1 ? " dispatch, " : " dispatches, ") +
          seconds_text(maps->seconds));
  }
}

}  // namespace

void draw_answers(Screen& screen, Actions& actions, Looking& looking, const Words& words, bool busy) {
  const Looking::Seen* seen = looking.seen();
  if (!looking.has_model()) {
    faint_wrapped(busy ? "Opening the model..." : "No model is open. Choose one above.");
    return;
  }
  if (!seen) {
    faint_wrapped(busy ? "The model is looking..." : "Open a picture to see what the model says of it.");
    return;
  }
  draw_top(screen, actions, *seen, words);
  draw_times(*seen);
  draw_orientation(screen, actions, looking);
  ImGui::Spacing();
  ImGui::Spacing();
  draw_controls(screen, looking, words);
  ImGui::Spacing();
  ImGui::Spacing();
  action_button(actions, ActionId::export_png);
  ImGui::SameLine();
  action_button(actions, ActionId::export_csv);
}

}  // namespace vitrine::desktop

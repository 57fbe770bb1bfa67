// Trainings that others make: their curves over each other, live or finished.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/desktop/panels/panels.h"
#include "apps/desktop/panels/plot.h"
#include "apps/desktop/panels/widgets.h"
#include "apps/desktop/theme.h"

namespace vitrine::desktop {
namespace {

constexpr ImU32 with_alpha(ImU32 color, ImU32 alpha) {
  return (color & 0x00ffffff) | alpha << IM_COL32_A_SHIFT;
}

// What a plot shows of each run.
struct Series {
  std::vector<CurvePoint> RunCurves::* curve = nullptr;
  double ValidationPoint::* value = nullptr;
  double ValidationPoint::* second = nullptr;  // thinner
};

struct Kind {
  const char *title, *area, *tip;
  Series series;
  bool from_zero = false, percent = false, smooth = false;
};

constexpr std::array<Kind, 6> kinds{
    {{"LOSS OF THE UPDATES", "loss", "%.4g", {.curve = &RunCurves::loss}, false, false, true},
     {"VALIDATION LOSS", "val-loss", "%.4g", {.value = &ValidationPoint::loss}},
     {"VALIDATION ACCURACY, TOP 5 THINNER",
      "accuracy",
      "%.2f %%",
      {.value = &ValidationPoint::accuracy, .second = &ValidationPoint::top5},
      false,
      true},
     {"LEARNING RATE", "learning-rate", "%.3g", {.curve = &RunCurves::learning_rate}, true},
     {"NORM OF THE GRADIENTS",
      "gradient-norm",
      "%.4g",
      {.curve = &RunCurves::gradient_norm},
      true,
      false,
      true},
     {"IMAGES A SECOND", "speed", "%.0f", {.curve = &RunCurves::images_per_second}, true}}};

AxisScale scale_of(const Kind& kind, const RunWatch::States& runs) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  const auto hold = [&](double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  };
  for (const auto& run : runs) {
    if (kind.series.curve) {
      for (const CurvePoint& point : run->curves.*kind.series.curve) {
        hold(point.low);
        hold(point.high);
      }
    }
    for (const auto value : {kind.series.value, kind.series.second}) {
      if (!value) continue;
      for (const ValidationPoint& point : run->curves.validations) hold(point.*value);
    }
  }
  if (kind.from_zero) low = std::min(low, 0.0);
  AxisScale scale = axis_scale(low, high);
  // No share is more than all.
  if (kind.percent && scale.high > 1 && high <= 1) scale.high = std::max(scale.low + scale.step, 1.0);
  return scale;
}

// Lines between neighbours that are both numbers.
void draw_line(ImDrawList& list, const std::vector<ImVec2>& points, ImU32 color, float width) {
  for (size_t first = 0; first < points.size();) {
    size_t end = first;
    while (end < points.size() && std::isfinite(points[end].y)) ++end;
    if (end - first > 1) {
      list.AddPolyline(points.data() + first, static_cast<int>(end - first), color, ImDrawFlags_None, width);
    } else if (end - first == 1) {
      list.AddCircleFilled(points[first], width, color);
    }
    first = end + 1;
  }
}

void draw_curve(Plot& plot, const std::vector<CurvePoint>& all, ImU32 color, bool is_smooth) {
  // One a unit of the window and no more: what lies over each other shows nothing.
  const std::vector<CurvePoint> points =
      thinned(all, static_cast<size_t>(std::max(plot.right() - plot.left(), 16.0f)));
  const std::vector<double> smooth = is_smooth ? smoothed(points) : std::vector<double>();
  std::vector<ImVec2> raw, line;
  for (size_t i = 0; i < points.size(); ++i) {
    const CurvePoint& point = points[i];
    const float x = plot.x((static_cast<double>(point.first) + static_cast<double>(point.last)) / 2);
    const auto at = [&](double value) {
      return std::isfinite(value) ? plot.y(value) : std::numeric_limits<float>::quiet_NaN();
    };
    if (point.low < point.high && std::isfinite(point.low) && std::isfinite(point.high))
      plot.list().AddLine({x, plot.y(point.low)}, {x, plot.y(point.high)}, with_alpha(color, 0x38), 2);
    raw.emplace_back(x, at(point.mean));
    line.emplace_back(x, at(is_smooth ? smooth[i] : point.mean));
  }
  if (is_smooth) draw_line(plot.list(), raw, with_alpha(color, 0x58), 1);
  draw_line(plot.list(), line, color, 2);
}

void draw_validations(Plot& plot, const RunCurves& curves, double ValidationPoint::* value, ImU32 color,
                      bool main) {
  std::vector<ImVec2> line;
  for (const ValidationPoint& point : curves.validations) {
    const double number = point.*value;
    line.emplace_back(plot.x(static_cast<double>(point.step)),
                      std::isfinite(number) ? plot.y(number) : std::numeric_limits<float>::quiet_NaN());
  }
  draw_line(plot.list(), line, main ? color : with_alpha(color, 0x90), main ? 2.0f : 1.0f);
  if (!main) return;
  if (line.size() <= 100) {
    for (const ImVec2& point : line) {
      if (std::isfinite(point.y)) plot.list().AddCircleFilled(point, 2.5f, color);
    }
  }
  const ValidationPoint* best = curves.best();
  if (!best || !std::isfinite(best->*value)) return;
  const ImVec2 at = line[static_cast<size_t>(best - curves.validations.data())];
  plot.list().AddCircleFilled(at, 5, ImGui::GetColorU32(ImGuiCol_FrameBg));
  plot.list().AddCircle(at, 5, color, 0, 2);
}

// The value at a step: of the point that it belongs to, or the last one before it.
std::string value_at(const Kind& kind, const RunCurves& curves, double step) {
  const double factor = kind.percent ? 100 : 1;
  if (kind.series.curve) {
    const std::vector<CurvePoint>& points = curves.*kind.series.curve;
    auto point = std::ranges::lower_bound(points, step, {},
                                          [](const CurvePoint& p) { return static_cast<double>(p.last); });
    if (point == points.end()) {
      if (points.empty()) return {};
      --point;
    }
    std::string text = formatted(kind.tip, point->mean * factor);
    if (point->low < point->high)
      text += " (" + formatted(kind.tip, point->low * factor) + " to " +
              formatted(kind.tip, point->high * factor) + ")";
    return text + " at step " + std::to_string(point->last);
  }
  const std::vector<ValidationPoint>& points = curves.validations;
  if (points.empty()) return {};
  const auto nearest = std::ranges::min_element(
      points, {}, [&](const ValidationPoint& p) { return std::abs(static_cast<double>(p.step) - step); });
  std::string text = formatted(kind.tip, (*nearest).*kind.series.value * factor);
  if (kind.series.second) text += ", top 5 " + formatted(kind.tip, (*nearest).*kind.series.second * factor);
  text += " at step " + std::to_string(nearest->step);
  return &*nearest == curves.best() ? text + ", the best" : text;
}

void draw_plot(Screen& screen, const Kind& kind, const RunWatch::States& runs, ImVec2 size, double last_step,
               double& pointed) {
  const AxisScale scale = scale_of(kind, runs);
  Plot plot(kind.title, size, last_step, scale, [&](double value) {
    return kind.percent ? axis_label(value * 100, scale.step * 100) + " %" : axis_label(value, scale.step);
  });
  screen.areas[kind.area] = plot.area();
  bool any = false;
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunCurves& curves = runs[i]->curves;
    const ImU32 color = series_color(i);
    if (kind.series.curve) {
      draw_curve(plot, curves.*kind.series.curve, color, kind.smooth);
      any = any || !(curves.*kind.series.curve).empty();
    } else {
      if (kind.series.second) draw_validations(plot, curves, kind.series.second, color, false);
      draw_validations(plot, curves, kind.series.value, color, true);
      any = any || !curves.validations.empty();
    }
    // Updates that were left out, as marks on the ground.
    if (kind.series.curve != &RunCurves::loss) continue;
    for (const uint64_t step : curves.skips) {
      const float x = plot.x(static_cast<double>(step));
      plot.list().AddTriangleFilled({x - 4, plot.bottom()}, {x + 4, plot.bottom()}, {x, plot.bottom() - 8},
                                    palette().bad);
    }
  }
  if (!any) {
    const std::string text = fitted(kind.series.curve ? "nothing yet" : "no validation (--validate-every)",
                                    plot.right() - plot.left());
    const ImVec2 extent = ImGui::CalcTextSize(text.c_str());
    plot.list().AddText(
        {(plot.left() + plot.right() - extent.x) / 2, (plot.top() + plot.bottom() - extent.y) / 2},
        palette().faint_text, text.c_str());
  }
  if (pointed >= 0 && any) {
    const float x = plot.x(pointed);
    plot.list().AddLine({x, plot.top()}, {x, plot.bottom()}, palette().faint_text);
  }
  if (!plot.hovered()) return;
  pointed = plot.mouse_step();
  ImGui::BeginTooltip();
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string value = value_at(kind, runs[i]->curves, pointed);
    if (value.empty()) continue;
    const std::string name = runs.size() > 1 ? fitted(runs[i]->name, 260 * screen.scale) + ": " : "";
    ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(series_color(i)), "%s", (name + value).c_str());
  }
  if (!any) ImGui::TextUnformatted("nothing to show");
  ImGui::EndTooltip();
}

std::string status_of(const RunState& run) {
  if (!run.error.empty()) return run.error;
  const RunCurves& curves = run.curves;
  if (curves.step == 0) return run.read ? "nothing in its log yet" : "reading";
  std::string text = "epoch " + std::to_string(curves.epoch);
  if (run.epochs) text += " of " + std::to_string(*run.epochs);
  text += "   step " + std::to_string(curves.step) + formatted("   loss %.4g", curves.newest_loss);
  if (const ValidationPoint* best = curves.best())
    text += formatted("   best %.2f %% at step ", best->accuracy * 100) + std::to_string(best->step);
  if (curves.skipped > 0) text += "   " + std::to_string(curves.skipped) + " left out";
  if (!run.read) {
    text += "   reading";
  } else if (run.grows) {
    text += "   goes on";
  }
  return text;
}

// One line: its color, name, how far it is, and the button that takes it away.
void draw_run(const Screen& screen, Actions& actions, const RunState& run, size_t number) {
  const float side = ImGui::GetTextLineHeight(), button = ImGui::GetFrameHeight();
  const float width = ImGui::GetContentRegionAvail().x;
  const float right = ImGui::GetCursorPosX() + width - button;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float inset = ImGui::GetStyle().FramePadding.y;
  ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y + inset}, {at.x + side, at.y + inset + side},
                                            series_color(number), 3);
  ImGui::Dummy({side, side});
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  const std::string name = fitted(run.name, width * 0.35f);
  ImGui::TextUnformatted(name.c_str());
  hint(run.folder.string().c_str());
  ImGui::SameLine(0, 16 * screen.scale);
  const std::string status = status_of(run);
  const std::string shown = fitted(status, right - ImGui::GetCursorPosX() - 8 * screen.scale);
  ImGui::PushStyleColor(ImGuiCol_Text, run.error.empty() ? palette().faint_text : palette().bad);
  ImGui::TextUnformatted(shown.c_str());
  ImGui::PopStyleColor();
  if (shown != status) hint(status.c_str());
  ImGui::SameLine(right);
  if (ImGui::Button("x", {button, 0})) actions.perform(ActionId::close_run, {run.folder.string()});
  hint("Take these curves away");
}

void draw_opener(const Screen& screen, Actions& actions) {
  static std::array<char, 4096> folder{};
  const float button = 80 * screen.scale;
  ImGui::SetNextItemWidth(
      std::clamp(ImGui::GetContentRegionAvail().x - button - 16 * screen.scale, 80.0f, 440 * screen.scale));
  const bool entered = ImGui::InputTextWithHint("##run", "a folder of vitrine train --out", folder.data(),
                                                folder.size(), ImGuiInputTextFlags_EnterReturnsTrue);
  ImGui::SameLine();
  ImGui::BeginDisabled(folder[0] == '\0');
  const bool clicked = ImGui::Button(kind_of(ActionId::run).label, {button, 0});
  ImGui::EndDisabled();
  if ((entered || clicked) && folder[0] != '\0') {
    actions.perform(ActionId::run, {folder.data()});
    folder[0] = '\0';
  }
}

}  // namespace

void draw_runs(Screen& screen, Actions& actions, const RunWatch::States& runs) {
  if (runs.empty()) {
    heading("CURVES OF TRAININGS");
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(
        "Shows loss, accuracy and more of what vitrine train --out has written to a folder, or is writing "
        "now. "
        "Drop such folders on the window, or name one:");
    ImGui::PopTextWrapPos();
    ImGui::Spacing();
    return draw_opener(screen, actions);
  }
  screen.exported = area_left();
  // Of many in a small window the list has a third, and scrolls.
  const float lines = ImGui::GetFrameHeightWithSpacing() * static_cast<float>(runs.size());
  const float third = std::max(ImGui::GetContentRegionAvail().y * 0.34f, ImGui::GetFrameHeightWithSpacing());
  ImGui::BeginChild("runs", {0, std::min(lines, third)});
  for (size_t i = 0; i < runs.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    draw_run(screen, actions, *runs[i], i);
    ImGui::PopID();
  }
  ImGui::EndChild();
  draw_opener(screen, actions);
  ImGui::Spacing();

  double last_step = 1;
  for (const auto& run : runs) last_step = std::max(last_step, static_cast<double>(run->curves.step));
  ImGui::BeginChild("plots");
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const float gap = 16 * screen.scale;
  const int columns = space.x > 900 * screen.scale ? 3 : space.x > 500 * screen.scale ? 2 : 1;
  const int rows = static_cast<int>(kinds.size()) / columns;
  const float spacing = ImGui::GetStyle().ItemSpacing.y;
  const float height = std::max(
      130 * screen.scale, (space.y - spacing * static_cast<float>(rows - 1)) / static_cast<float>(rows));
  const float width = (space.x - gap * static_cast<float>(columns - 1)) / static_cast<float>(columns);
  // All of them point at the step that the mouse is at in one, which the next frame knows.
  static double pointed = -1;
  double points_at = pointed;
  bool hovered = false;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (i % static_cast<size_t>(columns) != 0) ImGui::SameLine(0, gap);
    ImGui::BeginGroup();
    const double before = points_at;
    draw_plot(screen, kinds[i], runs, {width, height}, last_step, points_at);
    hovered = hovered || points_at != before || (points_at >= 0 && ImGui::IsItemHovered());
    ImGui::EndGroup();
    hovered = hovered || ImGui::IsItemHovered();
  }
  ImGui::EndChild();
  pointed = hovered ? points_at : -1;
}

}  // namespace vitrine::desktop

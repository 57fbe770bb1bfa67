// Curves over the steps of a training: a plot's place, its axes, and where its values lie.
#pragma once

#include <imgui.h>

#include <functional>
#include <string>

#include "apps/desktop/engine/axis.h"
#include "apps/desktop/screen.h"

namespace vitrine::desktop {

class Plot {
 public:
  using Label = std::function<std::string(double value)>;

  // Takes so much space, its title included, and draws the axes into it.
  Plot(const char* title, ImVec2 size, double last_step, const AxisScale& scale, const Label& label);

  float x(double step) const;
  float y(double value) const;
  float left() const { return from_.x; }
  float right() const { return to_.x; }
  float top() const { return from_.y; }
  float bottom() const { return to_.y; }
  // Where the curves are.
  Area area() const;
  bool hovered() const { return hovered_; }
  // Below the mouse.
  double mouse_step() const;
  ImDrawList& list() { return *list_; }

 private:
  AxisScale scale_;
  double last_;
  ImVec2 from_, to_;
  bool hovered_ = false;
  ImDrawList* list_ = nullptr;
};

}  // namespace vitrine::desktop

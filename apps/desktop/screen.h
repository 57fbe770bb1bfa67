// What the window shows, whichever device draws it, and where: state of the UI's thread.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "apps/desktop/view.h"

namespace vitrine::desktop {

// A part of the window, in its units.
struct Area {
  float left = 0, top = 0, width = 0, height = 0;
};

class Screen {
 public:
  explicit Screen(bool in_the_dark) : dark(in_the_dark) {}

  View view() const { return view_; }
  View picture_view() const { return picture_view_; }  // of the views of the picture, the last one
  void show(View view) {
    view_ = view;
    if (shows_picture(view)) picture_view_ = view;
    show_next_frames(3);
  }

  // So many frames are drawn as fast as the display shows them, whether anybody moves the mouse or not.
  void show_next_frames(int count) { frames_wanted_ = std::max(frames_wanted_, count); }
  bool wants_frames() const { return frames_wanted_ > 0; }
  void drew_frame() { frames_wanted_ = std::max(0, frames_wanted_ - 1); }

  bool dark;
  bool help = false;  // the list of keys
  bool closing = false;
  bool asks_what_to_open = false;  // until the panel has taken it
  // Set for every frame: units of the window for what takes one at a scale of 100 %, and pixels a unit.
  float scale = 1, pixels_across = 1, pixels_down = 1;
  // Set by panels in every frame: parts of the window with their names for scripts, and what an exported
  // picture shows.
  std::map<std::string, Area> areas;
  Area exported;

 private:
  View view_ = View::attention, picture_view_ = View::attention;
  int frames_wanted_ = 3;
};

}  // namespace vitrine::desktop

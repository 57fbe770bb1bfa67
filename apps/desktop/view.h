// The views of the app, by the names that scripts use.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace vitrine::desktop {

enum class View : uint8_t {
  answers,    // the picture alone, and what the model says of it
  attention,  // one map over the picture
  grid,       // all heads of a layer
  rollout,
  features,  // principal components of the patches
  words,     // how like words the patches are
  structure,
  profile,
  device,
  draw,
  train,
  runs,  // curves of trainings that others make
};

struct ViewName {
  View view;
  std::string_view name;   // in scripts
  std::string_view title;  // on the screen
};
inline constexpr std::array<ViewName, 12> view_names{{{View::answers, "answers", "Picture"},
                                                      {View::attention, "attention", "Attention"},
                                                      {View::grid, "grid", "All heads"},
                                                      {View::rollout, "rollout", "Rollout"},
                                                      {View::features, "features", "Features"},
                                                      {View::words, "words", "Words"},
                                                      {View::structure, "structure", "Structure"},
                                                      {View::profile, "profile", "Profile"},
                                                      {View::device, "device", "Device"},
                                                      {View::draw, "draw", "Draw a digit"},
                                                      {View::train, "train", "Train"},
                                                      {View::runs, "runs", "Runs"}}};

constexpr bool shows_picture(View view) { return view <= View::words; }
// Shows what PictureView::heat() paints.
constexpr bool is_map(View view) {
  return view == View::attention || view == View::grid || view == View::rollout;
}

constexpr std::optional<View> view_named(std::string_view name) {
  for (const ViewName& known : view_names) {
    if (known.name == name) return known.view;
  }
  return std::nullopt;
}
constexpr const ViewName& name_of(View view) { return view_names[static_cast<size_t>(view)]; }

}  // namespace vitrine::desktop

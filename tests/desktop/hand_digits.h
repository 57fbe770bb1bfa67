// Digits as a hand draws them with a mouse: strokes of many shapes, sizes, places and slants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/desktop/engine/digit_canvas.h"

namespace vitrine::test {

// One way to write a digit: in the unit square, upright.
struct HandShape {
  uint32_t digit = 0;
  std::string name;   // "7 with a bar"
  bool plain = true;  // the usual ways, which everybody would read at once
  std::vector<std::vector<desktop::CanvasPoint>> strokes;
};
std::vector<HandShape> hand_shapes();

// What a hand does to a shape.
struct HandStyle {
  std::string name;
  double height = 0.7;      // as a share of the canvas
  double x = 0.5, y = 0.5;  // where its middle comes to
  double aspect = 0.65;     // width by height
  double slant = 0;         // how far the top leans to the right, by the height
  double turn = 0;          // radians, clockwise
  double wobble = 0;        // of the points, by the height
  double pen = 0.07;        // of the canvas
  double tempo = 0.03;      // distance of the points that the mouse reports, by the height
  uint64_t seed = 0;        // of the wobble
};
std::vector<HandStyle> hand_styles();
// Hands in a hurry: all of the above at once, drawn by chance, and more of it.
std::vector<HandStyle> hasty_styles(uint64_t count);

std::vector<desktop::Stroke> written(const HandShape& shape, const HandStyle& style);

}  // namespace vitrine::test

#include "tests/desktop/hand_digits.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/util/philox.h"

namespace vitrine::test {
namespace {

using desktop::CanvasPoint;
using Line = std::vector<CanvasPoint>;

Line points(std::initializer_list<CanvasPoint> list) { return list; }

// Degrees go clockwise as one sees it (y points down): 0 is right, 90 below, 270 above.
Line arc(double x, double y, double rx, double ry, double from, double to) {
  Line line;
  const int steps = std::max(4, static_cast<int>(std::abs(to - from) / 10));
  for (int i = 0; i <= steps; ++i) {
    const double angle = (from + (to - from) * i / steps) * std::numbers::pi / 180;
    line.push_back({x + rx * std::cos(angle), y + ry * std::sin(angle)});
  }
  return line;
}

Line joined(std::initializer_list<Line> parts) {
  Line all;
  for (const Line& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// A figure of eight that begins and ends at its top, in one stroke.
Line eight() {
  Line line;
  for (int i = 0; i <= 64; ++i) {
    const double t = 2 * std::numbers::pi * i / 64;
    const double widest = std::cos(t) > 0 ? 0.4 : 0.5;
    line.push_back({0.5 - widest * std::sin(2 * t), 0.5 - 0.5 * std::cos(t)});
  }
  return line;
}

double length_of(CanvasPoint a, CanvasPoint b) { return std::hypot(a.x - b.x, a.y - b.y); }

// The same line with points at equal distances, as a mouse reports them.
Line resampled(const Line& line, double distance) {
  Line result{line.front()};
  double left = distance;
  for (size_t i = 1; i < line.size(); ++i) {
    CanvasPoint at = line[i - 1];
    double rest = length_of(at, line[i]);
    while (rest >= left && rest > 0) {
      const double share = left / rest;
      at = {at.x + share * (line[i].x - at.x), at.y + share * (line[i].y - at.y)};
      result.push_back(at);
      rest = length_of(at, line[i]);
      left = distance;
    }
    left -= rest;
  }
  result.push_back(line.back());
  return result;
}

}  // namespace

std::vector<HandShape> hand_shapes() {
  return {
      {0, "0 round", true, {arc(0.5, 0.5, 0.5, 0.5, 270, -90)}},
      {0, "0 narrow, not quite closed", true, {arc(0.5, 0.5, 0.35, 0.5, 280, -65)}},
      {1, "1 with a flag", true, {points({{0.2, 0.28}, {0.55, 0}, {0.55, 1}})}},
      {1,
       "1 with a flag and a foot",
       true,
       {points({{0.2, 0.25}, {0.5, 0}, {0.5, 1}}), points({{0.15, 1}, {0.85, 1}})}},
      {1, "1 as a bare line", false, {points({{0.5, 0}, {0.5, 1}})}},
      {1, "1 with a long flag", false, {points({{0, 0.5}, {0.7, 0}, {0.7, 1}})}},
      {2, "2 like a z", false, {points({{0.05, 0.12}, {0.5, 0}, {0.85, 0.2}, {0.05, 1}, {1, 1}})}},
      {2,
       "2 round",
       true,
       {joined({arc(0.5, 0.28, 0.42, 0.28, 190, 380), points({{0.75, 0.58}, {0.05, 1}, {0.95, 1}})})}},
      {2,
       "2 with a loop",
       false,
       {joined({arc(0.5, 0.28, 0.42, 0.28, 190, 385), points({{0.6, 0.7}, {0.3, 0.95}}),
                arc(0.2, 0.9, 0.14, 0.1, 60, 300), points({{0.5, 0.92}, {0.75, 1}, {0.98, 0.92}})})}},
      {3,
       "3 round",
       true,
       {joined({arc(0.45, 0.25, 0.42, 0.25, 200, 450), arc(0.45, 0.75, 0.48, 0.25, 270, 520)})}},
      {3,
       "3 with a flat top",
       false,
       {joined({points({{0.1, 0}, {0.85, 0}, {0.42, 0.4}}), arc(0.42, 0.7, 0.48, 0.3, 270, 515)})}},
      {4, "4 closed", true, {points({{0.7, 1}, {0.7, 0}, {0, 0.68}, {1, 0.68}})}},
      {4, "4 open", true, {points({{0.2, 0}, {0.1, 0.55}, {0.95, 0.55}}), points({{0.72, 0.1}, {0.72, 1}})}},
      {4,
       "4 in two strokes",
       true,
       {points({{0.6, 0}, {0, 0.65}, {1, 0.65}}), points({{0.68, 0.35}, {0.68, 1}})}},
      {5,
       "5 in two strokes",
       true,
       {joined({points({{0.15, 0}, {0.12, 0.45}}), arc(0.45, 0.68, 0.48, 0.32, 225, 500)}),
        points({{0.15, 0}, {0.9, 0}})}},
      {5,
       "5 in one stroke",
       true,
       {joined({points({{0.88, 0}, {0.2, 0}, {0.15, 0.45}}), arc(0.45, 0.7, 0.48, 0.3, 225, 500)})}},
      {5,
       "5 like an s",
       false,
       {joined({arc(0.5, 0.25, 0.42, 0.25, 330, 90), arc(0.5, 0.75, 0.45, 0.25, 270, 510)})}},
      {6,
       "6 round",
       true,
       {joined({points({{0.78, 0.02}, {0.5, 0.12}, {0.22, 0.36}}), arc(0.5, 0.68, 0.42, 0.32, 195, -180)})}},
      {6,
       "6 with a straight back",
       true,
       {joined({points({{0.6, 0}, {0.15, 0.6}}), arc(0.5, 0.72, 0.4, 0.28, 190, -170)})}},
      {7, "7 plain", true, {points({{0.05, 0}, {0.95, 0}, {0.35, 1}})}},
      {7,
       "7 with a bar",
       false,
       {points({{0.05, 0}, {0.95, 0}, {0.35, 1}}), points({{0.3, 0.5}, {0.9, 0.5}})}},
      {7, "7 curved", false, {joined({points({{0, 0.06}, {0.9, 0}}), arc(1.2, 1, 0.75, 0.95, 245, 180)})}},
      {7, "7 with a serif", false, {points({{0.05, 0.15}, {0.08, 0}, {0.95, 0}, {0.35, 1}})}},
      {8, "8 in one stroke", true, {eight()}},
      {8,
       "8 of two rings",
       true,
       {arc(0.5, 0.24, 0.36, 0.24, 90, 450), arc(0.5, 0.74, 0.45, 0.26, 270, 630)}},
      {8,
       "8 not closed at its top",
       false,
       {joined({arc(0.5, 0.25, 0.38, 0.25, 320, 90), arc(0.5, 0.75, 0.45, 0.25, 270, 630),
                arc(0.5, 0.25, 0.38, 0.25, 90, -10)})}},
      {9,
       "9 not quite closed",
       false,
       {joined({arc(0.45, 0.3, 0.4, 0.3, -30, -350), points({{0.87, 0.1}, {0.8, 1}})})}},
      {9,
       "9 with a straight tail",
       true,
       {joined({arc(0.45, 0.3, 0.4, 0.3, 0, -360), points({{0.85, 0.3}, {0.8, 1}})})}},
      {9,
       "9 with a curved tail",
       true,
       {joined({arc(0.48, 0.3, 0.42, 0.3, 0, -360), points({{0.9, 0.45}}),
                arc(0.45, 0.66, 0.44, 0.34, 0, 140)})}},
  };
}

std::vector<HandStyle> hand_styles() {
  return {
      {.name = "plain"},
      {.name = "small, upper left", .height = 0.22, .x = 0.2, .y = 0.22},
      {.name = "small, lower right", .height = 0.25, .x = 0.8, .y = 0.8, .pen = 0.04},
      {.name = "very small, coarse pen", .height = 0.15, .x = 0.6, .y = 0.3, .pen = 0.09},
      {.name = "as large as the canvas", .height = 0.95, .pen = 0.05},
      {.name = "thin pen", .pen = 0.02},
      {.name = "bold pen", .pen = 0.14},
      {.name = "wide", .height = 0.5, .aspect = 1.0},
      {.name = "narrow", .aspect = 0.45},
      {.name = "leaning right", .slant = 0.3},
      {.name = "leaning left", .slant = -0.2},
      {.name = "turned right", .turn = 0.2},
      {.name = "turned left", .turn = -0.2},
      {.name = "shaky", .wobble = 0.025, .seed = 1},
      {.name = "shaky, small", .height = 0.3, .x = 0.3, .y = 0.6, .wobble = 0.03, .seed = 2},
      {.name = "fast", .tempo = 0.16},
      {.name = "fast and leaning", .slant = 0.25, .wobble = 0.02, .tempo = 0.12, .seed = 3},
  };
}

std::vector<HandStyle> hasty_styles(uint64_t count) {
  std::vector<HandStyle> styles;
  const RandomStream stream{7, 7};
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t block = 3 * i;
    Philox::Block words = stream.block(block);
    size_t used = 0;
    const auto between = [&](double low, double high) {
      if (used == words.size()) words = stream.block(++block), used = 0;
      return low + (high - low) * uniform_from(words[used++]);
    };
    HandStyle style{.name = "hasty " + std::to_string(i), .seed = 100 + i};
    style.height = between(0.15, 0.8);
    const double room = (1 - style.height) / 2;
    style.x = 0.5 + between(-room, room);
    style.y = 0.5 + between(-room, room);
    style.aspect = between(0.4, 1.1);
    style.slant = between(-0.3, 0.45);
    style.turn = between(-0.2, 0.2);
    style.wobble = between(0.01, 0.06);
    style.pen = between(0.02, 0.12);
    style.tempo = between(0.03, 0.2);
    styles.push_back(style);
  }
  return styles;
}

std::vector<desktop::Stroke> written(const HandShape& shape, const HandStyle& style) {
  const RandomStream stream{style.seed, shape.digit};
  uint64_t block = 0;
  std::vector<desktop::Stroke> strokes;
  for (const Line& line : shape.strokes) {
    desktop::Stroke stroke{{}, style.pen};
    Line even;
    for (const CanvasPoint& p : line) even.push_back({(p.x - 0.5) * style.aspect, p.y - 0.5});
    even = resampled(even, style.tempo);
    // Arrows at every fifth point or so, and smooth between them: a hand shakes slowly.
    const auto arrow = [&](uint64_t i) {
      const Philox::Block words = stream.block(block + i);
      return CanvasPoint{2 * uniform_from(words[0]) - 1.0, 2 * uniform_from(words[1]) - 1.0};
    };
    for (size_t i = 0; i < even.size(); ++i) {
      const double at = static_cast<double>(i) * style.tempo / 0.15, t = at - std::floor(at);
      const auto cell = static_cast<uint64_t>(at);
      const CanvasPoint a = arrow(cell), b = arrow(cell + 1);
      const double smooth = t * t * (3 - 2 * t);
      double x = even[i].x + style.wobble * (a.x + smooth * (b.x - a.x));
      double y = even[i].y + style.wobble * (a.y + smooth * (b.y - a.y));
      x -= style.slant * y;
      const double c = std::cos(style.turn), s = std::sin(style.turn);
      stroke.points.push_back(
          {style.x + style.height * (c * x - s * y), style.y + style.height * (s * x + c * y)});
    }
    block += 1000;
    strokes.push_back(std::move(stroke));
  }
  return strokes;
}

}  // namespace vitrine::test

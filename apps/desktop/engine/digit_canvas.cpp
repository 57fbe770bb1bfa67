#include "apps/desktop/engine/digit_canvas.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vitrine::desktop {
namespace {

// Strokes whose points all lie within this share of the canvas are dots.
constexpr double dot_extent = 0.01;

bool is_number(CanvasPoint p) { return std::isfinite(p.x) && std::isfinite(p.y); }

CanvasPoint within(CanvasPoint p) { return {std::clamp(p.x, 0.0, 1.0), std::clamp(p.y, 0.0, 1.0)}; }

struct Extent {
  double left = std::numeric_limits<double>::infinity(), top = left, right = -left, bottom = -left;

  void add(CanvasPoint p) {
    left = std::min(left, p.x);
    right = std::max(right, p.x);
    top = std::min(top, p.y);
    bottom = std::max(bottom, p.y);
  }
  double longest() const { return std::max(right - left, bottom - top); }
  CanvasPoint middle() const { return {(left + right) / 2, (top + bottom) / 2}; }
};

// From the canvas to pixels.
struct Placement {
  double scale = 1;
  CanvasPoint from, to;  // this point of the canvas comes to that pixel
  CanvasPoint operator()(CanvasPoint p) const {
    return {to.x + scale * (p.x - from.x), to.y + scale * (p.y - from.y)};
  }
};

double distance_to_segment(CanvasPoint p, CanvasPoint a, CanvasPoint b) {
  const double dx = b.x - a.x, dy = b.y - a.y, squared = dx * dx + dy * dy;
  const double along =
      squared > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / squared, 0.0, 1.0) : 0.0;
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

// The share of a pixel that a round pen covers, whose middle line passes at this distance. A pen that is
// thinner than a pixel covers no more than its width.
double coverage(double distance, double radius) {
  return std::clamp(radius + 0.5 - distance, 0.0, std::min(1.0, 2 * radius));
}

// Coverage [size, size]; where strokes cross, that of the one that covers more.
class Ink {
 public:
  explicit Ink(uint32_t size) : size_(size), covered_(size_t{size} * size) {}

  void draw(const Stroke& stroke, double width, const Placement& place) {
    CanvasPoint before = place(stroke.points.front());
    if (stroke.points.size() == 1) segment(before, before, width / 2);
    for (size_t i = 1; i < stroke.points.size(); ++i) {
      const CanvasPoint next = place(stroke.points[i]);
      segment(before, next, width / 2);
      before = next;
    }
  }

  CanvasPoint center_of_mass() const {
    double mass = 0, x = 0, y = 0;
    for (size_t i = 0; i < covered_.size(); ++i) {
      mass += covered_[i];
      x += covered_[i] * (static_cast<double>(i % size_) + 0.5);
      y += covered_[i] * (static_cast<double>(i / size_) + 0.5);
    }
    return {x / mass, y / mass};
  }

  GreyPicture picture() const {
    GreyPicture made{size_, {}};
    made.pixels.reserve(covered_.size());
    for (const double share : covered_) {
      made.pixels.push_back(static_cast<uint8_t>(std::lround(share * 255)));
    }
    return made;
  }

 private:
  void segment(CanvasPoint a, CanvasPoint b, double radius) {
    const double reach = radius + 1;
    const auto pixel = [&](double v) {
      return static_cast<uint32_t>(std::clamp(std::floor(v), 0.0, static_cast<double>(size_)));
    };
    const uint32_t left = pixel(std::min(a.x, b.x) - reach), right = pixel(std::max(a.x, b.x) + reach + 1);
    const uint32_t top = pixel(std::min(a.y, b.y) - reach), bottom = pixel(std::max(a.y, b.y) + reach + 1);
    for (uint32_t y = top; y < bottom; ++y) {
      for (uint32_t x = left; x < right; ++x) {
        const double share = coverage(distance_to_segment({x + 0.5, y + 0.5}, a, b), radius);
        double& there = covered_[size_t{y} * size_ + x];
        there = std::max(there, share);
      }
    }
  }

  uint32_t size_;
  std::vector<double> covered_;
};

}  // namespace

void DigitCanvas::set_pen_width(double width) {
  if (std::isfinite(width)) pen_width_ = std::clamp(width, 0.005, 0.5);
}

void DigitCanvas::begin_stroke(CanvasPoint point) {
  drawing_ = false;
  if (!is_number(point)) return;
  strokes_.push_back({{within(point)}, pen_width_});
  drawing_ = true;
  ++version_;
}

void DigitCanvas::extend_stroke(CanvasPoint point) {
  if (!drawing_ || !is_number(point)) return;
  std::vector<CanvasPoint>& points = strokes_.back().points;
  const CanvasPoint next = within(point);
  if (next == points.back()) return;
  points.push_back(next);
  ++version_;
}

void DigitCanvas::add_stroke(std::span<const CanvasPoint> points) {
  for (const CanvasPoint& point : points) drawing_ ? extend_stroke(point) : begin_stroke(point);
  end_stroke();
}

void DigitCanvas::undo() {
  drawing_ = false;
  if (strokes_.empty()) return;
  strokes_.pop_back();
  ++version_;
}

void DigitCanvas::clear() {
  drawing_ = false;
  if (strokes_.empty()) return;
  strokes_.clear();
  ++version_;
}

GreyPicture canvas_picture(std::span<const Stroke> strokes, uint32_t size) {
  Ink ink(size);
  for (const Stroke& stroke : strokes) ink.draw(stroke, stroke.width * size, {.scale = double(size)});
  return ink.picture();
}

std::optional<GreyPicture> framed_digit(std::span<const Stroke> strokes, uint32_t size,
                                        const DigitFraming& framing) {
  Extent extent;
  double pen = 0, points = 0;
  for (const Stroke& stroke : strokes) {
    for (const CanvasPoint& point : stroke.points) extent.add(point);
    pen += stroke.width * static_cast<double>(stroke.points.size());
    points += static_cast<double>(stroke.points.size());
  }
  if (points == 0 || extent.longest() < dot_extent) return std::nullopt;
  pen /= points;

  const double unit = size / 28.0, longest = extent.longest(), wanted = framing.extent * unit;
  const double width =
      std::clamp(pen * wanted / (longest + pen), framing.thinnest * unit, framing.boldest * unit);
  Placement place{
      .scale = (wanted - width) / longest, .from = extent.middle(), .to = {size / 2.0, size / 2.0}};
  const auto drawn = [&] {
    Ink ink(size);
    for (const Stroke& stroke : strokes) ink.draw(stroke, width, place);
    return ink;
  };
  if (framing.center == DigitFraming::Center::mass) {
    const CanvasPoint mass = drawn().center_of_mass();
    // The ink stays within the picture.
    const auto moved = [&](double by, double length) {
      const double room = std::max(0.0, (size - place.scale * length - width) / 2);
      return size / 2.0 + std::clamp(by, -room, room);
    };
    place.to = {moved(size / 2.0 - mass.x, extent.right - extent.left),
                moved(size / 2.0 - mass.y, extent.bottom - extent.top)};
  }
  return drawn().picture();
}

}  // namespace vitrine::desktop

#include "train/digits/rasterizer.h"

#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_OUTLINE_H

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "runtime/util/error.h"

namespace vitrine {
namespace {

// FreeType counts points in 16 bits, the sign included.
constexpr size_t most_points = 32000;

class PolygonMaker {
 public:
  explicit PolygonMaker(double longest_edge) : longest_(longest_edge) {}

  // FreeType is C: nothing may be thrown through it.
  static int move_to(const FT_Vector* to, void* self) {
    return guarded([&] { return get(self).begin(*to); });
  }
  static int line_to(const FT_Vector* to, void* self) {
    return guarded([&] { return get(self).curve({point(*to)}); });
  }
  static int conic_to(const FT_Vector* a, const FT_Vector* to, void* self) {
    return guarded([&] { return get(self).curve({point(*a), point(*to)}); });
  }
  static int cubic_to(const FT_Vector* a, const FT_Vector* b, const FT_Vector* to, void* self) {
    return guarded([&] { return get(self).curve({point(*a), point(*b), point(*to)}); });
  }

  // Closes the last contour as the format means it.
  void close() {
    if (!polygons.empty() && !polygons.back().empty()) curve({polygons.back().front()});
  }

  Polygons polygons;

 private:
  template <typename Work>
  static int guarded(const Work& work) {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      return 1;
    }
  }

  static PolygonMaker& get(void* self) { return *static_cast<PolygonMaker*>(self); }
  static Point point(const FT_Vector& v) {
    return {static_cast<double>(v.x) / GlyphOutline::units_per_em,
            -static_cast<double>(v.y) / GlyphOutline::units_per_em};
  }

  int begin(const FT_Vector& to) {
    close();
    polygons.push_back({point(to)});
    return 0;
  }

  // A Bezier curve from the last point, of any degree (de Casteljau).
  int curve(std::vector<Point> controls) {
    std::vector<Point>& polygon = polygons.back();
    controls.insert(controls.begin(), polygon.back());
    double length = 0;
    for (size_t i = 1; i < controls.size(); ++i) length += distance(controls[i - 1], controls[i]);
    const double wanted = std::ceil(length / longest_) + (controls.size() > 2 ? 2 : 0);
    const int edges = static_cast<int>(std::clamp(wanted, 1.0, 1000.0));
    for (int e = 1; e <= edges; ++e) {
      const double t = static_cast<double>(e) / edges;
      std::vector<Point> level = controls;
      while (level.size() > 1) {
        for (size_t i = 0; i + 1 < level.size(); ++i) {
          level[i].x += t * (level[i + 1].x - level[i].x);
          level[i].y += t * (level[i + 1].y - level[i].y);
        }
        level.pop_back();
      }
      polygon.push_back(level[0]);
    }
    return polygon.size() < most_points ? 0 : 1;
  }

  static double distance(Point a, Point b) {
    return std::sqrt((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y));
  }

  double longest_;
};

}  // namespace

Bounds box_around(const Polygons& polygons) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  Bounds box{inf, inf, -inf, -inf};
  for (const std::vector<Point>& polygon : polygons) {
    for (const Point& p : polygon) {
      box = {std::min(box.left, p.x), std::min(box.top, p.y), std::max(box.right, p.x),
             std::max(box.bottom, p.y)};
    }
  }
  return box.left <= box.right ? box : Bounds{};
}

double stroke_width(const Polygons& polygons) {
  double area = 0, length = 0;
  for (const std::vector<Point>& polygon : polygons) {
    for (size_t i = 0; i < polygon.size(); ++i) {
      const Point a = polygon[i], b = polygon[(i + 1) % polygon.size()];
      area += (a.x * b.y - b.x * a.y) / 2;
      length += std::sqrt((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y));
    }
  }
  return length > 0 ? 2 * std::abs(area) / length : 0;
}

struct Rasterizer::Library {
  FT_Library handle = nullptr;
};

Rasterizer::Rasterizer() : library_(std::make_unique<Library>()) {
  if (FT_Init_FreeType(&library_->handle) != 0)
    throw Error(ErrorCode::failed, "FreeType could not be started");
}

Rasterizer::~Rasterizer() { FT_Done_FreeType(library_->handle); }

void* Rasterizer::library() const { return library_->handle; }

Polygons Rasterizer::flatten(const GlyphOutline& glyph, double bolder_by, double longest_edge) const {
  if (glyph.x.empty() || glyph.x.size() > most_points) return {};
  std::vector<FT_Vector> points(glyph.x.size());
  for (size_t i = 0; i < points.size(); ++i) points[i] = {glyph.x[i], glyph.y[i]};
  FT_Outline outline{};
  // Older versions declare these without const or with a sign; the outline's tags and contours are not
  // changed.
  std::vector<std::remove_pointer_t<decltype(outline.tags)>> tags(glyph.tags.begin(), glyph.tags.end());
  std::vector<std::remove_pointer_t<decltype(outline.contours)>> ends(glyph.contour_ends.begin(),
                                                                      glyph.contour_ends.end());
  outline.n_points = static_cast<decltype(outline.n_points)>(points.size());
  outline.n_contours = static_cast<decltype(outline.n_contours)>(ends.size());
  outline.points = points.data();
  outline.tags = tags.data();
  outline.contours = ends.data();
  const auto strength = static_cast<FT_Pos>(std::floor(bolder_by * GlyphOutline::units_per_em + 0.5));
  if (strength != 0 && FT_Outline_EmboldenXY(&outline, strength, strength) != 0) return {};
  PolygonMaker maker(longest_edge);
  FT_Outline_Funcs functions{};
  functions.move_to = PolygonMaker::move_to;
  functions.line_to = PolygonMaker::line_to;
  functions.conic_to = PolygonMaker::conic_to;
  functions.cubic_to = PolygonMaker::cubic_to;
  if (FT_Outline_Decompose(&outline, &functions, &maker) != 0) return {};
  maker.close();
  return std::move(maker.polygons);
}

void Rasterizer::fill(const Polygons& polygons, uint32_t height, uint32_t width,
                      std::span<uint8_t> coverage) const {
  std::ranges::fill(coverage, uint8_t{0});
  FT_Outline outline{};
  std::vector<FT_Vector> points;
  std::vector<std::remove_pointer_t<decltype(outline.contours)>> ends;
  // FreeType draws what lies within 16 bits of pixels; nothing that is wanted lies so far out.
  const auto fixed = [](double v) {
    return static_cast<FT_Pos>(std::floor(std::clamp(v, -8e3, 8e3) * 64 + 0.5));
  };
  for (const std::vector<Point>& polygon : polygons) {
    if (points.size() + polygon.size() > most_points) break;
    for (const Point& p : polygon) points.push_back({fixed(p.x), fixed(height - p.y)});
    ends.push_back(static_cast<std::remove_pointer_t<decltype(outline.contours)>>(points.size() - 1));
  }
  if (points.empty()) return;
  std::vector<std::remove_pointer_t<decltype(outline.tags)>> tags(points.size(), FT_CURVE_TAG_ON);
  outline.n_points = static_cast<decltype(outline.n_points)>(points.size());
  outline.n_contours = static_cast<decltype(outline.n_contours)>(ends.size());
  outline.points = points.data();
  outline.tags = tags.data();
  outline.contours = ends.data();
  FT_Bitmap bitmap{};
  bitmap.rows = height;
  bitmap.width = width;
  bitmap.pitch = static_cast<int>(width);
  bitmap.buffer = coverage.data();
  bitmap.num_grays = 256;
  bitmap.pixel_mode = FT_PIXEL_MODE_GRAY;
  if (FT_Outline_Get_Bitmap(library_->handle, &outline, &bitmap) != 0)
    throw Error(ErrorCode::failed, "FreeType could not draw a digit");
}

}  // namespace vitrine

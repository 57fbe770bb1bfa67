// Outlines of glyphs, and pictures of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace vitrine {

// As fonts store it: lines and curves. The unit is 1/16384 of the font's em, y points up.
struct GlyphOutline {
  static constexpr int32_t units_per_em = 16384;
  std::vector<int32_t> x, y;
  std::vector<uint8_t> tags;           // FreeType's: which points are on the curve
  std::vector<uint16_t> contour_ends;  // the last point of each
};

struct Point {
  double x = 0, y = 0;
};
using Polygons = std::vector<std::vector<Point>>;

struct Bounds {
  double left = 0, top = 0, right = 0, bottom = 0;
  double width() const { return right - left; }
  double height() const { return bottom - top; }
};
Bounds box_around(const Polygons& polygons);

// How wide the strokes are on average: twice the area, by the length of the edges.
double stroke_width(const Polygons& polygons);

// FreeType's part of the drawing. One a thread.
class Rasterizer {
 public:
  Rasterizer();
  ~Rasterizer();
  Rasterizer(const Rasterizer&) = delete;
  Rasterizer& operator=(const Rasterizer&) = delete;

  // The outline in ems, y pointing down, every stroke made wider (or thinner) by so many ems; no edge is
  // longer than `longest_edge`, so that it bends where points are moved. Empty if FreeType can't do it.
  Polygons flatten(const GlyphOutline& outline, double bolder_by, double longest_edge) const;

  // Coverage of each pixel from 0 to 255: the share of its area that is inside. In pixels, y pointing down.
  void fill(const Polygons& polygons, uint32_t height, uint32_t width, std::span<uint8_t> coverage) const;

  void* library() const;  // an FT_Library

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace vitrine

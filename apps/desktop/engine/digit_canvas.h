// A digit as it is drawn with the mouse, and the picture of it that a digit model is shown.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace vitrine::desktop {

// Of the canvas: (0, 0) is its upper left corner, (1, 1) its lower right one.
struct CanvasPoint {
  double x = 0, y = 0;
  bool operator==(const CanvasPoint&) const = default;
};

struct Stroke {
  std::vector<CanvasPoint> points;  // one is a dot
  double width = 0;                 // of the pen, as a share of the canvas' side
};

class DigitCanvas {
 public:
  // Of the strokes that begin from now on.
  void set_pen_width(double width);
  double pen_width() const { return pen_width_; }

  // A point outside the canvas is moved to its edge; one that is no number is left out.
  void begin_stroke(CanvasPoint point);
  void extend_stroke(CanvasPoint point);  // nothing happens unless a stroke is under way
  void end_stroke() { drawing_ = false; }
  void add_stroke(std::span<const CanvasPoint> points);
  bool drawing() const { return drawing_; }

  void undo();  // takes the last stroke away, also the one under way
  void clear();

  bool empty() const { return strokes_.empty(); }
  const std::vector<Stroke>& strokes() const { return strokes_; }
  // Another number after every change.
  uint64_t version() const { return version_; }

 private:
  std::vector<Stroke> strokes_;
  double pen_width_ = 0.07;
  bool drawing_ = false;
  uint64_t version_ = 0;
};

// White strokes on black, [size, size].
struct GreyPicture {
  uint32_t size = 0;
  std::vector<uint8_t> pixels;
};

// What lies on the canvas, as it lies there.
GreyPicture canvas_picture(std::span<const Stroke> strokes, uint32_t size);

// How a digit is brought to the size and place that a model has learned. Lengths are in pixels of a picture
// of 28 x 28, and grow with it. The default is what the shipped model reads best (tests/desktop measures it).
struct DigitFraming {
  enum class Center : uint8_t { box, mass };
  Center center = Center::box;
  double extent = 19;                  // the longer side of the box around the ink
  double thinnest = 2.2, boldest = 3;  // the pen's width
  bool operator==(const DigitFraming&) const = default;
};

// Nothing where nothing is drawn, or only dots. The strokes are drawn anew at that size rather than the
// canvas' picture made smaller: so a small digit has no coarse strokes, nor a large one faint ones.
std::optional<GreyPicture> framed_digit(std::span<const Stroke> strokes, uint32_t size = 28,
                                        const DigitFraming& framing = {});

}  // namespace vitrine::desktop

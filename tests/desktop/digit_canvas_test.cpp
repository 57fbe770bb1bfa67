// What is drawn on the canvas, and what the shipped model makes of it.
#include "apps/desktop/engine/digit_canvas.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "apps/desktop/engine/digit_reader.h"
#include "model/run/runner.h"
#include "tests/desktop/hand_digits.h"
#include "tests/support/path.h"
#include "tests/support/test_device.h"

using namespace vitrine;
using namespace vitrine::desktop;

namespace {

const test::Path digits_model = test::Path(VITRINE_TEST_DATA).parent_path() / "assets" / "digits";

// As the mouse would have left it.
DigitCanvas canvas_of(const test::HandShape& shape, const test::HandStyle& style) {
  DigitCanvas canvas;
  for (const Stroke& stroke : test::written(shape, style)) {
    canvas.set_pen_width(stroke.width);
    canvas.add_stroke(stroke.points);
  }
  return canvas;
}

struct Sample {
  test::HandShape shape;
  test::HandStyle style;
  DigitCanvas canvas;
};

std::vector<Sample> samples_of(const std::vector<test::HandStyle>& styles) {
  std::vector<Sample> samples;
  for (const test::HandShape& shape : test::hand_shapes()) {
    for (const test::HandStyle& style : styles) samples.push_back({shape, style, canvas_of(shape, style)});
  }
  return samples;
}
std::vector<Sample> all_samples() { return samples_of(test::hand_styles()); }

class ShippedModel {
 public:
  ShippedModel()
      : model_(open_model({.model = digits_model})),
        values_(model_.preprocess.values(1)),
        runner_(*test::test_device().pipelines, model_, {.result = Result::probabilities}) {}

  // The digits that pictures one after the other are taken for.
  std::vector<uint32_t> read(const std::vector<GreyPicture>& pictures) {
    std::vector<float> images;
    for (const GreyPicture& picture : pictures) {
      for (const uint8_t pixel : picture.pixels) images.push_back(values_[pixel]);
    }
    const std::vector<float> results = runner_.run(images, 64);
    std::vector<uint32_t> digits;
    for (size_t i = 0; i < pictures.size(); ++i) {
      const auto first = results.begin() + static_cast<ptrdiff_t>(i * 10);
      digits.push_back(static_cast<uint32_t>(std::max_element(first, first + 10) - first));
    }
    return digits;
  }

 private:
  Model model_;
  std::vector<float> values_;
  Runner runner_;
};

double mass_of(const GreyPicture& picture) {
  return std::accumulate(picture.pixels.begin(), picture.pixels.end(), 0.0) / 255;
}

// The ink's middle and its box, in pixels; what is fainter than half isn't counted to the box.
struct InkBox {
  double x = 0, y = 0;
  uint32_t left = 1000, top = 1000, right = 0, bottom = 0;
};
InkBox ink_box(const GreyPicture& picture) {
  InkBox box;
  for (uint32_t y = 0; y < picture.size; ++y) {
    for (uint32_t x = 0; x < picture.size; ++x) {
      const double ink = picture.pixels[y * picture.size + x] / 255.0;
      box.x += ink * (x + 0.5);
      box.y += ink * (y + 0.5);
      if (ink < 0.5) continue;
      box.left = std::min(box.left, x);
      box.right = std::max(box.right, x + 1);
      box.top = std::min(box.top, y);
      box.bottom = std::max(box.bottom, y + 1);
    }
  }
  box.x /= mass_of(picture);
  box.y /= mass_of(picture);
  return box;
}

}  // namespace

TEST_CASE("a canvas keeps strokes, takes the last one back and forgets all") {
  DigitCanvas canvas;
  CHECK(canvas.empty());
  uint64_t version = canvas.version();
  const auto changed = [&] { return std::exchange(version, canvas.version()) != canvas.version(); };

  canvas.extend_stroke({0.5, 0.5});  // no button is down
  canvas.undo();
  canvas.clear();
  CHECK(canvas.empty());
  CHECK_FALSE(changed());

  canvas.begin_stroke({0.25, 0.5});
  CHECK(changed());
  canvas.extend_stroke({0.75, 0.5});
  CHECK(changed());
  canvas.extend_stroke({0.75, 0.5});
  CHECK_FALSE(changed());
  CHECK(canvas.drawing());
  canvas.end_stroke();
  CHECK_FALSE(canvas.drawing());
  canvas.extend_stroke({0.9, 0.9});
  CHECK(canvas.strokes().front().points.size() == 2);

  const std::vector<CanvasPoint> outside{{-3, 0.5}, {std::numeric_limits<double>::quiet_NaN(), 0}, {0.5, 7}};
  canvas.add_stroke(outside);
  REQUIRE(canvas.strokes().size() == 2);
  CHECK(canvas.strokes()[1].points == std::vector<CanvasPoint>{{0, 0.5}, {0.5, 1}});
  CHECK(changed());
  canvas.undo();
  CHECK(changed());
  CHECK(canvas.strokes().size() == 1);
  canvas.begin_stroke({0.1, 0.1});
  canvas.undo();
  CHECK_FALSE(canvas.drawing());
  canvas.extend_stroke({0.2, 0.2});
  CHECK(canvas.strokes().size() == 1);
  changed();
  canvas.clear();
  CHECK(changed());
  CHECK(canvas.empty());
}

TEST_CASE("strokes are drawn round, smooth and as wide as the pen") {
  const std::vector<Stroke> line{{{{0.25, 0.5}, {0.75, 0.5}}, 0.1}};
  for (const uint32_t size : {100u, 101u, 40u}) {
    const GreyPicture picture = canvas_picture(line, size);
    // A rectangle and two half discs.
    const double area = (0.5 * 0.1 + 3.14159265 * 0.05 * 0.05) * size * size;
    CHECK(std::abs(mass_of(picture) - area) < 0.03 * area);
    const InkBox box = ink_box(picture);
    CHECK(std::abs(box.x - size / 2.0) < 1e-6);
    CHECK(std::abs(box.y - size / 2.0) < 1e-6);
    // Some pixels are neither black nor white, and all else is one of them.
    const auto grey = std::ranges::count_if(picture.pixels, [](uint8_t p) { return p > 0 && p < 255; });
    CHECK(grey > 4);
    CHECK(grey < 2 * size);
  }
  // A line of two strokes covers what one does: crossing ink isn't added.
  const std::vector<Stroke> twice{line[0], line[0]};
  CHECK(canvas_picture(twice, 64).pixels == canvas_picture(line, 64).pixels);
  // Partly outside, and a dot.
  const std::vector<Stroke> corner{{{{0, 0}}, 0.2}};
  const double quarter = 3.14159265 * 10 * 10 / 4;
  CHECK(std::abs(mass_of(canvas_picture(corner, 100)) - quarter) < 0.03 * quarter);
}

TEST_CASE("what the model is shown has the same size and place wherever it was drawn") {
  CHECK_FALSE(framed_digit({}).has_value());
  const std::vector<Stroke> dot{{{{0.3, 0.3}}, 0.1}, {{{0.3, 0.301}, {0.3, 0.302}}, 0.1}};
  CHECK_FALSE(framed_digit(dot).has_value());

  const DigitFraming framing;
  for (const Sample& sample : all_samples()) {
    INFO(sample.shape.name << ", " << sample.style.name);
    const auto picture = framed_digit(sample.canvas.strokes());
    REQUIRE(picture.has_value());
    CHECK(picture->pixels.size() == 28 * 28);
    const InkBox box = ink_box(*picture);
    const double longest = std::max(box.right - box.left, box.bottom - box.top);
    CHECK(std::abs(longest - framing.extent) <= 2);
    // Nothing touches the border.
    CHECK((box.left > 2 && box.top > 2 && box.right < 26 && box.bottom < 26));
  }
  // Moved, and half as large with half the pen: the same to rounding.
  const std::vector<Stroke> here{{{{0.1, 0.2}, {0.5, 0.3}, {0.4, 0.9}}, 0.08}};
  const std::vector<Stroke> there{{{{0.55, 0.4}, {0.75, 0.45}, {0.7, 0.75}}, 0.04}};
  const auto a = framed_digit(here), b = framed_digit(there);
  for (size_t i = 0; i < a->pixels.size(); ++i) CHECK(std::abs(a->pixels[i] - b->pixels[i]) <= 1);
}

TEST_CASE("the shipped model reads drawn digits") {
  ShippedModel model;
  const auto count_right = [&](const std::vector<Sample>& samples, const auto& misread) {
    std::vector<GreyPicture> pictures;
    for (const Sample& sample : samples) pictures.push_back(*framed_digit(sample.canvas.strokes()));
    const std::vector<uint32_t> read = model.read(pictures);
    size_t right = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      right += read[i] == samples[i].shape.digit;
      if (read[i] != samples[i].shape.digit) misread(samples[i], read[i]);
    }
    return static_cast<double>(right) / static_cast<double>(samples.size());
  };
  // The usual shapes, whatever their size, place, pen, slant and proportions; small ones at the border too.
  const double share = count_right(all_samples(), [](const Sample& sample, uint32_t read) {
    INFO(sample.shape.name << ", " << sample.style.name << ", is read as " << read);
    CHECK_FALSE(sample.shape.plain);
  });
  CHECK(share >= 0.99);
  CHECK(count_right(samples_of(test::hasty_styles(40)), [](const Sample&, uint32_t) {}) >= 0.97);
  test::require_no_validation_messages();
}

// Not a test: how DigitFraming's defaults were found. Prints how many of the drawn digits the shipped model
// reads right, and those that it misreads.
TEST_CASE("measure framings", "[.measure]") {
  ShippedModel model;
  const std::vector<Sample> samples = all_samples(), hasty = samples_of(test::hasty_styles(40));
  std::vector<DigitFraming> framings;
  for (const auto center : {DigitFraming::Center::box, DigitFraming::Center::mass}) {
    for (const double extent : {17.0, 18.0, 19.0, 20.0}) {
      for (const auto& [thinnest, boldest] : {std::pair{1.6, 3.2}, {1.8, 2.6}, {2.2, 3.0}, {2.6, 2.6}})
        framings.push_back({center, extent, thinnest, boldest});
    }
  }
  for (const DigitFraming& framing : framings) {
    std::map<std::string, std::string> wrong;
    const auto count_right = [&](const std::vector<Sample>& of, bool plain_only) {
      std::vector<GreyPicture> pictures;
      for (const Sample& sample : of) pictures.push_back(*framed_digit(sample.canvas.strokes(), 28, framing));
      const std::vector<uint32_t> read = model.read(pictures);
      size_t count = 0, right = 0;
      for (size_t i = 0; i < of.size(); ++i) {
        const auto& [shape, style, canvas] = of[i];
        if (plain_only && !shape.plain) continue;
        ++count;
        if (read[i] == shape.digit) {
          ++right;
        } else {
          wrong[shape.name] += " [" + style.name + ": " + std::to_string(read[i]) + "]";
        }
      }
      return std::to_string(right) + "/" + std::to_string(count);
    };
    const std::string plain = count_right(samples, true);
    wrong.clear();
    const std::string all = count_right(samples, false), hurried = count_right(hasty, false);
    std::printf("%s extent %2.0f pen %.1f to %.1f: plain shapes %s, all %s, hasty %s\n",
                framing.center == DigitFraming::Center::box ? "box " : "mass", framing.extent,
                framing.thinnest, framing.boldest, plain.c_str(), all.c_str(), hurried.c_str());
    if (!(framing == DigitFraming{})) continue;
    for (const auto& [name, list] : wrong) std::printf("    %s:%s\n", name.c_str(), list.c_str());
  }
}

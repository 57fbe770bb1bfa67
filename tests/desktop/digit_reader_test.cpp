// The reader on its thread.
#include "apps/desktop/engine/digit_reader.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <numeric>

#include "tests/desktop/bell.h"
#include "tests/desktop/hand_digits.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

using namespace vitrine;
using namespace vitrine::desktop;

namespace {

const test::Path digits_model = test::Path(VITRINE_TEST_DATA).parent_path() / "assets" / "digits";

size_t best_of(const DigitAnswer& answer) {
  return static_cast<size_t>(std::ranges::max_element(answer.probabilities) - answer.probabilities.begin());
}

}  // namespace

TEST_CASE("the newest canvas is answered, and an empty one with nothing") {
  test::TestDevice& device = test::test_device();
  const MemoryStatistics before = device.device->memory();
  {
    test::Bell bell;
    DigitReader reader(*device.pipelines, digits_model, [&] { bell.ring(); });
    CHECK_FALSE(reader.busy());
    CHECK_FALSE(reader.answer().has_value());
    DigitCanvas canvas;
    uint64_t asked = 0;
    for (const test::HandShape& shape : test::hand_shapes()) {
      if (!shape.plain) continue;
      INFO(shape.name);
      canvas.clear();
      // Asked at every point, as the mouse moves; far more often than the model answers.
      for (const Stroke& stroke : test::written(shape, {})) {
        canvas.begin_stroke(stroke.points.front());
        for (const CanvasPoint& point : stroke.points) {
          canvas.extend_stroke(point);
          reader.ask(canvas);
          ++asked;
        }
        canvas.end_stroke();
      }
      bell.wait([&] { return !reader.busy(); });
      const auto answer = reader.answer();
      REQUIRE(answer.has_value());
      CHECK(answer->version == canvas.version());
      REQUIRE(answer->probabilities.size() == 10);
      CHECK(best_of(*answer) == shape.digit);
      const double sum = std::accumulate(answer->probabilities.begin(), answer->probabilities.end(), 0.0);
      CHECK(std::abs(sum - 1) < 1e-5);
      CHECK(answer->seen.pixels == framed_digit(canvas.strokes())->pixels);
      CHECK(answer->seconds > 0);
    }
    CHECK(bell.rung() <= asked);
    CHECK(reader.labels().size() == 10);
    CHECK(reader.labels()[3] == "3");
    canvas.clear();
    reader.ask(canvas);
    bell.wait([&] { return !reader.busy(); });
    CHECK(reader.answer()->version == canvas.version());
    CHECK(reader.answer()->probabilities.empty());
    // Ended with a question under way.
    canvas.begin_stroke({0.5, 0.1});
    canvas.extend_stroke({0.5, 0.9});
    reader.ask(canvas);
  }
  const MemoryStatistics after = device.device->memory();
  CHECK(after.device.bytes == before.device.bytes);
  CHECK(after.host.bytes == before.host.bytes);
  test::require_no_validation_messages();
}

TEST_CASE("a reader says what is wrong with its model, and goes on saying so") {
  test::TestDevice& device = test::test_device();
  const test::TemporaryFolder folder;
  folder.file("model.safetensors", "nonsense");
  test::Bell bell;
  DigitReader reader(*device.pipelines, folder.path(), [&] { bell.ring(); });
  DigitCanvas canvas;
  canvas.begin_stroke({0.5, 0.1});
  canvas.extend_stroke({0.5, 0.9});
  reader.ask(canvas);
  bell.wait([&] { return reader.error().has_value(); });
  CHECK(reader.error()->find("model.safetensors") != std::string::npos);
  CHECK_FALSE(reader.busy());
  CHECK_FALSE(reader.answer().has_value());
}

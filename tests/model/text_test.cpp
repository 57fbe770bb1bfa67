// Text towers and their comparison with pictures against transformers in float64.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/run/runner.h"
#include "model/text/text_runner.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "tests/support/op_test.h"
#include "tests/support/test_device.h"

using namespace vitrine;

namespace {

const std::filesystem::path folder = std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "text";
constexpr double limit = 2e-5;

std::vector<std::string> sample() {
  const nlohmann::json texts = read_json(folder / "texts.json");
  return {texts.begin(), texts.begin() + 40};
}

double error_of(std::span<const float> out, const std::filesystem::path& file) {
  const std::vector<double> reference = NpyFile(file).values<double>();
  REQUIRE(out.size() == reference.size());
  return test::relative_error(std::vector<double>(out.begin(), out.end()), reference);
}

void check_zero_shot(const char* name) {
  PipelineStore& pipelines = *test::test_device().pipelines;
  const TextModel text = open_text_model(folder / name);
  TextRunner runner(pipelines, text, {.batch = 16});
  const std::vector<float> labels = label_vectors(runner, sample(), {});
  CHECK(error_of(labels, folder / name / "text_embeds.npy") <= limit);

  ModelOptions options;
  options.model = folder / name;
  const Model model = open_model(options);
  Runner pictures(pipelines, model, {.result = Result::features});
  const std::vector<float> pixels = NpyFile(folder / name / "input.npy").values<float>();
  const std::vector<float> features = pictures.run(pixels, 2);
  const size_t width = features.size() / 2;
  std::vector<float> logits;
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<float> of = text.logits(std::span(features).subspan(i * width, width), labels);
    logits.insert(logits.end(), of.begin(), of.end());
  }
  CHECK(error_of(logits, folder / name / "logits.npy") <= limit);
}

}  // namespace

TEST_CASE("CLIP's logits of pictures and texts are transformers'") { check_zero_shot("clip"); }

TEST_CASE("SigLIP's logits of pictures and texts are transformers'") { check_zero_shot("siglip"); }

TEST_CASE("SigLIP 2's logits of pictures and texts are transformers'") {
  check_zero_shot("siglip2");
  check_zero_shot("siglip2_square");
}

TEST_CASE("a text's vector is taken from the end that its model means") {
  const std::vector<uint32_t> ids{7, 3, 9, 4, 9, 2, 2};
  const auto token = [&](TextKind kind, uint32_t end) {
    return pooled_token({.kind = kind, .length = ids.size(), .end_of_text = end}, ids, "x");
  };
  CHECK(token(TextKind::clip, 4) == 3);
  CHECK(token(TextKind::clip, 9) == 2);  // the first of them
  CHECK(token(TextKind::clip, 2) == 2);  // as CLIP was published: not the number 2, but the largest
  CHECK(token(TextKind::siglip, 4) == 6);
  CHECK_THROWS_AS(token(TextKind::clip, 5), Error);
}

TEST_CASE("a picture without a direction is like no text") {
  TextModel model{.config = {.kind = TextKind::clip}, .log_scale = 2};
  const std::vector<float> nothing(3), texts{1, 0, 0, 0, 1, 0};
  CHECK(model.logits(nothing, texts) == std::vector<float>{0, 0});
  CHECK(model.probabilities(model.logits(nothing, texts)) == std::vector<float>{0.5f, 0.5f});
}

TEST_CASE("templates are averaged behind normalisation") {
  const TextModel text = open_text_model(folder / "clip");
  TextRunner runner(*test::test_device().pipelines, text);
  const std::vector<float> mean = label_vectors(runner, {"cat", "dog"}, {"a {}", "the small {} and {}"});
  const std::vector<float> single =
      label_vectors(runner, {"a cat", "the small cat and cat", "a dog", "the small dog and dog"}, {});
  const size_t width = text.config.width;
  REQUIRE(mean.size() == 2 * width);
  std::vector<float> expected(2 * width);
  for (size_t i = 0; i < 2; ++i) {
    for (size_t d = 0; d < width; ++d) {
      expected[i * width + d] = (single[2 * i * width + d] + single[(2 * i + 1) * width + d]) / 2;
    }
    normalize(std::span(expected).subspan(i * width, width));
  }
  CHECK(test::relative_error(std::vector<double>(mean.begin(), mean.end()),
                             std::vector<double>(expected.begin(), expected.end())) <= 1e-6);
}

// Patches as they are compared with words, against transformers in float64 (make_tokenizer_fixtures.py).
#include "model/look/patch_features.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "model/files/weights.h"
#include "model/vit/vision_transformer.h"
#include "runtime/graph/executable.h"
#include "runtime/util/error.h"
#include "runtime/util/npy.h"
#include "tests/support/op_test.h"
#include "tests/support/test_device.h"

using namespace vitrine;

namespace {

const std::filesystem::path folder = std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "text";

}  // namespace

TEST_CASE("patches compared with words are as transformers' model pools each alone") {
  PipelineStore& pipelines = *test::test_device().pipelines;
  for (const std::string name : {"clip", "siglip", "siglip2"}) {
    INFO(name);
    ModelOptions options;
    options.model = folder / name;
    const Model model = open_model(options);
    const ViTConfig& c = model.config;
    GraphBuilder builder;
    Graph& graph = builder.graph();
    const ValueId image = graph.input("image", {1, c.channels, c.image_height, c.image_width});
    const ValueId tokens = VisionTransformer(c).tokens(builder, image);
    graph.output(patch_features(builder, c, tokens), "patches");
    WeightStore weights(pipelines, *model.constants);
    Executable run(weights, make_plan(builder.finish(), pipelines.device().capabilities(), {}));

    const std::vector<float> pixels = NpyFile(folder / name / "input.npy").values<float>();
    const std::vector<double> reference = NpyFile(folder / name / "patch_embeds.npy").values<double>();
    const size_t each = pixels.size() / 2;
    std::vector<double> found;
    for (size_t i = 0; i < 2; ++i) {
      const auto bytes = std::as_bytes(std::span(pixels).subspan(i * each, each));
      std::ranges::copy(bytes, run.input(0).begin());
      run.run();
      std::vector<float> patches(run.output(0).size() / sizeof(float));
      std::memcpy(patches.data(), run.output(0).data(), run.output(0).size());
      found.insert(found.end(), patches.begin(), patches.end());
    }
    REQUIRE(found.size() == reference.size());
    CHECK(test::relative_error(found, reference) <= 2e-5);
  }
  test::require_no_validation_messages();
}

TEST_CASE("models whose pooling says nothing of one patch are refused") {
  ViTConfig config;
  config.pool = Pool::token_and_mean;
  GraphBuilder builder;
  const ValueId tokens = builder.graph().input("tokens", {1, config.tokens(), config.dim});
  CHECK_THROWS_AS(patch_features(builder, config, tokens), Error);
}

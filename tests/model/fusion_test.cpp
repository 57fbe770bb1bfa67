// Whole models with every rule of fusion, with none, and with one.
#include "runtime/graph/fusion.h"

#include <catch2/catch_test_macros.hpp>

#include "model/files/weights.h"
#include "model/run/runner.h"
#include "tests/support/op_test.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"

using namespace vitrine;

namespace {

struct Outcome {
  std::vector<double> logits;
  size_t steps;
};

Outcome run(const Model& model, const FusionSet& fusions, bool layouts) {
  test::TestDevice& device = test::test_device();
  const auto noise = test::random_tensor({2, 3, 32, 32}, DType::f32, 4).values;
  RunnerOptions options;
  options.plan.fusions = fusions;
  options.plan.layouts = layouts;
  Runner runner(*device.pipelines, model, options);
  const std::vector<float> out = runner.run(std::vector<float>(noise.begin(), noise.end()), 2);
  test::require_no_validation_messages();
  return {std::vector<double>(out.begin(), out.end()), runner.plan(2).steps.size()};
}

Model small_version_of(const char* arch) {
  return open_model({.arch = arch, .seed = 5, .set = {"depth=1", "image_size=32"}}, {});
}

}  // namespace

TEST_CASE("a ViT-B/16 computes the same with and without fusion") {
  const Model model = small_version_of("vit_base_patch16_224");
  const Outcome all = run(model, all_fusions(), true), none = run(model, {}, false);
  CHECK(none.steps > all.steps);
  CHECK(test::relative_error(none.logits, all.logits) < 2e-5);
}

TEST_CASE("a model with rotary positions computes the same with and without fusion") {
  for (const char* arch :
       test::of_turn<const char*>({"vit_small_patch16_dinov3", "vit_small_patch16_rope_mixed_224"})) {
    INFO(arch);
    const Model model =
        open_model({.arch = arch, .seed = 5, .set = {"depth=2", "image_size=32", "layer_scale=false"}}, {});
    const Outcome all = run(model, all_fusions(), true), none = run(model, {}, false);
    CHECK(none.steps > all.steps);
    CHECK(test::relative_error(none.logits, all.logits) < 2e-5);
  }
}

TEST_CASE("each rule of fusion alone computes the same, and so do layouts") {
  const Model model = small_version_of("deit_tiny_distilled_patch16_224");
  const Outcome all = run(model, all_fusions(), true);
  for (const std::string& rule : all_fusions()) {
    INFO(rule);
    const Outcome alone = run(model, {rule}, false);
    CHECK(test::relative_error(alone.logits, all.logits) < 2e-5);
    CHECK(alone.steps >= all.steps);
  }
  const Outcome layouts = run(model, {}, true);
  CHECK(test::relative_error(layouts.logits, all.logits) < 2e-5);
  CHECK(layouts.steps >= all.steps);
}

// Each module alone against PyTorch in float64: the fixtures that tests/parity/make_module_fixtures.py
// writes, with the modules' own weights.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/files/weights.h"
#include "model/run/module_runner.h"
#include "model/vit/block.h"
#include "model/vit/vision_transformer.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "tests/support/op_test.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"

using namespace vitrine;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

const std::filesystem::path parity = std::filesystem::path(VITRINE_TEST_DATA) / "parity";

// A module is at most nine operators in a row, of which each may be 2e-6 (f32) or 2e-3 (f16) off; errors
// of that kind add up like random ones.
double limit_of(DType dtype) { return dtype == DType::f32 ? 6e-6 : 6e-3; }

Tensor read_tensor(const std::filesystem::path& path) {
  const NpyFile file(path);
  return {Shape(std::span<const uint64_t>(file.header().shape)), file.values<float>()};
}

ViTConfig config_of(const nlohmann::json& meta) {
  ViTConfig config;
  for (const std::string assignment : meta.at("set")) set_field(config, assignment);
  return config;
}

std::unique_ptr<ConstantSource> weights_of(const ModuleBase& module, const std::filesystem::path& fixture,
                                           const nlohmann::json& meta) {
  if (meta.contains("seed")) return random_weights(module, meta.at("seed"));
  return file_weights(module, fixture / "weights.safetensors", meta.at("prefix").get<std::string>());
}

template <typename M>
void check_fixture(const std::filesystem::path& fixture, const nlohmann::json& meta) {
  test::TestDevice& device = test::test_device();
  const M module(config_of(meta));
  const auto weights = weights_of(module, fixture, meta);
  const NpyFile reference(fixture / "output.npy");
  const Tensor x = read_tensor(fixture / "input.npy");
  for (const DType dtype : {DType::f32, DType::f16}) {
    if (!test::stores(dtype)) continue;
    INFO(fixture.filename().string() << " " << name_of(dtype));
    ModuleRunner run(*device.pipelines, module, *weights, {.dtype = dtype});
    const Tensor out = run(x);
    CHECK(std::ranges::equal(out.shape.dims(), reference.header().shape));
    const std::vector<double> wide(out.values.begin(), out.values.end());
    CHECK(test::relative_error(wide, reference.values<double>()) <= limit_of(dtype));
    CHECK(run(x).values == out.values);
  }
  test::require_no_validation_messages();
}

}  // namespace

TEST_CASE("each module alone computes what PyTorch computes") {
  std::vector<std::filesystem::path> fixtures;
  for (const auto& entry : std::filesystem::directory_iterator(parity / "modules")) {
    // The others are walks through whole models.
    if (read_json(entry.path() / "meta.json").contains("module")) fixtures.push_back(entry.path());
  }
  std::ranges::sort(fixtures);
  CHECK(fixtures.size() >= 10);
  for (const std::filesystem::path& fixture : test::of_turn(fixtures)) {
    const nlohmann::json meta = read_json(fixture / "meta.json");
    const std::string kind = meta.at("module");
    if (kind == "patch_embed") {
      check_fixture<PatchEmbed>(fixture, meta);
    } else if (kind == "attention") {
      check_fixture<Attention>(fixture, meta);
    } else if (kind == "mlp") {
      check_fixture<Mlp>(fixture, meta);
    } else {
      REQUIRE(kind == "block");
      check_fixture<Block>(fixture, meta);
    }
  }
}

TEST_CASE("a VisionTransformer alone, with the weights of a file, is the model") {
  test::TestDevice& device = test::test_device();
  for (const char* name : {"timm_patch_norm", "timm_registers", "deit_distilled"}) {
    INFO(name);
    const std::filesystem::path fixture = parity / "fixtures" / name;
    const nlohmann::json meta = read_json(fixture / "meta.json");
    ModelOptions options{.model = fixture};
    if (meta.at("model") != ".") options.model = fixture / "model.safetensors";
    options.set = meta.at("set").get<std::vector<std::string>>();
    const VisionTransformer model(open_model(options).config);
    const auto weights = file_weights(model, fixture / "model.safetensors");
    ModuleRunner run(
        *device.pipelines, [&](GraphBuilder& builder, ValueId x) { return model(builder, x); }, *weights);
    const Tensor out = run(read_tensor(fixture / "input.npy"));
    const std::vector<double> wide(out.values.begin(), out.values.end());
    CHECK(test::relative_error(wide, NpyFile(fixture / "logits.npy").values<double>()) <= 2e-5);
  }
  test::require_no_validation_messages();
}

TEST_CASE("a module runner takes any shape, and shows what was marked on the way") {
  test::TestDevice& device = test::test_device();
  const Attention attention({.dim = 24, .heads = 3, .init = InitRule::torch});
  const auto weights = random_weights(attention, 5);
  ModuleRunner run(
      *device.pipelines,
      [&](GraphBuilder& builder, ValueId x) {
        const AttentionValues values = attention.values(builder, x, {.scores = true});
        builder.graph().output(values.weights, "weights");
        return values.out;
      },
      *weights);
  const test::HostTensor random = test::random_tensor({2, 7, 24}, DType::f32, 3);
  Tensor x{random.shape, {random.values.begin(), random.values.end()}};
  const auto outputs = run.outputs(x);
  REQUIRE(outputs.size() == 2);
  CHECK(outputs.at("weights").shape == Shape{2, 3, 7, 7});
  // Each image alone comes out the same to rounding: nothing of one reaches the other.
  const Tensor first = run({{1, 7, 24}, {x.values.begin(), x.values.begin() + 7 * 24}});
  const std::vector<float>& both = outputs.at("out").values;
  const std::vector<double> a(both.begin(), both.begin() + 7 * 24),
      b(first.values.begin(), first.values.end());
  CHECK(test::relative_error(a, b) <= 1e-6);
  double row = 0;
  for (int key = 0; key < 7; ++key) row += static_cast<double>(outputs.at("weights").values[key]);
  CHECK(std::abs(row - 1) < 1e-6);
  x.values.pop_back();
  CHECK_THROWS_MATCHES(run(x), Error, MessageMatches(ContainsSubstring("335") && ContainsSubstring("336")));
  test::require_no_validation_messages();
}

TEST_CASE("weights of a module that a file does not hold are named") {
  const std::filesystem::path file = parity / "modules" / "attention" / "weights.safetensors";
  const auto check = [&](const ModuleBase& module, const std::string& prefix,
                         const std::vector<std::string>& words) {
    try {
      file_weights(module, file, prefix);
      FAIL("nothing was wrong");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      for (const std::string& word : words) CHECK_THAT(error.what(), ContainsSubstring(word));
    }
  };
  const ViTConfig config{.dim = 48, .heads = 3};
  CHECK_NOTHROW(file_weights(Attention(config), file, "blocks.3.attn."));
  CHECK_NOTHROW(file_weights(Attention(config, "attn"), file, "blocks.3."));
  check(Attention(config), "", {"'qkv.weight'", "[144, 48]"});
  check(Attention({.dim = 40, .heads = 4}), "blocks.3.attn.", {"[144, 48]", "[120, 40]"});
  check(Mlp(config), "blocks.3.attn.", {"'blocks.3.attn.fc1.weight'", "[192, 48]"});
}

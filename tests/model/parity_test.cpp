// Whole models against PyTorch in float64: every fixture of tests/parity, read as its family published
// it, in f32 and f16.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/runner.h"
#include "model/weights.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "tests/support/op_test.h"
#include "tests/support/test_device.h"

using namespace vitrine;

namespace {

const std::filesystem::path folder = std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "fixtures";

std::vector<std::filesystem::path> fixtures() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory()) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

ModelOptions options_of(const std::filesystem::path& fixture, const nlohmann::json& meta) {
  ModelOptions options;
  const std::string model = meta.at("model");
  options.model = model == "." ? fixture : fixture / model;
  options.set = meta.at("set").get<std::vector<std::string>>();
  return options;
}

bool supports(DType dtype) {
  return dtype == DType::f32 || test::test_device().device->capabilities().supports(Need::storage16);
}

}  // namespace

TEST_CASE("every parity fixture is computed as PyTorch computes it") {
  test::TestDevice& device = test::test_device();
  const auto all = fixtures();
  REQUIRE(all.size() >= 20);
  for (const std::filesystem::path& fixture : all) {
    const nlohmann::json meta = read_json(fixture / "meta.json");
    std::vector<std::string> warnings;
    const Model model =
        open_model(options_of(fixture, meta), [&](const std::string& w) { warnings.push_back(w); });
    const std::vector<float> images = NpyFile(fixture / "input.npy").values<float>();
    for (const auto& [name, shape] : meta.at("outputs").items()) {
      const std::vector<double> reference = NpyFile(fixture / (name + ".npy")).values<double>();
      REQUIRE(*std::ranges::max_element(reference) > *std::ranges::min_element(reference));
      for (const DType dtype : {DType::f32, DType::f16}) {
        if (!supports(dtype)) continue;
        INFO(fixture.filename().string() << " " << name << " " << name_of(dtype));
        Runner runner(*device.pipelines, model, {.dtype = dtype, .result = result_named(name)});
        const std::vector<float> out = runner.run(images, 64);
        REQUIRE(out.size() == reference.size());
        const std::vector<double> wide(out.begin(), out.end());
        CHECK(test::relative_error(wide, reference) <=
              meta.at("limits").at(std::string(name_of(dtype))).get<double>());
      }
    }
    CHECK(warnings.empty());
    test::require_no_validation_messages();
  }
}

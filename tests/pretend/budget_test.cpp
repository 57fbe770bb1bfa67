// Memory that ends: batches are made as small as a card's budget asks for, and what doesn't fit even so ends
// in a sentence.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/files/weights.h"
#include "model/run/runner.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "tests/pretend/pretend_device.h"
#include "tests/support/op_test.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;

// The discrete card with so much memory to spend, and a window that is too small to help out.
std::filesystem::path card_with_budget(const TemporaryFolder& folder, uint64_t mib) {
  nlohmann::json profile = read_json(profile_path("discrete_card"));
  profile["heaps"][0]["budget_MiB"] = mib;
  profile["heaps"][2] = {{"MiB", 1}, {"device_local", true}};
  const std::filesystem::path path = folder / "card.json";
  std::ofstream(path) << profile.dump();
  return path;
}

}  // namespace

TEST_CASE("batches shrink to a card's budget, and give the same numbers") {
  const Model model = open_model({.arch = "vit_tiny_patch16_224", .seed = 5, .set = {"depth=1"}});
  constexpr uint64_t count = 64;
  const auto noise = random_tensor({count, 3, 224, 224}, DType::f32, 4).values;
  const std::vector<float> images(noise.begin(), noise.end());
  std::vector<float> expected;
  std::vector<uint64_t> fitting;
  for (const uint64_t mib : {1000, 150, 95}) {
    INFO(mib << " MiB");
    const TemporaryFolder folder;
    const OpenedDevice card = open_pretended(card_with_budget(folder, mib));
    Runner runner(*card.pipelines, model);
    fitting.push_back(runner.fitting_batch(count));
    const std::vector<float> results = runner.run(images, count);
    if (expected.empty()) expected = results;
    CHECK(relative_error(std::vector<double>(results.begin(), results.end()),
                         std::vector<double>(expected.begin(), expected.end())) < 1e-5);
    card.require_silence();
  }
  CHECK(fitting.front() == count);
  CHECK(fitting.back() < count);
  CHECK(std::ranges::is_sorted(fitting, std::ranges::greater()));
}

TEST_CASE("a model that doesn't fit is refused with what it needs and what is free") {
  const Model model = open_model({.arch = "vit_small_patch16_224", .seed = 5, .set = {"depth=8"}});
  const TemporaryFolder folder;
  const OpenedDevice card = open_pretended(card_with_budget(folder, 40));
  Runner runner(*card.pipelines, model);
  const std::vector<float> image(3 * 224 * 224);
  CHECK_THROWS_WITH(runner.run(image, 1),
                    ContainsSubstring("out of memory on device 'Make-believe discrete card'") &&
                        ContainsSubstring("'constants'") && ContainsSubstring("are free"));
  card.require_silence();
}

}  // namespace vitrine::test

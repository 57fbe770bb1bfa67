// vitrine tune as a user calls it, and what the other commands make of what it keeps.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "runtime/tune/choice_store.h"
#include "runtime/util/npy.h"
#include "tests/support/command.h"
#include "tests/support/op_test.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"
#include "tests/support/validation_note.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

test::CommandResult vitrine(const test::TemporaryFolder& cache, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), VITRINE_PROGRAM);
  return test::run_command(
      arguments, {{"VITRINE_CACHE_DIR", cache.path()}, {"VITRINE_VALIDATE", test::usual_validation_name}});
}

std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::vector<double> logits(const test::TemporaryFolder& cache, const std::vector<std::string>& more = {}) {
  const test::Path fixture = test::Path(VITRINE_TEST_DATA) / "parity/fixtures/timm_vit";
  const std::string out = cache / "out.npy";
  std::vector<std::string> arguments{"run",      "--model", fixture,   "--input", fixture / "input.npy",
                                     "--output", out,       "--batch", "1",       "--dtype",
                                     "f32"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const test::CommandResult result = vitrine(cache, arguments);
  INFO(result.err);
  REQUIRE(result.status == 0);
  const std::vector<float> values = NpyFile(out).values<float>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("vitrine tune keeps what it finds, and the other commands use it") {
  const Capabilities& device = test::test_device().device->capabilities();
  const test::TemporaryFolder cache;
  const test::Path model = test::Path(VITRINE_TEST_DATA) / "parity/fixtures/timm_vit";
  const std::vector<double> before = logits(cache);
  const std::vector<std::string> inspect{"inspect", model, "--dtype", "f32"};
  CHECK_THAT(vitrine(cache, inspect).out, ContainsSubstring("by heuristics"));

  const test::CommandResult tuned = vitrine(
      cache, {"tune", "--model", model, "--batch", "1", "--dtype", "f32", "--seconds", "2", "--json"});
  INFO(tuned.err);
  REQUIRE(tuned.status == 0);
  CHECK(test::besides_validation_note(tuned.err) == "");
  const std::vector<nlohmann::json> lines = lines_of(tuned.out);
  REQUIRE(lines.size() > 3);
  const nlohmann::json& sum = lines.back();
  CHECK(sum["device"] == device.name);
  CHECK(sum["tuned_ms"] <= sum["heuristics_ms"]);
  CHECK(sum["stored"] == (cache.path() / kernel_choices_name(device)).string());
  size_t measured = 0;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    INFO(lines[i].dump());
    CHECK(lines[i]["best_ms"] <= lines[i]["heuristics_ms"]);
    measured += lines[i]["measured"].size() > 1;
    for (const auto& candidate : lines[i]["measured"]) CHECK_FALSE(candidate.contains("fault"));
  }
  CHECK(measured > 0);
  CHECK(load_kernel_choices(device, {}, cache.path()).tuned.size() == measured);

  CHECK_THAT(vitrine(cache, inspect).out, ContainsSubstring("by the table"));
  const test::CommandResult untuned = vitrine(cache, {"inspect", model, "--dtype", "f32", "--untuned"});
  CHECK_THAT(untuned.out, !ContainsSubstring("by the table"));
  CHECK(test::relative_error(logits(cache), before) <= 2e-5);
  CHECK(logits(cache, {"--untuned"}) == before);
}

TEST_CASE("a table that is broken is ignored with one sentence") {
  const Capabilities& device = test::test_device().device->capabilities();
  const test::TemporaryFolder cache;
  const std::vector<double> before = logits(cache);
  cache.file(kernel_choices_name(device), "{\"format\": 3");
  const test::CommandResult result =
      vitrine(cache, {"bench", "--arch", "myvit_mnist", "--batch", "1", "--runs", "1", "--dtype", "f32"});
  CHECK(result.status == 0);
  CHECK_THAT(result.err, ContainsSubstring(kernel_choices_name(device)) && ContainsSubstring("ignored"));
  CHECK(logits(cache) == before);
}

TEST_CASE("a kernel that failed its self-test is not used, and the plan says so") {
  const Capabilities& device = test::test_device().device->capabilities();
  const test::TemporaryFolder cache;
  const auto norms = [&] {
    const test::CommandResult result = vitrine(cache, {"inspect", "myvit_mnist", "--dtype", "f32", "--json"});
    REQUIRE(result.status == 0);
    std::vector<std::pair<std::string, std::string>> found;  // kernel, and why it was chosen
    const nlohmann::json dispatches = lines_of(result.out).at(0)["dispatches"];
    for (const nlohmann::json& dispatch : dispatches) {
      if (dispatch["shader"].get<std::string>().starts_with("layer_norm"))
        found.emplace_back(dispatch["kernel"], dispatch["choice"]);
    }
    REQUIRE_FALSE(found.empty());
    return found;
  };
  const test::CommandResult doctor = vitrine(cache, {"doctor", "--only", "layer_norm", "--json"});
  INFO(doctor.err);
  REQUIRE(doctor.status == 0);
  const std::string preferred = norms()[0].first;
  KernelChoices found = load_kernel_choices(device, {}, cache.path());
  std::set<std::string> passed;
  for (auto& [certificate, fault] : found.certificates) {
    CHECK(fault.empty());
    passed.insert(certificate.substr(0, certificate.find(' ')));
    if (certificate.starts_with("layer_norm=" + preferred + " ")) fault = "made up";
  }
  if (passed.size() < 2) SKIP("the device runs layer_norm in one way only");
  add_kernel_choices(device, found, cache.path());
  for (const auto& [kernel, choice] : norms()) {
    CHECK(kernel != preferred);
    CHECK_THAT(choice, ContainsSubstring(preferred) && ContainsSubstring("made up"));
  }
}

TEST_CASE("a self-test that is killed leaves what it found until then") {
  const Capabilities& device = test::test_device().device->capabilities();
  const test::TemporaryFolder cache;
  test::RunningCommand doctor({VITRINE_PROGRAM, "doctor", "--only", "matmul"},
                              {{"VITRINE_CACHE_DIR", cache.path()}});
  // However long the device takes for the first ones; where it is through with all of them, it has kept them,
  // too.
  const test::Path kept = cache.path() / kernel_choices_name(device);
  while (!std::filesystem::exists(kept) && doctor.is_running())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  doctor.kill();
  const test::CommandResult result = doctor.wait();
  INFO(result.err);
  CHECK((result.status == test::killed_status || result.status == 0));
  const KernelChoices found =
      load_kernel_choices(device, [](const std::string& sentence) { FAIL_CHECK(sentence); }, cache.path());
  CHECK_FALSE(found.certificates.empty());
  for (const auto& [certificate, fault] : found.certificates) {
    INFO(certificate);
    CHECK(fault.empty());
  }
}

TEST_CASE("vitrine tune refuses what makes no sense") {
  test::test_device();
  const test::TemporaryFolder cache;
  CHECK(vitrine(cache, {"tune"}).status == 2);
  CHECK(vitrine(cache, {"tune", "--arch", "myvit_mnist", "--seconds", "0"}).status == 2);
  CHECK(vitrine(cache, {"tune", "--arch", "resnet50"}).status == 2);
}

}  // namespace vitrine

// vitrine bench --startup as bench/startup.py calls it.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

test::CommandResult vitrine(std::vector<std::string> arguments, const test::TemporaryFolder& cache) {
  arguments.insert(arguments.begin(), VITRINE_PROGRAM);
  return test::run_command(arguments, {{"VITRINE_CACHE_DIR", cache.path()}});
}

Json last_line(const test::CommandResult& result) {
  INFO(result.err);
  REQUIRE(result.status == 0);
  REQUIRE(!result.out.empty());
  const size_t before = result.out.rfind('\n', result.out.size() - 2);
  return Json::parse(result.out.substr(before == std::string::npos ? 0 : before + 1));
}

}  // namespace

TEST_CASE("bench --startup times each part of a start and gives what bench gives") {
  const Capabilities& device = test::test_device().device->capabilities();  // skips without a device
  const test::TemporaryFolder cache;
  const std::vector<std::string> model{"--arch",  "myvit_mnist", "--batch", "2",
                                       "--dtype", "f32",         "--seed",  "3"};
  const auto command = [&](std::vector<std::string> words) {
    words.insert(words.end(), model.begin(), model.end());
    return vitrine(words, cache);
  };
  for (const char* caches : {"empty", "full"}) {
    INFO(caches);
    const test::CommandResult result = command({"bench", "--startup", "--json"});
    const Json line = last_line(result);
    CHECK(std::ranges::count(result.out, '\n') == 1);
    CHECK(line.at("arch") == "myvit_mnist");
    CHECK(line.at("batch") == 2);
    CHECK(line.at("dtype") == "f32");
    CHECK(line.at("device") == device.name);
    std::vector<std::string> names;
    double sum = 0;
    for (const Json& part : line.at("parts")) {
      names.push_back(part.at("part"));
      CHECK(part.at("ms") >= 0.0);
      sum += part.at("ms").get<double>();
    }
    CHECK(names == std::vector<std::string>{"checkpoint", "device", "pipeline cache", "plan", "weights",
                                            "pipelines", "recording", "first run"});
    CHECK_THAT(line.at("total_ms").get<double>(), Catch::Matchers::WithinRel(sum, 1e-9));
    CHECK(line.at("weight_bytes") > 0);
    // The same pipelines and the same result as by the other ways.
    CHECK(line.at("pipelines") == last_line(command({"doctor", "--compile-only", "--json"})).at("pipelines"));
    CHECK(line.at("checksum") == last_line(command({"bench", "--json", "--runs", "1"})).at("checksum"));
    CHECK(!cache.names().empty());
  }
  const test::CommandResult text = command({"bench", "--startup"});
  CHECK(text.status == 0);
  CHECK_THAT(text.out, ContainsSubstring("pipelines") && ContainsSubstring("to the first result"));
}

TEST_CASE("bench --startup --kernels says what the first run of each pipeline took") {
  test::test_device();
  const test::TemporaryFolder cache;
  const std::vector<std::string> words{"bench", "--startup", "--kernels", "--arch", "myvit_mnist"};
  std::vector<std::string> in_json = words;
  in_json.push_back("--json");
  const Json line = last_line(vitrine(in_json, cache));
  double sum = 0, before = std::numeric_limits<double>::infinity();
  for (const Json& kernel : line.at("kernels")) {
    const double ms = kernel.at("ms").get<double>();
    CHECK(ms <= before);
    before = ms;
    sum += ms;
    CHECK(kernel.at("dispatches") >= 1);
    CHECK(kernel.at("first_node") != "");
  }
  CHECK(line.at("kernels").size() <= line.at("pipelines"));
  CHECK(line.at("kernels").size() > 3);
  const Json& first_run = line.at("parts").back();
  REQUIRE(first_run.at("part") == "first run");
  CHECK((sum > 0 && sum <= first_run.at("ms").get<double>()));
  const test::CommandResult text = vitrine(words, cache);
  CHECK_THAT(text.out, ContainsSubstring(" first " + line["kernels"][0]["first_node"].get<std::string>()));
  const test::CommandResult alone = vitrine({"bench", "--kernels", "--arch", "myvit_mnist"}, cache);
  CHECK(alone.status == 2);
  CHECK_THAT(alone.err, ContainsSubstring("--startup"));
}

TEST_CASE("bench --startup is about one start") {
  const test::TemporaryFolder cache;
  using Words = std::vector<std::string>;
  for (const Words& extra :
       {Words{"--batch", "1,2"}, Words{"--dtype", "f32,f16"}, Words{"--maps"}, Words{"--runs", "3"}}) {
    Words words{"bench", "--arch", "myvit_mnist", "--startup"};
    words.insert(words.end(), extra.begin(), extra.end());
    const test::CommandResult result = vitrine(words, cache);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, ContainsSubstring("--startup"));
  }
}

}  // namespace vitrine

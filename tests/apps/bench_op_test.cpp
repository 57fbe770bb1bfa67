// vitrine bench --op as a user calls it.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

test::CommandResult bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {VITRINE_PROGRAM, "bench"});
  return test::run_command(arguments);
}

std::vector<Json> lines_of(const test::CommandResult& result) {
  INFO(result.err);
  REQUIRE(result.status == 0);
  std::istringstream text(result.out);
  std::vector<Json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("bench --op times one operator, checked against float64") {
  const Capabilities& device = test::test_device().device->capabilities();  // skips without a device
  struct Case {
    const char *op, *shape;
    double flops, elements;  // of one operator; of its inputs and output
  };
  for (const Case& one : {Case{"matmul", "37x29x53", 2.0 * 37 * 29 * 53, 37 * 53 + 29 * 53 + 37 * 29},
                          Case{"attention", "3x41x2x16", 4.0 * 3 * 2 * 41 * 41 * 16, 3 * 41 * 4 * 32},
                          Case{"add", "19x67", 19.0 * 67, 3 * 19 * 67}}) {
    INFO(one.op);
    const auto lines =
        lines_of(bench({"--op", one.op, "--shape", one.shape, "--dtype", "f32", "--runs", "2", "--json"}));
    REQUIRE(lines.size() == 1);
    const Json& line = lines[0];
    CHECK(line.at("op") == one.op);
    CHECK(line.at("shape") == one.shape);
    CHECK(line.at("dtype") == "f32");
    CHECK(line.at("device") == device.name);
    CHECK(line.at("kernel") != "");
    CHECK(line.at("runs") == 8);  // two submissions of four
    CHECK(line.at("flops") == one.flops);
    CHECK(line.at("bytes") == 4 * one.elements);
    CHECK(line.at("min_ms") <= line.at("median_ms"));
    CHECK(line.at("median_ms") <= line.at("max_ms"));
    // Sums in f32 aren't float64's: no error at all would mean that nothing was compared.
    CHECK(line.at("relative_error") > 0.0);
    CHECK(line.at("relative_error") < 5e-6);
    CHECK_THAT(line.at("gflops").get<double>() * line.at("median_ms").get<double>(),
               Catch::Matchers::WithinRel(one.flops / 1e6, 1e-9));
  }
  const auto two = lines_of(bench({"--op", "matmul", "--shape", "5x7x11,1x1x1", "--runs", "1", "--json"}));
  REQUIRE(two.size() == 2);
  CHECK(two[1].at("shape") == "1x1x1");
  const auto text = bench({"--op", "add", "--shape", "3x5", "--runs", "1"});
  CHECK_THAT(text.out, ContainsSubstring("GB/s") && ContainsSubstring("relative error"));
}

TEST_CASE("bench --op says what it can't do") {
  using Words = std::vector<std::string>;
  for (const Words& words :
       {Words{"--op", "matmul", "--shape", "3x4"}, Words{"--op", "matmul", "--shape", "3x0x4"},
        Words{"--op", "matmul", "--shape", "3x4x5x"}, Words{"--op", "softmax", "--shape", "3x4"},
        Words{"--op", "add"}, Words{"--shape", "3x4", "--arch", "myvit_mnist"},
        Words{"--op", "add", "--shape", "3x4", "--arch", "myvit_mnist"},
        Words{"--op", "add", "--shape", "3x4", "--batch", "2"}}) {
    const auto result = bench(words);
    INFO(result.err);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK((result.err.find("--op") != std::string::npos || result.err.find("--shape") != std::string::npos));
  }
  CHECK_THAT(bench({"--op", "matmul", "--shape", "3x4"}).err, ContainsSubstring("MxNxK"));
}

}  // namespace vitrine

// The model that comes with Vitrine, on the pictures beside it: what scripts/run.sh shows.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {

TEST_CASE("the digit model reads every sample picture, and says where it looked") {
  test::test_device();
  const test::Path assets = test::Path(VITRINE_TEST_DATA).parent_path() / "assets";
  CHECK(std::filesystem::file_size(assets / "digits/model.safetensors") <= 1'000'000);
  const auto said = test::run_command({VITRINE_PROGRAM, "classify", (assets / "samples").string(), "--model",
                                       (assets / "digits").string(), "--json"});
  INFO(said.err);
  REQUIRE(said.status == 0);
  std::istringstream lines(said.out);
  size_t pictures = 0;
  for (std::string text; std::getline(lines, text); ++pictures) {
    const auto line = nlohmann::json::parse(text);
    const std::string digit = std::filesystem::path(line.at("image").get<std::string>()).stem().string();
    CHECK(line.at("top").at(0).at("label") == digit);
    CHECK(line.at("top").at(0).at("probability") > 0.5);
  }
  CHECK(pictures == 10);

  const test::TemporaryFolder folder;
  const auto looked =
      test::run_command({VITRINE_PROGRAM, "attention", (assets / "samples/3.png").string(), "--model",
                         (assets / "digits").string(), "--out", folder / "heat.png"});
  INFO(looked.err);
  CHECK(looked.status == 0);
  CHECK(std::filesystem::file_size(folder / "heat.png") > 1000);
}

}  // namespace vitrine

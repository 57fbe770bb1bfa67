// vitrine models: what runs, and what of the downloaded models does.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

test::CommandResult vitrine(std::vector<std::string> arguments,
                            const std::map<std::string, std::string>& environment) {
  arguments.insert(arguments.begin(), VITRINE_PROGRAM);
  return test::run_command(arguments, environment);
}

}  // namespace

TEST_CASE("vitrine models lists what runs, and what of Hugging Face's cache does") {
  namespace fs = std::filesystem;
  const fs::path fixtures = fs::path(VITRINE_TEST_DATA) / "parity" / "fixtures";
  const test::TemporaryFolder cache;
  const std::map<std::string, std::string> environment = {{"HF_HUB_CACHE", cache.path()}};
  CHECK_THAT(vitrine({"models"}, environment).out,
             ContainsSubstring("nothing") && ContainsSubstring("timm ViT"));

  const fs::path runs = cache / "models--org--tiny/snapshots/0123abcd",
                 other = cache / "models--org--swin/snapshots/0123abcd";
  fs::create_directories(runs);
  fs::create_directories(other);
  (void)cache.file("models--org--tiny/refs/main", "0123abcd");
  (void)cache.file("models--org--swin/refs/main", "0123abcd");
  for (const char* name : {"model.safetensors", "config.json"})
    fs::copy_file(fixtures / "hf_vit" / name, runs / name);
  (void)cache.file("models--org--swin/snapshots/0123abcd/config.json", R"({"model_type": "swin"})");

  const auto text = vitrine({"models"}, environment);
  CHECK(text.status == 0);
  CHECK(text.err.empty());
  CHECK_THAT(text.out, ContainsSubstring("+ org/tiny: Hugging Face ViT or DeiT, 2 blocks") &&
                           ContainsSubstring("- org/swin:") &&
                           ContainsSubstring("stages of windows are not supported yet") &&
                           ContainsSubstring("--all"));
  CHECK_THAT(vitrine({"models", "--all"}, environment).out, ContainsSubstring("vit_base_patch16_224 "));

  const auto json = vitrine({"models", "--all", "--json"}, environment);
  CHECK(json.status == 0);
  size_t cached = 0, families = 0, architectures = 0;
  std::istringstream lines(json.out);
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    families += object.contains("family") && !object.contains("cached");
    architectures += object.contains("parameters");
    if (!object.contains("cached")) continue;
    ++cached;
    CHECK(object.at("runs") == (object.at("cached") == "org/tiny"));
    CHECK(object.contains("refusal") == (object.at("cached") == "org/swin"));
  }
  CHECK(cached == 2);
  CHECK(families >= 10);
  CHECK(architectures > 100);
}

}  // namespace vitrine

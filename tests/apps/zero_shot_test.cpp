// Labels, texts and searches as a user asks for them; the numbers are tests/model's.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/util/npy.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

const test::Path data = VITRINE_TEST_DATA;
const std::string clip = data / "parity" / "text" / "clip", siglip = data / "parity" / "text" / "siglip",
                  siglip2 = data / "parity" / "text" / "siglip2";
const std::string picture = data / "images" / "pictures" / "jpeg_420.jpg",
                  other = data / "images" / "pictures" / "jpeg_17x33.jpg";

test::CommandResult vitrine(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), VITRINE_PROGRAM);
  return test::run_command(arguments);
}

// What classify says of each label, by the label's number.
std::vector<double> probabilities(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"classify", picture});
  arguments.emplace_back("--json");
  const auto result = vitrine(arguments);
  INFO(result.err);
  REQUIRE(result.status == 0);
  const Json top = Json::parse(result.out).at("top");
  std::vector<double> found(top.size());
  double before = INFINITY;
  for (const Json& entry : top) {
    found.at(entry.at("index").get<size_t>()) = entry.at("probability").get<double>();
    CHECK(entry.at("probability").get<double>() <= before);
    before = entry.at("probability").get<double>();
  }
  return found;
}

}  // namespace

TEST_CASE("classify takes labels, from the command line or a file") {
  test::test_device();
  const test::TemporaryFolder folder;
  const std::string file = folder.file("labels.txt", "a cat\r\n\n  a dog\nship");
  const auto named = probabilities({"--model", clip, "--labels", "a cat, a dog,ship"});
  REQUIRE(named.size() == 3);
  CHECK(std::abs(named[0] + named[1] + named[2] - 1) < 1e-6);
  CHECK(probabilities({"--model", clip, "--labels", file}) == named);
  // A template is the text that it makes; the order of templates makes no difference, which they are does.
  CHECK(probabilities({"--model", clip, "--labels", "cat,dog", "--template", "a {}"}) ==
        probabilities({"--model", clip, "--labels", "a cat,a dog"}));
  CHECK(probabilities({"--model", clip, "--labels", "cat,dog", "--template", "a {}", "--template", "{}!"}) !=
        probabilities({"--model", clip, "--labels", "cat,dog", "--template", "a {}"}));
}

TEST_CASE("SigLIP's probabilities are each label's own") {
  test::test_device();
  for (const std::string& model : {siglip, siglip2}) {
    const auto two = probabilities({"--model", model, "--labels", "a cat,a dog"});
    const auto one = probabilities({"--model", model, "--labels", "a dog"});
    REQUIRE(two.size() == 2);
    CHECK(one.at(0) == two.at(1));
  }
  // Trained on texts in lower case.
  CHECK(probabilities({"--model", siglip2, "--labels", "A Cat,a dog"}) ==
        probabilities({"--model", siglip2, "--labels", "a cat,a dog"}));
}

TEST_CASE("search finds the picture itself, and ranks by texts as embed gives them") {
  test::test_device();
  const test::TemporaryFolder folder;
  const std::string features = folder / "f.npy", texts = folder / "t.npy";
  const auto embedded = vitrine({"embed", other, picture, "--model", clip, "--out", features, "--json"});
  REQUIRE(embedded.status == 0);
  const std::string names = folder.file("f.json", embedded.out);
  const auto found =
      vitrine({"search", picture, "--in", features, "--names", names, "--model", clip, "--json"});
  REQUIRE(found.status == 0);
  const Json first = Json::parse(found.out.substr(0, found.out.find('\n')));
  CHECK(first.at("name") == picture);
  CHECK(first.at("similarity").get<double>() > 0.999);

  const std::string lines = folder.file("lines.txt", "a dog\n\n");
  REQUIRE(vitrine({"embed", "--text", lines, "--model", clip, "--out", texts}).status == 0);
  const NpyFile rows(texts);
  CHECK(rows.header().shape == std::vector<uint64_t>{2, 24});
  const auto by_text = vitrine({"search", "a dog", "--in", texts, "--model", clip, "--top", "1", "--json"});
  const Json best = Json::parse(by_text.out);
  CHECK(best.at("row") == 0);
  CHECK(best.at("similarity").get<double>() > 0.99999);
}

TEST_CASE("what texts need and isn't there is said in a sentence") {
  test::test_device();
  const test::TemporaryFolder folder;
  const std::string out = folder / "x.npy", lines = folder.file("lines.txt", "a\n"),
                    broken = folder.file("broken.txt", "a\xff\n");
  const std::string features = folder / "f.npy";
  REQUIRE(vitrine({"embed", picture, "--model", siglip, "--out", features}).status == 0);
  const auto fails = [&](const std::vector<std::string>& arguments, int status,
                         const std::vector<std::string>& words) {
    test::check_failure(vitrine(arguments), status, words);
  };
  fails({"classify", picture, "--model", clip, "--template", "{}"}, 2, {"--labels"});
  fails({"classify", picture, "--model", clip, "--labels", "a", "--template", "b"}, 2, {"--template", "{}"});
  fails({"classify", picture, "--model", clip, "--labels", " , "}, 2, {"--labels", "found no label"});
  fails({"classify", picture, "--model", data / "../assets/digits", "--labels", "a"}, 4,
        {"config.json", "clip"});
  fails({"classify", picture, "--arch", "vit_tiny_patch16_224", "--labels", "a"}, 2, {"--model"});
  fails({"embed", "--model", clip, "--out", out}, 2, {"--text"});
  fails({"embed", picture, "--text", lines, "--model", clip, "--out", out}, 2, {"--text"});
  fails({"embed", "--text", broken, "--model", clip, "--out", out}, 4, {"UTF-8"});
  fails({"search", "a", "--in", features, "--model", clip}, 4, {"32 numbers", "24"});
  fails({"search", "a", "--in", features, "--names", lines, "--model", siglip}, 4, {"lines.txt"});
  CHECK_FALSE(std::filesystem::exists(out));
}

}  // namespace vitrine

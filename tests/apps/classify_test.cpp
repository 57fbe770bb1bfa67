// vitrine classify and embed as a user calls them: from picture files to what PyTorch computes behind the
// libraries' own preprocessing (tests/parity/make_classify_fixture.py).
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "tests/support/command.h"
#include "tests/support/op_test.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"
#include "train/run/model_files.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;
using Dims = std::vector<uint64_t>;

const test::Path data = VITRINE_TEST_DATA;
const test::Path pictures = data / "images" / "pictures";
const test::Path fixtures = data / "parity" / "fixtures";

test::CommandResult vitrine(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), VITRINE_PROGRAM);
  return test::run_command(arguments);
}

std::vector<Json> json_lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<Json> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

// A model's folder with what a case wants beside the model.
void copy_model(const Json& entry, const test::TemporaryFolder& folder) {
  for (const auto& file :
       std::filesystem::directory_iterator(fixtures / entry.at("fixture").get<std::string>())) {
    const std::string name = file.path().filename().string();
    if (!name.ends_with(".npy") && name != "meta.json") std::filesystem::copy_file(file, folder / name);
  }
  if (!entry.at("preprocessor").is_null())
    folder.file("preprocessor_config.json", entry.at("preprocessor").dump());
}

struct Call {
  std::vector<std::string> arguments;  // the pictures and --model
  std::vector<std::string> files;
};
Call call_of(const Json& entry, const test::TemporaryFolder& model) {
  Call call;
  for (const Json& picture : entry.at("pictures"))
    call.files.push_back(pictures / picture.at("file").get<std::string>());
  call.arguments = call.files;
  call.arguments.insert(call.arguments.end(), {"--model", model.path(), "--dtype", "f32"});
  for (const Json& argument : entry.at("arguments")) call.arguments.push_back(argument.get<std::string>());
  return call;
}

std::vector<std::string> with(std::vector<std::string> first, const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

Json classify_cases() { return read_json(data / "parity" / "preprocessing" / "classify.json").at("cases"); }

}  // namespace

TEST_CASE("vitrine classify gives PyTorch's probabilities behind the library's preprocessing") {
  test::test_device();
  const Json cases = classify_cases();
  CHECK(cases.size() >= 7);
  for (const Json& entry : cases) {
    INFO(entry.at("fixture") << " " << entry.at("arguments"));
    const test::TemporaryFolder model;
    copy_model(entry, model);
    const Call call = call_of(entry, model);
    // More than there are classes: all of them. Three at a time: the last batch is not full.
    const auto result =
        vitrine(with({"classify", "--json", "--top", "1000", "--batch", "3"}, call.arguments));
    INFO(result.err);
    REQUIRE(result.status == 0);
    CHECK(result.err.empty());
    const std::vector<Json> lines = json_lines(result.out);
    REQUIRE(lines.size() == call.files.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      const auto expected = entry.at("pictures")[i].at("probabilities").get<std::vector<double>>();
      CHECK(lines[i].at("image") == call.files[i]);
      REQUIRE(lines[i].at("top").size() == expected.size());
      std::vector<double> out(expected.size(), -1);
      double last = 2;
      for (const Json& guess : lines[i].at("top")) {
        const uint64_t index = guess.at("index");
        out.at(index) = guess.at("probability");
        CHECK(guess.at("label") == "class " + std::to_string(index));
        CHECK(out[index] <= last);
        last = out[index];
      }
      CHECK(test::relative_error(out, expected) <= 2e-5);
    }
  }
}

TEST_CASE("vitrine classify names ImageNet's classes where a published model names none") {
  test::test_device();
  const test::TemporaryFolder model;
  ViTConfig config;
  config.image_height = config.image_width = 16;
  config.patch_height = config.patch_width = 8;
  config.dim = 64, config.depth = 1, config.heads = 1, config.mlp_hidden = 64, config.classes = 1000;
  // The picture is told nothing from: class 281 is the likeliest of all by its bias.
  write_weights(model.path(), config, [](const Parameter& parameter) {
    std::vector<float> values(parameter.shape.elements(), 0.0f);
    if (parameter.name == "head.bias") values[281] = 9;
    return values;
  });
  const std::vector<std::string> call = {
      "classify", pictures / "jpeg_grey.jpg", "--model", model.path(), "--top", "1"};
  const std::string assumed =
      "vitrine: warning: the class names are those of ImageNet-1k, because the model has 1000 classes and "
      "its files "
      "name none\n";
  const auto bare = vitrine(call);
  INFO(bare.err);
  REQUIRE(bare.status == 0);
  CHECK_THAT(bare.out, ContainsSubstring("281  tabby, tabby cat"));
  CHECK_THAT(bare.err, ContainsSubstring(assumed));

  const auto with_tag = [&](const std::string& tag) {
    model.file("config.json", R"({"architecture": "vit_tiny_patch16_224", "num_classes": 1000,
      "model_args": {"img_size": 16, "patch_size": 8, "embed_dim": 64, "depth": 1, "num_heads": 1, "mlp_ratio": 1.0},
      "pretrained_cfg": {"tag": ")" +
                                  tag + R"(", "num_classes": 1000, "input_size": [3, 16, 16]}})");
    const auto result = vitrine(call);
    INFO(result.err);
    REQUIRE(result.status == 0);
    CHECK(result.err.find("class names") == std::string::npos);
    return result.out;
  };
  CHECK_THAT(with_tag("augreg_in21k_ft_in1k"), ContainsSubstring("281  tabby, tabby cat"));
  CHECK_THAT(with_tag("augreg_in21k"), ContainsSubstring("281  class 281"));
}

TEST_CASE("vitrine embed writes PyTorch's features, a row a picture") {
  test::test_device();
  const test::TemporaryFolder folder;
  const std::string out = folder / "f.npy";
  for (const Json& entry : classify_cases()) {
    INFO(entry.at("fixture") << " " << entry.at("arguments"));
    const test::TemporaryFolder model;
    copy_model(entry, model);
    const Call call = call_of(entry, model);
    const auto result = vitrine(with({"embed", "--out", out}, call.arguments));
    INFO(result.err);
    REQUIRE(result.status == 0);
    std::vector<double> expected;
    for (const Json& picture : entry.at("pictures")) {
      const auto row = picture.at("features").get<std::vector<double>>();
      expected.insert(expected.end(), row.begin(), row.end());
    }
    const NpyFile npy(out);
    CHECK(npy.header().shape == Dims{call.files.size(), expected.size() / call.files.size()});
    const std::vector<float> values = npy.values<float>();
    CHECK(test::relative_error(std::vector<double>(values.begin(), values.end()), expected) <= 2e-5);
  }
  const std::string picture = pictures / "jpeg_420.jpg";
  const auto tokens = vitrine(
      {"embed", picture, picture, "--model", fixtures / "hf_vit", "--out", out, "--tokens", "--json"});
  INFO(tokens.err);
  REQUIRE(tokens.status == 0);
  const Json line = Json::parse(tokens.out);
  CHECK(line["what"] == "tokens");
  CHECK(line["shape"] == Json({2, 17, 24}));
  CHECK(line["images"] == Json({picture, picture}));
  CHECK(NpyFile(out).header().shape == Dims{2, 17, 24});
}

TEST_CASE("broken pictures are named at the end and the others still classified") {
  test::test_device();
  const test::TemporaryFolder folder;
  const std::string good = pictures / "jpeg_420.jpg", other = pictures / "png_rgb_8.png";
  const std::string text = folder.file("text.jpg", "no picture at all"), empty = folder.file("empty.png", "");
  const std::string cut = folder.file("cut.jpg", test::read_whole_file(good).substr(0, 300));
  const std::string none = folder / "none.webp";
  const auto result = vitrine({"classify", text, good, cut, empty, other, none, "--model",
                               fixtures / "hf_vit", "--batch", "2", "--json", "--top", "1"});
  INFO(result.err);
  CHECK(result.status == 1);
  const std::vector<Json> lines = json_lines(result.out);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["image"] == good);
  CHECK(lines[1]["image"] == other);
  CHECK(std::ranges::count(result.err, '\n') == 4);
  for (const char* name : {"text.jpg", "cut.jpg", "empty.png", "none.webp"})
    CHECK_THAT(result.err, ContainsSubstring(name));

  const auto alone = vitrine({"classify", text, "--model", fixtures / "hf_vit"});
  CHECK(alone.status == 1);
  CHECK(alone.out.empty());
  CHECK(std::ranges::count(alone.err, '\n') == 1);

  const std::string out = folder / "f.npy";
  const auto embedded = vitrine({"embed", text, good, "--model", fixtures / "hf_vit", "--out", out});
  CHECK(embedded.status == 1);
  CHECK(NpyFile(out).header().shape == Dims{1, 24});
  CHECK(vitrine({"embed", text, "--model", fixtures / "hf_vit", "--out", folder / "g.npy"}).status == 1);
  CHECK_FALSE(std::filesystem::exists(folder / "g.npy"));
}

TEST_CASE("a folder is its pictures, sorted by name") {
  test::test_device();
  const test::TemporaryFolder folder;
  for (const char* name : {"b.jpg", "a.JPEG", "c.png"})
    std::filesystem::copy_file(pictures / "jpeg_420.jpg", folder / name);
  folder.file("notes.txt", "not looked at");
  const auto result =
      vitrine({"classify", folder.path(), "--model", fixtures / "hf_vit", "--json", "--batch", "64"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  const std::vector<Json> lines = json_lines(result.out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["image"] == (folder / "a.JPEG").string());
  CHECK(lines[2]["image"] == (folder / "c.png").string());
  // The same pixels, whatever the place in the batch.
  CHECK(lines[0]["top"] == lines[1]["top"]);
  CHECK(lines[0]["top"].size() == 5);
  const test::TemporaryFolder nothing;
  const auto empty = vitrine({"classify", nothing.path(), "--model", fixtures / "hf_vit"});
  CHECK(empty.status == 1);
  CHECK(std::ranges::count(empty.err, '\n') == 1);
}

TEST_CASE("vitrine classify prints aligned text, and labels where the model has them") {
  test::test_device();
  const test::TemporaryFolder model;
  copy_model({{"fixture", "hf_vit"}, {"preprocessor", nullptr}}, model);
  Json config = read_json(model / "config.json");
  config["id2label"]["0"] = "tabby, tabby cat";
  config["id2label"]["1"] = "\xc3\xa9t\xc3\xa9\x1b[31m";
  const test::TemporaryFolder labelled;
  std::filesystem::copy_file(model / "model.safetensors", labelled / "model.safetensors");
  labelled.file("config.json", config.dump());
  const auto result =
      vitrine({"classify", pictures / "jpeg_420.jpg", "--model", labelled.path(), "--top", "11"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  CHECK_THAT(result.out, ContainsSubstring("   0  tabby, tabby cat  "));
  CHECK_THAT(result.out, ContainsSubstring("  10  class 10          "));
  CHECK_THAT(result.out, !ContainsSubstring("\x1b"));
  CHECK(std::ranges::count(result.out, '\n') == 12);
  CHECK(std::ranges::count(result.out, '%') == 11);
}

TEST_CASE("vitrine classify says what it cannot do") {
  test::test_device();
  const std::string picture = pictures / "jpeg_420.jpg";
  const auto check = [&](std::vector<std::string> arguments, int status, const std::string& words) {
    arguments.insert(arguments.begin(), "classify");
    const auto result = vitrine(arguments);
    INFO(result.err);
    CHECK(result.status == status);
    CHECK(result.out.empty());
    CHECK(std::ranges::count(result.err, '\n') == 1);
    CHECK_THAT(result.err, ContainsSubstring(words));
  };
  check({picture, "--model", fixtures / "hf_vit_backbone"}, 2, "vitrine embed");
  check({picture, "--model", fixtures / "hf_vit", "--top", "0"}, 2, "--top");
  check({picture, "--model", fixtures / "hf_vit", "--profile", "resnet"}, 2, "resnet");
  check({picture}, 2, "--model");
  check({"--model", fixtures / "hf_vit"}, 2, "images");
}

TEST_CASE("vitrine classify works in f16, at another size, and with random weights") {
  test::test_device();
  const std::string picture = pictures / "jpeg_403x301.jpg";
  const auto random =
      vitrine({"classify", picture, "--arch", "vit_tiny_patch16_224", "--seed", "7", "--json"});
  INFO(random.err);
  REQUIRE(random.status == 0);
  CHECK_THAT(random.err, ContainsSubstring("random weights from seed 7"));
  CHECK(json_lines(random.out).at(0)["top"].size() == 5);
  const auto larger =
      vitrine({"classify", picture, "--model", fixtures / "hf_vit", "--image-size", "24x32", "--json"});
  INFO(larger.err);
  CHECK(larger.status == 0);
  if (!test::stores(DType::f16)) return;
  const auto half =
      vitrine({"classify", picture, "--model", fixtures / "hf_vit", "--dtype", "f16", "--json"});
  const auto full =
      vitrine({"classify", picture, "--model", fixtures / "hf_vit", "--dtype", "f32", "--json"});
  INFO(half.err);
  REQUIRE(half.status == 0);
  const Json a = json_lines(half.out).at(0)["top"][0], b = json_lines(full.out).at(0)["top"][0];
  CHECK(a["index"] == b["index"]);
  CHECK(std::abs(a["probability"].get<double>() - b["probability"].get<double>()) < 5e-3);

  // A model that f16 can't hold: one line says so, and the answer is the same.
  const auto large = [&](const char* dtype, const char* command, std::vector<std::string> more) {
    more.insert(more.begin(),
                {command, picture, "--model", fixtures / "timm_large_hidden" / "model.safetensors", "--set",
                 "heads=2", "--dtype", dtype});
    return vitrine(more);
  };
  const auto promoted = large("f16", "classify", {"--json"});
  const auto exact = large("f32", "classify", {"--json"});
  REQUIRE(promoted.status == 0);
  CHECK(std::ranges::count(promoted.err, '\n') == 1);
  CHECK_THAT(promoted.err, ContainsSubstring("blocks.0.mlp runs in f32"));
  const Json c = json_lines(promoted.out).at(0)["top"][0], d = json_lines(exact.out).at(0)["top"][0];
  CHECK(c["index"] == d["index"]);
  CHECK(std::abs(c["probability"].get<double>() - d["probability"].get<double>()) < 5e-3);
  CHECK_THAT(large("f32", "classify", {"--check-range"}).err, ContainsSubstring("largest magnitude is"));
  const test::TemporaryFolder folder;
  const auto seen = large("f16", "attention", {"--out", folder / "heat.png"});
  INFO(seen.err);
  CHECK(seen.status == 0);
  CHECK_THAT(seen.err, ContainsSubstring("blocks.0.mlp runs in f32"));
}

}  // namespace vitrine

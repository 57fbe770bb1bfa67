// vitrine inspect --trace as a user calls it: every number that it shows against PyTorch's in float64.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "model/files/safetensors_writer.h"
#include "model/files/weights.h"
#include "model/vit/modules.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

const test::Path parity = test::Path(VITRINE_TEST_DATA) / "parity";

test::CommandResult inspect(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {VITRINE_PROGRAM, "inspect"});
  return test::run_command(arguments);
}

std::vector<double> flat(const Json& values) {
  if (!values.is_array()) return {values.get<double>()};
  std::vector<double> all;
  for (const Json& value : values) std::ranges::copy(flat(value), std::back_inserter(all));
  return all;
}

// Every value within rounding of PyTorch's: `relative` of the largest of its step.
void check_values(const std::vector<double>& found, const std::vector<double>& expected, double relative) {
  REQUIRE(found.size() == expected.size());
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) <= relative * largest);
}

void check_walk(const Json& found, const Json& expected, double relative) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    INFO(found[i].dump());
    CHECK(found[i]["name"] == expected[i]["name"]);
    CHECK(found[i]["shape"] == expected[i]["shape"]);
    CHECK(found[i].contains("slice") == expected[i].contains("values"));
    if (!expected[i].contains("values")) continue;
    CHECK(nlohmann::json(found[i]["slice"]["values"]).size() == expected[i]["values"].size());
    check_values(flat(found[i]["slice"]["values"]), flat(expected[i]["values"]), relative);
  }
}

// All numbers of the lines that hold nothing else.
std::vector<double> printed_numbers(const std::string& text) {
  std::vector<double> numbers;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" +-.0123456789e") != std::string::npos) continue;
    std::istringstream words(line);
    for (double number; words >> number;) numbers.push_back(number);
  }
  return numbers;
}

// An attention's weights, drawn from a seed, as a file of their own.
void write_attention(const std::filesystem::path& path, const Attention& module, uint64_t seed) {
  const auto source = random_weights(module, seed);
  std::vector<std::vector<std::byte>> data;
  std::vector<TensorToWrite> tensors;
  for (const Parameter& parameter : module.parameters()) {
    const auto bytes = source->find(parameter.name, parameter.shape, DType::f32).at(0).bytes;
    data.emplace_back(bytes.begin(), bytes.end());
    tensors.push_back(
        {parameter.name, FileDType::f32, {parameter.shape.dims().begin(), parameter.shape.dims().end()}, {}});
  }
  for (size_t i = 0; i < data.size(); ++i) tensors[i].data = data[i];
  write_safetensors(path, tensors);
}

}  // namespace

TEST_CASE("the walk through Attention(512) with 10 tokens shows PyTorch's numbers") {
  test::test_device();  // skips without a device
  const test::TemporaryFolder folder;
  const test::Path fixture = parity / "modules" / "attention_512";
  const std::string file = folder / "attention.safetensors", tokens = fixture / "input.npy";
  write_attention(file, Attention({.dim = 512, .heads = 8, .qkv_bias = false, .init = InitRule::torch}),
                  read_json(fixture / "meta.json").at("seed"));
  const Json expected = read_json(fixture / "walk.json");

  const auto json = inspect({file, "--trace", tokens, "--json", "--dtype", "f32"});
  INFO(json.err);
  REQUIRE(json.status == 0);
  const Json line = Json::parse(json.out);
  CHECK(line["attention"] ==
        Json({{"M", 1}, {"N", 10}, {"D", 512}, {"D_k", 64}, {"D_v", 64}, {"heads", 8}, {"W_o", true}}));
  check_walk(line["trace"], expected, 5e-6);

  // The text shows the same numbers in the same order, to six digits.
  const auto text = inspect({file, "--trace", tokens, "--dtype", "f32"});
  REQUIRE(text.status == 0);
  std::vector<double> numbers;
  for (const Json& step : line["trace"]) {
    if (step.contains("slice")) std::ranges::copy(flat(step["slice"]["values"]), std::back_inserter(numbers));
  }
  REQUIRE(numbers.size() == 6 * 9 + 36 + 3);
  const std::vector<double> printed = printed_numbers(text.out);
  REQUIRE(printed.size() == numbers.size());
  for (size_t i = 0; i < printed.size(); ++i)
    CHECK(std::abs(printed[i] - numbers[i]) <= 1e-5 * std::abs(numbers[i]));
  size_t at = 0;
  for (const char* heading :
       {"M=1 N=10 D=512 D_k=64 D_v=64 heads=8", "q[..., :3, :3, 1]: the first 3 heads x the first 3 tokens",
        "k[..., :3, :3, 1]", "v[..., :3, :3, 1]", "[1, 8, 64, 10]",
        "scores[..., :3, :3, 1]: the first 3 heads x the first 3 query tokens at key token 1",
        "weights[..., :3, :3, 1]", "(weights @ v)[..., :3, :3, 1]", "concat[:, [0, 1, 2, 7, 8, 9]]",
        "proj(concat)[..., :3, :3, 1]: the first image x the first 3 tokens at channel 1"}) {
    INFO(heading);
    at = text.out.find(heading, at);
    REQUIRE(at != std::string::npos);
  }

  // Half as many heads are another computation.
  const auto heads = inspect({file, "--trace", tokens, "--json", "--dtype", "f32", "--set", "heads=4"});
  REQUIRE(heads.status == 0);
  CHECK(Json::parse(heads.out)["trace"][4]["shape"] == Json({1, 4, 10, 128}));
}

TEST_CASE("the walk through a model's block shows PyTorch's numbers") {
  test::test_device();
  for (const char* name : {"walk_timm_vit", "walk_timm_patch_norm"}) {
    INFO(name);
    const test::Path fixture = parity / "modules" / name;
    const Json meta = read_json(fixture / "meta.json");
    const test::Path model = parity / "fixtures" / meta.at("model").get<std::string>();
    std::vector<std::string> arguments{model,
                                       "--trace",
                                       model / "input.npy",
                                       "--layer",
                                       std::to_string(meta.at("layer").get<int>()),
                                       "--json",
                                       "--dtype",
                                       "f32"};
    if (!std::filesystem::exists(model / "config.json")) arguments[0] = model / "model.safetensors";
    for (const std::string set : meta.at("set")) arguments.insert(arguments.end(), {"--set", set});
    const auto result = inspect(arguments);
    INFO(result.err);
    REQUIRE(result.status == 0);
    const Json line = Json::parse(result.out);
    check_walk(line["trace"], read_json(fixture / "walk.json"), 2e-5);
    CHECK(line["layer"] == meta.at("layer"));
    CHECK(line["attention"]["M"] == line["trace"][0]["shape"][0]);
    CHECK(line["attention"]["N"] == line["trace"].back()["shape"][1]);
  }
}

TEST_CASE("the walk's weights are the libraries', whatever goes into the scores") {
  test::test_device();
  for (const char* name : {"timm_beit", "hf_beit", "timm_relative", "timm_dinov3", "hf_dinov3",
                           "timm_eva02_clip", "timm_rope_mixed", "timm_pe_core", "timm_parallel"}) {
    INFO(name);
    const test::Path model = parity / "fixtures" / name;
    const NpyFile file(parity / "maps" / name /
                       "attention.npy");  // [layers, heads, tokens, tokens] of the last image
    const std::vector<float> weights = file.values<float>();
    const std::vector<uint64_t>& shape = file.header().shape;
    const uint64_t layer = shape[0] - 1, heads = shape[1], tokens = shape[2];
    const auto result = inspect({model, "--trace", model / "input.npy", "--layer", std::to_string(layer),
                                 "--json", "--dtype", "f32"});
    INFO(result.err);
    REQUIRE(result.status == 0);
    const Json trace = Json::parse(result.out)["trace"];
    const auto step = std::ranges::find_if(trace, [](const Json& each) { return each["name"] == "weights"; });
    REQUIRE(step != trace.end());
    const Json last = (*step)["slice"]["values"].back();
    REQUIRE(last.size() == std::min<uint64_t>(heads, 3));
    for (size_t head = 0; head < last.size(); ++head) {
      for (size_t query = 0; query < last[head].size(); ++query) {
        const float wanted = weights[((layer * heads + head) * tokens + query) * tokens + 1];
        CHECK(std::abs(last[head][query].get<double>() - static_cast<double>(wanted)) <= 1e-5);
      }
    }
  }
}

TEST_CASE("the walk goes through all attentions of a block, and through both softmaxes of a head") {
  test::test_device();
  const auto step_of = [](const char* fixture, const std::string& called) {
    const test::Path model = parity / "fixtures" / fixture;
    const auto result =
        inspect({model, "--trace", model / "input.npy", "--layer", "1", "--json", "--dtype", "f32"});
    INFO(result.err);
    REQUIRE(result.status == 0);
    const Json trace = Json::parse(result.out)["trace"];
    const auto step = std::ranges::find_if(trace, [&](const Json& each) { return each["name"] == called; });
    REQUIRE(step != trace.end());
    return (*step)["slice"]["values"].back();
  };
  // Of the second layer, [heads, tokens, tokens] of the last image.
  const auto map_of = [](const char* fixture, size_t head, size_t query) {
    const NpyFile file(parity / "maps" / fixture / "attention.npy");
    const std::vector<uint64_t>& shape = file.header().shape;
    return static_cast<double>(file.values<float>()[((shape[1] + head) * shape[2] + query) * shape[3] + 1]);
  };
  for (size_t branch = 0; branch < 2; ++branch) {
    const Json weights = step_of("timm_branches", "attns." + std::to_string(branch) + ".weights");
    REQUIRE(weights.size() == 3);
    for (size_t head = 0; head < 3; ++head) {
      for (size_t query = 0; query < 3; ++query)
        CHECK(std::abs(weights[head][query].get<double>() -
                       map_of("timm_branches", 3 * branch + head, query)) <= 1e-5);
    }
  }
  // The first head's map is its first softmax less the same share of its second, whoever asks.
  const Json softmaxes = step_of("timm_differential", "weights");
  std::vector<double> shares;
  for (size_t query = 0; query < 3; ++query) {
    const double first = softmaxes[0][query], second = softmaxes[1][query];
    shares.push_back((first - map_of("timm_differential", 0, query)) / second);
    CHECK(std::abs(shares.back()) > 0.01);
    CHECK(std::abs(shares.back() - shares.front()) <= 1e-3);
  }
  const auto refused =
      inspect({parity / "fixtures/timm_cait", "--trace", parity / "fixtures/timm_cait/input.npy"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring("talking heads"));
}

TEST_CASE("an attention with its own widths and without a projection can be walked through") {
  test::test_device();
  for (const auto& [name, set] :
       {std::pair{"attention_widths", "heads=3"}, std::pair{"attention_no_projection", "heads=4"}}) {
    INFO(name);
    const test::Path fixture = parity / "modules" / name;
    std::vector<std::string> arguments{fixture / "weights.safetensors",
                                       "--trace",
                                       fixture / "input.npy",
                                       "--json",
                                       "--dtype",
                                       "f32",
                                       "--set",
                                       set};
    if (name == std::string("attention_no_projection"))
      arguments.insert(arguments.end(), {"--set", "key_width=3", "--set", "value_width=6"});
    const auto result = inspect(arguments);
    INFO(result.err);
    REQUIRE(result.status == 0);
    const Json line = Json::parse(result.out);
    const std::vector<double> output = NpyFile(fixture / "output.npy").values<double>();
    const NpyHeader header = NpyFile(fixture / "output.npy").header();
    const Json& last = line["trace"].back();
    CHECK(last["shape"] == header.shape);
    std::vector<double> expected;
    const uint64_t n = header.shape[1], d = header.shape[2];
    if (last["name"] == "proj(concat)") {
      for (uint64_t b = 0; b < header.shape[0]; ++b)
        for (uint64_t i = 0; i < 3; ++i) expected.push_back(output[(b * n + i) * d + 1]);
    } else {
      REQUIRE(last["name"] == "concat");
      for (uint64_t b = 0; b < header.shape[0]; ++b)
        for (uint64_t i = 0; i < n; ++i)
          for (uint64_t c = 0; c < d; ++c)
            if (c < 3 || c + 3 >= d) expected.push_back(output[(b * n + i) * d + c]);
    }
    check_values(flat(last["slice"]["values"]), expected, 1e-5);
  }
}

TEST_CASE("the walk of a picture is that of its preprocessed numbers") {
  test::test_device();
  const test::TemporaryFolder folder;
  const test::Path model = parity / "fixtures" / "timm_vit";
  const std::string picture = test::Path(VITRINE_TEST_DATA) / "images" / "pictures" / "jpeg_403x301.jpg";
  const std::string numbers = folder / "x.npy";
  for (const std::string profile : {"", "clip"}) {
    INFO(profile);
    std::vector<std::string> preprocess{VITRINE_PROGRAM, "preprocess", picture, "--model",
                                        model,           "--out",      numbers};
    std::vector<std::string> trace{model, "--trace", picture, "--layer", "1", "--json"};
    for (auto* arguments : {&preprocess, &trace}) {
      if (!profile.empty()) arguments->insert(arguments->end(), {"--profile", profile});
    }
    REQUIRE(test::run_command(preprocess).status == 0);
    const auto expected = inspect({model, "--trace", numbers, "--layer", "1", "--json"});
    REQUIRE(expected.status == 0);
    const auto result = inspect(trace);
    INFO(result.err);
    REQUIRE(result.status == 0);
    Json steps = Json::parse(result.out)["trace"];
    CHECK(steps[0]["name"] == "picture");
    CHECK(steps[0]["shape"] == Json({301, 403, 3}));
    steps.erase(0);
    CHECK(steps == Json::parse(expected.out)["trace"]);
  }
}

TEST_CASE("vitrine inspect shows an attention alone") {
  const test::Path file = parity / "modules" / "attention" / "weights.safetensors";
  const auto text = inspect({file, "--set", "heads=3"});
  INFO(text.err);
  REQUIRE(text.status == 0);
  CHECK_THAT(text.out, ContainsSubstring("parameters 9408") && ContainsSubstring("D_k=16 D_v=16 heads=3") &&
                           ContainsSubstring("[1, 3, N, N]"));
  const auto json = inspect({file, "--set", "heads=3", "--json"});
  REQUIRE(json.status == 0);
  CHECK(Json::parse(json.out)["parameters"] == 48 * 144 + 144 + 48 * 48 + 48);
  CHECK(Json::parse(json.out)["attention"]["N"].is_null());
}

TEST_CASE("vitrine inspect --trace says in one sentence what is wrong") {
  const test::Path model = parity / "fixtures" / "timm_vit";
  const test::Path attention = parity / "modules" / "attention";
  const std::string file = attention / "weights.safetensors";
  check_failure(inspect({model, "--trace", model / "logits.npy"}), 4, {"logits.npy", "(B, 3, 32, 32)"});
  check_failure(inspect({model, "--trace", attention / "input.npy"}), 4, {"float32 (2, 7, 48)"});
  check_failure(inspect({model, "--trace", model / "config.json"}), 1, {"config.json"});
  check_failure(inspect({model, "--trace", model / "none.npy"}), 4, {"none.npy"});
  check_failure(inspect({model, "--trace", model / "none.jpg"}), 1, {"none.jpg"});
  check_failure(inspect({model, "--trace", model / "input.npy", "--profile", "timm"}), 2,
                {"input.npy", "--profile"});
  check_failure(inspect({model, "--exif"}), 2, {"--exif", "--trace"});
  check_failure(inspect({model, "--trace", model / "input.npy", "--layer", "99"}), 2, {"--layer", "99"});
  check_failure(inspect({model, "--layer", "1"}), 2, {"--layer", "--trace"});
  check_failure(inspect({file, "--trace", model / "input.npy", "--set", "heads=3"}), 4, {"(B, N, 48)"});
  check_failure(inspect({file, "--trace", attention / "output.npy", "--set", "heads=3"}), 4, {"float64"});
  check_failure(inspect({file, "--trace", attention / "input.npy", "--layer", "1"}), 2, {"--layer"});
  check_failure(inspect({file, "--set", "heads=7"}), 4, {"48 columns", "7 heads", "--set heads=N"});
  check_failure(inspect({file, "--set", "dim=40", "--set", "heads=3"}), 4, {"qkv.weight", "[144, 48]"});
}

}  // namespace vitrine

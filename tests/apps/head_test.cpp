// vitrine features --head, against PyTorch's own layers on transformers' features (make_head_fixtures.py).
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "images/image.h"
#include "runtime/util/npy.h"
#include "tests/support/command.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

const test::Path parity = test::Path(VITRINE_TEST_DATA) / "parity";
const test::Path heads = parity / "heads";
const std::string model = parity / "fixtures" / "hf_dinov2";  // 2 blocks of width 24, a class token

test::CommandResult features(const std::string& head, const Words& more) {
  Words all{VITRINE_PROGRAM, "features",     heads / "input.npy",
            "--dtype",       "f32",          "--model",
            model,           "--image-size", "24x12",
            "--head",        head,           "--json"};
  all.insert(all.end(), more.begin(), more.end());
  return test::run_command(all);
}

struct Case {
  const char* name;
  Words more;
};
const Case all_cases[] = {{"dinov2_classes", {}},
                          {"dinov2_depth", {"--depth-range", "0.001,10"}},
                          {"dinov3_classes", {"--layer", "0,1"}},
                          {"dinov3_depth", {"--layer", "0,-1", "--norm", "--depth-range", "0.001, 10"}},
                          {"dinov3_metres", {"--no-norm", "--depth-range", "0.001,10"}}};

}  // namespace

TEST_CASE("linear heads of DINOv2's and DINOv3's kinds give what PyTorch gives") {
  test::test_device();  // skips without a device
  const test::TemporaryFolder folder;
  for (const Case& c : all_cases) {
    INFO(c.name);
    const std::string out = folder / "out.npy", colors = folder / "colors.png";
    Words more = c.more;
    more.insert(more.end(), {"--out", out, "--colors", colors});
    const auto said = features(heads / (std::string(c.name) + ".safetensors"), more);
    INFO(said.err);
    REQUIRE(said.status == 0);
    const nlohmann::json line = nlohmann::json::parse(said.out);
    CHECK(line.at("shape") == std::vector<uint64_t>{24, 12});
    const NpyFile expected(heads / (std::string(c.name) + ".npy")), found(out);
    REQUIRE(found.header().shape == expected.header().shape);
    const Image picture = decode_image(colors);
    CHECK(picture.height == 24);
    CHECK(picture.width == 12);
    if (!line.contains("depth")) {
      const std::vector<uint8_t> classes = found.values<uint8_t>();
      CHECK(classes == expected.values<uint8_t>());
      double all = 0;
      for (const auto& one : line.at("classes")) all += one.at("share").get<double>();
      CHECK(std::abs(all - 1) < 1e-9);
      const auto most = line.at("classes").at(0);
      const auto count = std::ranges::count(classes, most.at("class").get<uint8_t>());
      CHECK(std::abs(most.at("share").get<double>() - static_cast<double>(count) / (24 * 12)) < 1e-9);
      continue;
    }
    const std::vector<float> depths = found.values<float>(), wanted = expected.values<float>();
    const float largest = *std::ranges::max_element(wanted);
    for (size_t i = 0; i < wanted.size(); ++i) CHECK(std::abs(depths[i] - wanted[i]) <= 2e-5f * largest);
    CHECK(line.at("depth").at("nearest") == *std::ranges::min_element(depths));
    CHECK(line.at("depth").at("farthest") == *std::ranges::max_element(depths));
  }
}

TEST_CASE("what a linear head doesn't say is asked for, and what is none is refused by name") {
  const test::TemporaryFolder folder;
  const std::string out = folder / "out.npy";
  const auto refused = [&](const std::string& head, Words more, const std::string& why, int status = 4) {
    more.insert(more.end(), {"--out", out});
    const auto said = features(head, more);
    INFO(said.err);
    CHECK(said.status == status);
    CHECK_THAT(said.err, ContainsSubstring(why));
    CHECK_FALSE(std::filesystem::exists(out));
  };
  const std::string depth = heads / "dinov3_depth.safetensors",
                    classes = heads / "dinov2_classes.safetensors";
  refused(depth, {"--layer", "0,1", "--norm"}, "--depth-range");
  refused(depth, {"--layer", "0,1", "--depth-range", "0.001,10"}, "--no-norm");
  refused(depth, {"--norm", "--depth-range", "0.001,10"}, "sees four blocks, and the model has 2");
  refused(heads / "dinov3_classes.safetensors", {}, "1 or 4 blocks");
  refused(classes, {"--layer", "0,1"}, "of each of 2 blocks");
  refused(classes, {"--depth-range", "0.001,10"}, "with a head of classes", 2);
  for (const char* range : {"10", "10,1", "-1,5", "a,b", "1,nan", "1,2,3"})
    refused(heads / "dinov2_depth.safetensors", {"--depth-range", range}, "--depth-range", 2);
  refused(classes, {"--prefix", out}, "--prefix with --head", 2);
  refused(model + "/model.safetensors", {}, "found none of its layers");
  refused(folder / "missing.safetensors", {}, "missing.safetensors");

  // A head of so many numbers a tensor, one after the other.
  struct Stored {
    const char *name, *shape;
    size_t count;
  };
  const auto made = [&](const std::vector<Stored>& tensors, float value = 1) {
    std::string header = "{", data;
    for (const Stored& one : tensors) {
      const size_t begin = data.size();
      for (size_t i = 0; i < one.count; ++i) data.append(reinterpret_cast<const char*>(&value), sizeof value);
      header += std::string(header.size() > 1 ? "," : "") + "\"" + one.name + R"(":{"dtype":"F32","shape":)" +
                one.shape + R"(,"data_offsets":[)" + std::to_string(begin) + "," +
                std::to_string(data.size()) + "]}";
    }
    return folder.file("head.safetensors", test::safetensors_bytes(header + "}", data));
  };
  const Stored layer{"decode_head.conv_seg.weight", "[1,24,1,1]", 24},
      bias{"decode_head.conv_seg.bias", "[1]", 1};
  refused(made({layer}), {}, "found no 'decode_head.conv_seg.bias'");
  refused(made({layer, bias}, NAN), {}, "isn't finite");
  refused(made({layer, {"decode_head.conv_seg.bias", "[2]", 2}}), {}, "has shape [2] where [1] belongs");
  refused(made({layer, bias, {"decode_head.bn.running_mean", "[24]", 24}}), {}, "decode_head.bn.running_var");
  refused(made({layer, bias, {"decode_head.project.weight", "[8]", 8}}), {}, "more than one layer");
  refused(made({layer, bias, {"other.conv_depth.weight", "[1,24]", 24}}), {},
          "and 'other.conv_depth.weight'");
  refused(made({{"decode_head.conv_seg.weight", "[24]", 24}, bias}), {}, "has shape [24]");
  // Beside the head anything may stand.
  CHECK(features(made({layer, bias, {"backbone.norm.weight", "[8]", 8}}), {"--out", out}).status == 0);
  CHECK(std::filesystem::exists(out));
}

}  // namespace vitrine

// vitrine run, inspect and bench as a user calls them.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/util/npy.h"
#include "runtime/util/system.h"
#include "runtime/vk/device_facts.h"
#include "tests/support/command.h"
#include "tests/support/op_test.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

const test::Path fixtures = test::Path(VITRINE_TEST_DATA) / "parity" / "fixtures";

test::CommandResult vitrine(std::vector<std::string> arguments,
                            const std::map<std::string, std::string>& environment = {}) {
  arguments.insert(arguments.begin(), VITRINE_PROGRAM);
  return test::run_command(arguments, environment);
}

}  // namespace

TEST_CASE("vitrine run writes what PyTorch computes, and the same bytes each time") {
  test::test_device();  // skips without a device
  const test::TemporaryFolder folder;
  const std::string model = fixtures / "timm_vit", input = fixtures / "timm_vit" / "input.npy";
  const std::string first = folder / "a.npy", second = folder / "b.npy";
  const auto result =
      vitrine({"run", "--model", model, "--input", input, "--output", first, "--dtype", "f32"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  CHECK_THAT(result.out, ContainsSubstring("logits (2, 11)"));
  const NpyFile file(first);
  CHECK(file.header().shape == std::vector<uint64_t>{2, 11});
  const std::vector<float> out = file.values<float>();
  const std::vector<double> reference = NpyFile(fixtures / "timm_vit" / "logits.npy").values<double>();
  CHECK(test::relative_error(std::vector<double>(out.begin(), out.end()), reference) <= 2e-5);

  CHECK(vitrine({"run", "--model", model, "--input", input, "--output", second, "--dtype", "f32"}).status ==
        0);
  CHECK(test::read_whole_file(first) == test::read_whole_file(second));
  CHECK(folder.names() == std::vector<std::string>{"a.npy", "b.npy"});

  // One image at a time: the same numbers to rounding.
  const auto json = vitrine({"run", "--model", model, "--input", input, "--output", second, "--batch", "1",
                             "--json", "--what", "tokens"});
  REQUIRE(json.status == 0);
  CHECK(nlohmann::json::parse(json.out)["shape"] == nlohmann::json({2, 17, 36}));
  const std::vector<float> tokens = NpyFile(second).values<float>();
  CHECK(test::relative_error(std::vector<double>(tokens.begin(), tokens.end()),
                             NpyFile(fixtures / "timm_vit" / "tokens.npy").values<double>()) <= 2e-5);
}

TEST_CASE("vitrine run says in one sentence what is wrong with its files") {
  const test::TemporaryFolder folder;
  const std::string model = fixtures / "timm_vit", input = fixtures / "timm_vit" / "input.npy",
                    out = folder / "o.npy";
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", "--output", out});
    return vitrine(arguments);
  };
  // Rank and type, size, not an .npy at all.
  check_failure(run({"--model", model, "--input", fixtures / "timm_vit" / "logits.npy"}), 4,
                {"logits.npy", "float64 (2, 11)", "float32 (B, 3, 32, 32)"});
  check_failure(run({"--model", model, "--input", fixtures / "myvit" / "input.npy"}), 4, {"(5, 1, 28, 28)"});
  check_failure(run({"--model", model, "--input", fixtures / "timm_vit" / "config.json"}), 4,
                {"config.json"});
  check_failure(run({"--model", folder / "none", "--input", input}), 4, {"none"});
  check_failure(run({"--model", fixtures / "timm_vit" / "model.safetensors", "--input", input}), 4,
                {"--set heads=N"});
  check_failure(run({"--model", model, "--input", input, "--set", "nose=3"}), 2, {"nose"});
  check_failure(run({"--model", model, "--input", input, "--what", "smell"}), 2, {"smell", "features"});
  check_failure(run({"--arch", "vit_base_patch16_242", "--input", input}), 2, {"vit_base_patch16_224"});
  check_failure(run({"--input", input}), 2, {"--model"});
  check_failure(run({"--model", model}), 2, {"--input"});
  CHECK(folder.names().empty());
}

TEST_CASE("vitrine run --image-size takes images of another size than the model was published for") {
  const test::TemporaryFolder folder;
  const std::string model = fixtures / "timm_vit", input = fixtures / "timm_vit" / "resized_input.npy",
                    torchvision = fixtures / "torchvision" / "model.safetensors", out = folder / "o.npy";
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", "--input", input, "--output", out});
    return vitrine(arguments);
  };
  check_failure(run({"--model", model}), 4, {"(2, 3, 48, 24)", "(B, 3, 32, 32)", "--image-size 48x24"});
  for (const char* wrong : {"x24", "48x", "48x24x3", "-1", "0", "48X24", "99999999999999999999"})
    check_failure(run({"--model", model, "--image-size", wrong}), 2, {"--image-size", wrong, "HxW"});
  check_failure(run({"--model", model, "--image-size", "4"}), 2, {"--image-size 4x4", "patch_height"});
  check_failure(run({"--model", torchvision, "--set", "heads=2", "--image-size", "48x28"}), 2,
                {"--image-size 48x28", "patches of 8x8"});
  test::test_device();
  const auto result = run({"--model", model, "--image-size", "48x24"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  CHECK(result.err.empty());
  const std::vector<float> logits = NpyFile(out).values<float>();
  CHECK(test::relative_error(std::vector<double>(logits.begin(), logits.end()),
                             NpyFile(fixtures / "timm_vit" / "resized_logits.npy").values<double>()) <= 2e-5);
  // timm cuts off what fills no patch; so does Vitrine, and says so.
  const auto cut = vitrine({"inspect", model, "--image-size", "50x31"});
  CHECK(cut.status == 0);
  CHECK_THAT(cut.err, ContainsSubstring("last 2 rows and 7 columns"));
  CHECK_THAT(cut.out, ContainsSubstring("4x4, resampled to 6x3 (bicubic_antialias)"));
  CHECK_THAT(vitrine({"inspect", model, "--image-size", "32"}).out, !ContainsSubstring("resampled"));
  const auto random = vitrine({"inspect", "vit_tiny_patch16_224", "--image-size", "96x64", "--json"});
  CHECK(nlohmann::json::parse(random.out)["attention"]["N"] == 25);
}

TEST_CASE("a model's name is looked up in Hugging Face's cache") {
  const test::TemporaryFolder cache;
  namespace fs = std::filesystem;
  const std::map<std::string, std::string> environment = {{"HF_HUB_CACHE", cache.path()}};
  const auto inspect = [&](const std::string& name) { return vitrine({"inspect", name}, environment); };
  check_failure(inspect("org/tiny"), 4,
                {"org/tiny", cache.path().string(), "models--org--tiny", "hf download org/tiny"});
  check_failure(vitrine({"run", "--model", "org/tiny", "--input", "x.npy", "--output", "y.npy"}, environment),
                4, {"org/tiny", "hf download org/tiny"});

  // As the hub's own client lays it out: a snapshot of links to blobs.
  const fs::path repository = cache / "models--org--tiny", snapshot = repository / "snapshots" / "0123abcd";
  for (const fs::path& made : {repository / "refs", repository / "blobs", snapshot})
    fs::create_directories(made);
  (void)cache.file("models--org--tiny/refs/main", "0123abcd");
  for (const char* name : {"model.safetensors", "config.json"}) {
    fs::copy_file(fixtures / "hf_vit" / name, repository / "blobs" / name);
    test::make_link(fs::path("../../blobs") / name, snapshot / name);
  }
  test::test_device();
  const auto found = inspect("org/tiny");
  CHECK(found.status == 0);
  CHECK(found.err.empty());
  CHECK_THAT(found.out, ContainsSubstring("org/tiny (hf)"));
  fs::remove(repository / "refs" / "main");
  CHECK_THAT(inspect("org/tiny").err, ContainsSubstring("0123abcd"));

  fs::remove(snapshot / "model.safetensors");
  (void)cache.file("models--org--tiny/snapshots/0123abcd/pytorch_model.bin", "x");
  const auto pickled = inspect("org/tiny");
  CHECK(pickled.status == 4);
  CHECK_THAT(pickled.err, ContainsSubstring("pytorch_model.bin") && ContainsSubstring("safetensors"));
}

TEST_CASE("vitrine run --dtype f16 says once which layers run in f32, and is right") {
  test::skip_without_f16();
  const test::TemporaryFolder folder;
  const test::Path fixture = fixtures / "timm_large_hidden";
  const std::string out = folder / "o.npy";
  const auto run = [&](const test::Path& model, std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "--model", model / "model.safetensors", "--input", model / "input.npy",
                               "--output", out, "--set", "heads=2", "--batch", "1"});
    return vitrine(more);
  };
  const auto result = run(fixture, {"--dtype", "f16"});
  CHECK(result.status == 0);
  CHECK(std::ranges::count(result.err, '\n') == 1);
  CHECK_THAT(result.err, ContainsSubstring("blocks.0.mlp runs in f32") && ContainsSubstring("65504"));
  const std::vector<float> logits = NpyFile(out).values<float>();
  CHECK(test::relative_error(std::vector<double>(logits.begin(), logits.end()),
                             NpyFile(fixture / "logits.npy").values<double>()) <= 5e-3);
  // Neither f32 nor a model that fits has anything to say, unless it is asked.
  CHECK(run(fixture, {"--dtype", "f32"}).err.empty());
  CHECK(run(fixtures / "timm_no_qkv_bias", {"--dtype", "f16"}).err.empty());
  const auto asked = run(fixtures / "timm_no_qkv_bias", {"--dtype", "f16", "--check-range"});
  CHECK(std::ranges::count(asked.err, '\n') == 1);
  CHECK_THAT(asked.err, ContainsSubstring("largest magnitude") && ContainsSubstring("blocks."));
  const auto both = run(fixture, {"--dtype", "f16", "--check-range"});
  CHECK(both.status == 0);
  CHECK_THAT(both.err, ContainsSubstring("blocks.0.mlp runs in f32"));
}

TEST_CASE("vitrine run leaves nothing behind where it cannot write") {
  test::test_device();
  const test::TemporaryFolder folder;
  check_failure(vitrine({"run", "--model", fixtures / "timm_vit", "--input",
                         fixtures / "timm_vit" / "input.npy", "--output", folder / "none" / "o.npy"}),
                1, {"o.npy"});
  CHECK(folder.names().empty());
}

TEST_CASE("vitrine inspect shows configuration, walk, memory and dispatches") {
  test::test_device();
  const auto text = vitrine({"inspect", "myvit_mnist", "--batch", "3"});
  CHECK(text.status == 0);
  for (const char* words :
       {"parameters 1,642", "M=3 N=50 D=8 D_k=4 D_v=4 heads=2, without W_o", "[3, 2, 50, 50]",
        "per_head_maps        true", "largest live set", "blocks.1.mlp.fc2"}) {
    CHECK_THAT(text.out, ContainsSubstring(words));
  }
  const auto json = vitrine({"inspect", fixtures / "hf_deit", "--json"});
  INFO(json.err);
  REQUIRE(json.status == 0);
  const auto object = nlohmann::json::parse(json.out);
  CHECK(object["family"] == "hf");
  CHECK(object["config"]["distilled_head"] == true);
  CHECK(object["config"]["eps"] == 1e-12);
  CHECK(object["attention"]["N"] == 18);
  CHECK(object["shapes"][0]["operator"] == "patch_embed");
  CHECK(object["dispatches"].size() > 15);
  CHECK(object["memory"]["activation_bytes"] > 0);
  check_failure(vitrine({"inspect", "vit_none"}), 4, {"vit_none"});
}

TEST_CASE("vitrine inspect without a driver shows what needs none, then says what is missing") {
  const auto result = vitrine({"inspect", "vit_b_16"}, {{"VK_DRIVER_FILES", test::no_driver_files()}});
  CHECK(result.status == 3);
  CHECK_THAT(result.out, ContainsSubstring("86,567,656"));
  CHECK_THAT(result.err, ContainsSubstring("install"));
}

TEST_CASE("vitrine bench prints one JSON line a combination with all that was promised") {
  test::TestDevice& device = test::test_device();
  const auto result = vitrine(
      {"bench", "--arch", "myvit_mnist", "--batch", "1,4", "--dtype", "f32,auto", "--runs", "5", "--json"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  std::istringstream lines(result.out);
  std::vector<nlohmann::json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  REQUIRE(all.size() == 4);
  for (const auto& line : all) {
    for (const char* key :
         {"arch", "batch", "dtype", "device", "driver", "median_ms", "min_ms", "max_ms", "device_ms",
          "images_per_second", "gflops", "peak_device_bytes", "checksum", "operators", "layers"}) {
      CHECK(line.contains(key));
    }
    CHECK(line.size() == 15);
    CHECK(line["device"] == device.device->capabilities().name);
    CHECK(line["min_ms"] <= line["median_ms"]);
    CHECK(line["median_ms"] <= line["max_ms"]);
    CHECK(line["peak_device_bytes"] > 1642 * 4);
    double sum = 0;
    for (const auto& row : line["operators"]) sum += row["ms"].get<double>();
    CHECK(sum > 0);
    // The same dispatches by layer: the number of a block is left out of a layer's name.
    double by_layer = 0, flops = 0, bytes = 0;
    bool blocks = false;
    for (const auto& row : line["layers"]) {
      by_layer += row["ms"].get<double>();
      flops += row["flops"].get<double>();
      bytes += row["bytes"].get<double>();
      blocks = blocks || row["layer"].get<std::string>().find('*') != std::string::npos;
    }
    CHECK_THAT(by_layer, Catch::Matchers::WithinRel(sum, 1e-9));
    CHECK_THAT(flops / line["median_ms"].get<double>() / 1e6,
               Catch::Matchers::WithinRel(line["gflops"].get<double>(), 1e-9));
    CHECK(bytes > 1642 * 4);
    CHECK(blocks);
  }
  // The same work gives the same bits; more images give others.
  CHECK(all[0]["checksum"] == all[2]["checksum"]);
  CHECK(all[0]["checksum"] != all[1]["checksum"]);
  check_failure(vitrine({"bench", "--arch", "myvit_mnist", "--batch", "0"}), 2, {"--batch"});

  const auto maps = vitrine({"bench", "--arch", "myvit_mnist", "--runs", "5", "--maps", "--json"});
  INFO(maps.err);
  REQUIRE(maps.status == 0);
  const auto line = nlohmann::json::parse(maps.out);
  CHECK(line["maps_median_ms"] > 0);
  CHECK(line["maps_ratio"] > 0);
  CHECK(line["checksum"] == all[0]["checksum"]);
}

TEST_CASE("vitrine bench names the device and its driver in its first line") {
  const Capabilities& device = test::test_device().device->capabilities();
  for (const std::vector<std::string>& what :
       {std::vector<std::string>{"--arch", "myvit_mnist", "--runs", "1"},
        {"--arch", "myvit_mnist", "--startup"},
        {"--op", "add", "--shape", "19x67", "--runs", "1"}}) {
    std::vector<std::string> arguments{"bench"};
    arguments.insert(arguments.end(), what.begin(), what.end());
    const auto text = vitrine(arguments);
    REQUIRE(text.status == 0);
    CHECK(text.out.substr(0, text.out.find('\n')).ends_with(", on " + device_and_driver(device)));
  }
}

TEST_CASE("bench --host-time says what a run costs the CPU") {
  test::test_device();  // skips without a device
  const auto result = vitrine({"bench", "--arch", "myvit_mnist", "--host-time", "--runs", "3", "--json"});
  if (!system::thread_seconds()) return test::check_failure(result, 1, {"clock"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  const auto host = nlohmann::json::parse(result.out).at("host");
  CHECK(host.at("runs") == 3);
  // The computation, and where the device's memory isn't the host's the way there and back.
  const Capabilities& device = test::test_device().device->capabilities();
  CHECK(host.at("submissions") ==
        1 + (device.unified_memory() ? 0 : 1) + (device.unified_cached_memory() ? 0 : 1));
  CHECK(host.at("waits") == 1);
  CHECK(host.at("min_us") > 0.0);
  CHECK(host.at("min_us") <= host.at("median_us"));
  for (const char* key : {"clock_us", "driver_us", "copy_in_us", "copy_out_us"}) CHECK(host.at(key) > 0.0);
  const auto text = vitrine({"bench", "--arch", "myvit_mnist", "--host-time", "--runs", "3"});
  CHECK_THAT(text.out, ContainsSubstring("CPU time of a run outside the driver"));
}

}  // namespace vitrine

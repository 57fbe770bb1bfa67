// vitrine bench --train --data: how fast pictures come into a training.
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "images/png_writer.h"
#include "tests/apps/train_setting.h"
#include "tests/support/command.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

test::CommandResult bench(const std::string& config, const std::string& data,
                          std::vector<std::string> more = {}) {
  more.insert(more.begin(), {VITRINE_PROGRAM, "bench", "--train", config, "--data", data});
  return test::run_command(more);
}

// Some of two classes, none of the model's size.
void write_photographs(const std::filesystem::path& folder) {
  for (uint32_t i = 0; i < 10; ++i) {
    const uint32_t width = 20 + i, height = 31 - i;
    std::vector<uint8_t> pixels(size_t{3} * width * height);
    for (size_t p = 0; p < pixels.size(); ++p) pixels[p] = static_cast<uint8_t>(p * (i + 7) / 5);
    const test::Path into = folder / "train" / (i % 2 ? "odd" : "even");
    std::filesystem::create_directories(into);
    write_png(into / (std::to_string(i) + ".png"), width, height, 3, pixels);
  }
}

}  // namespace

TEST_CASE("vitrine bench --train --data counts an epoch's samples, of bytes and of pictures") {
  const bool host = test::test_device().device->capabilities().type == DeviceType::cpu;
  const test::TrainSetting bytes;
  const test::CommandResult of_bytes = bench(bytes.config, bytes.folder.path(), {"--json"});
  INFO(of_bytes.err);
  REQUIRE(of_bytes.status == 0);
  const nlohmann::json line = nlohmann::json::parse(of_bytes.out);
  CHECK(line.at("pictures") == 100);
  CHECK(line.at("images_per_second").get<double>() > 0);
  CHECK(line.at("resized") == false);

  const test::TrainSetting pictures(
      R"({"model": {"channels": 3}, "data": {"mean": null, "std": null, "random_resized_crop": {},
      "rand_augment": "rand-m9-n2-inc1", "crop_padding": null}, "accumulation": null, "batch_size": 4})");
  const test::TemporaryFolder folder;
  write_photographs(folder.path());
  const test::CommandResult of_pictures = bench(pictures.config, folder.path(), {"--json"});
  INFO(of_pictures.err);
  REQUIRE(of_pictures.status == 0);
  CHECK(nlohmann::json::parse(of_pictures.out).at("pictures") == 10);
  CHECK(nlohmann::json::parse(of_pictures.out).at("resized") == host);
  const test::CommandResult in_words = bench(pictures.config, folder.path());
  CHECK(in_words.out.find("10 pictures of") != std::string::npos);
}

TEST_CASE("vitrine bench --data needs a training, and data that are there") {
  const test::TrainSetting setting;
  test::check_failure(test::run_command({VITRINE_PROGRAM, "bench", "--data", setting.folder.path()}), 2,
                      {"--train"});
  for (const char* option : {"--batch", "--runs", "--seconds", "--trained"})
    CHECK(bench(setting.config, setting.folder.path(), {option, "1"}).status == 2);
  test::check_failure(bench(setting.config, setting.folder / "nowhere"), 4, {"nowhere"});
}

}  // namespace vitrine

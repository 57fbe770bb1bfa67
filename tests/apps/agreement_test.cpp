// What a training's own test, eval and classify say of each of 200 pictures of odd shapes, many of which EXIF
// data would turn.
// jpeglib.h needs what comes before it.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on
#include <zlib.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "images/png_writer.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

namespace fs = std::filesystem;

constexpr const char* class_names[] = {"=flat", "left, tall", "right"};

// TIFF with the orientation alone.
std::string exif_of(int orientation) {
  std::string tiff("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18);
  tiff += static_cast<char>(orientation);
  return tiff + std::string(7, '\0');
}

std::string png_file(uint32_t width, uint32_t height, const std::vector<uint8_t>& rgb, int orientation) {
  const std::vector<std::byte> bytes = png_of(width, height, 3, rgb, "a picture");
  std::string png(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (orientation == 0) return png;
  const auto number = [](size_t value) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 255);
    return text;
  };
  const std::string content = "eXIf" + exif_of(orientation);
  const uint32_t crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
  return png.insert(33, number(content.size() - 4) + content + number(crc));  // behind IHDR
}

std::string jpeg_file(uint32_t width, uint32_t height, std::vector<uint8_t> rgb, int orientation) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* file = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &file, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_start_compress(&info, TRUE);
  if (orientation != 0) {
    const std::string exif = std::string("Exif\0\0", 6) + exif_of(orientation);
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  }
  for (uint32_t y = 0; y < height; ++y) {
    JSAMPROW row = rgb.data() + size_t{y} * width * 3;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string bytes(reinterpret_cast<const char*>(file), size);
  std::free(file);
  return bytes;
}

// Noise, brighter where the class says; each side of its own length.
void write_picture(const test::TemporaryFolder& folder, const std::string& part, int number,
                   std::mt19937& random) {
  const size_t label = random() % 3;
  const uint32_t width = 5 + random() % 90, height = 5 + random() % 90;
  std::vector<uint8_t> rgb(size_t{width} * height * 3);
  for (size_t i = 0; i < rgb.size(); ++i) {
    const size_t x = i / 3 % width, y = i / 3 / width;
    const bool bright = label == 0 ? y * 2 < height : (x * 2 < width) == (label == 1);
    rgb[i] = static_cast<uint8_t>(random() % 120 + (bright ? 100 : 0));
  }
  const int orientation = static_cast<int>(random() % 9);
  const std::string at = part + "/" + class_names[label];
  fs::create_directories(folder / at);
  const bool jpeg = number % 2 == 0;
  folder.file(at + "/" + std::to_string(number) + (jpeg ? ".jpg" : ".png"),
              jpeg ? jpeg_file(width, height, rgb, orientation) : png_file(width, height, rgb, orientation));
}

// A line of CSV, whose cells hold no line breaks.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

struct Answer {
  std::string label;
  float probability = 0;
  bool operator==(const Answer&) const = default;
};

constexpr const char* classified_together = "7";

std::map<std::string, Answer> classified(const test::TemporaryFolder& folder, const std::string& model,
                                         const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{VITRINE_PROGRAM, "classify"};
  for (const char* name : class_names) arguments.push_back(folder / ("data/test/" + std::string(name)));
  arguments.insert(arguments.end(), {"--model", folder / model, "--json", "--batch", classified_together});
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto result = test::run_command(arguments);
  INFO(result.err);
  REQUIRE(result.status == 0);
  std::map<std::string, Answer> answers;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    const auto& top = json.at("top").at(0);
    answers[json.at("image").get<std::string>()] = {top.at("label").get<std::string>(),
                                                    top.at("probability").get<float>()};
  }
  return answers;
}

nlohmann::json last_line(const std::string& text) {
  std::istringstream stream(text);
  std::string line, last;
  while (std::getline(stream, line)) last = line;
  return nlohmann::json::parse(last);
}

void check_agreement(const test::TemporaryFolder& folder, const std::vector<std::string>& training,
                     const std::string& model = "run", bool colored = true) {
  std::vector<std::string> arguments{VITRINE_PROGRAM, "train",        "--data",   folder / "data",
                                     "--out",         folder / "run", "--epochs", "1"};
  arguments.insert(arguments.end(), training.begin(), training.end());
  const auto trained = test::run_command(arguments);
  INFO(trained.err);
  REQUIRE(trained.status == 0);
  // Kernels for GPUs may sum in another order in a batch of another size; those for CPUs don't, whatever the
  // size.
  const bool any_size = test::has_cpu_kernels();
  const auto evaluated = test::run_command({VITRINE_PROGRAM, "eval", "--data", folder / "data", "--model",
                                            folder / "run", "--predictions", folder / "predictions.csv",
                                            "--batch", any_size ? "64" : classified_together});
  INFO(evaluated.err);
  REQUIRE(evaluated.status == 0);
  const auto tested = last_line(trained.out), figures = last_line(evaluated.out);
  const double loss = figures.at("test_loss").get<double>();
  CHECK_THAT(tested.at("test_loss").get<double>(), Catch::Matchers::WithinRel(loss, any_size ? 0 : 1e-6));
  CHECK(tested.at("test_accuracy").get<double>() == figures.at("test_accuracy").get<double>());

  // transformers' processors make as many channels as the model has, if they are told to.
  const auto processor =
      nlohmann::json::parse(test::read_whole_file(folder / (model + "/preprocessor_config.json")));
  CHECK(processor.at("do_convert_rgb") == colored);

  const std::map<std::string, Answer> answers = classified(folder, "run");
  CHECK(answers.size() == 200);
  std::istringstream lines(test::read_whole_file(folder / "predictions.csv"));
  std::string line;
  REQUIRE(std::getline(lines, line));
  CHECK(line == "index,file,label,predicted,probability");
  int count = 0, right = 0;
  std::set<float> different;
  for (; std::getline(lines, line); ++count) {
    CAPTURE(line);
    const std::vector<std::string> cells = cells_of(line);
    REQUIRE(cells.size() == 5);
    CHECK(cells[0] == std::to_string(count));
    // A name that a spreadsheet would compute has an apostrophe in front.
    const auto name = [](const std::string& cell) { return cell.substr(cell.starts_with('\'') ? 1 : 0); };
    REQUIRE(answers.contains(cells[1]));
    CHECK(answers.at(cells[1]) == Answer{name(cells[3]), std::stof(cells[4])});
    CHECK(fs::path(cells[1]).parent_path().filename().string() == name(cells[2]));
    CHECK(!cells[2].starts_with('='));
    right += cells[2] == cells[3] ? 1 : 0;
    different.insert(std::stof(cells[4]));
  }
  CHECK(count == 200);
  CHECK(right / 200.0 == tested.at("test_accuracy").get<double>());
  CHECK(different.size() > 150);
  // What a training from nothing is shown nobody turns; the digits' preprocessing turns by EXIF. The other
  // way the answers are others.
  const std::map<std::string, Answer> asked = classified(folder, "run", {colored ? "--exif" : "--no-exif"});
  int others = 0;
  for (const auto& [file, answer] : answers) others += asked.at(file) == answer ? 0 : 1;
  CHECK(others > 100);
}

}  // namespace

TEST_CASE("a training, eval and classify say the same of 200 pictures of odd shapes with EXIF, one by one") {
  test::test_device();
  const test::TemporaryFolder folder;
  std::mt19937 random(18);
  for (int i = 0; i < 60; ++i) write_picture(folder, "data/train", i, random);
  for (int i = 0; i < 200; ++i) write_picture(folder, "data/test", i, random);
  SECTION("from nothing, in colors, covered and cropped") {
    folder.file("config.json",
                R"({"model": {"image_size": 24, "patch_size": 8, "channels": 3, "dim": 32, "depth": 2,
        "heads": 2, "classes": 3}, "data": {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225],
        "random_resized_crop": {}, "flip": true}, "lr": 0.005, "batch_size": 16})");
    check_agreement(folder, {"--config", folder / "config.json"});
  }
  SECTION("from the digits' model, in grey and to its sides, and validated") {
    check_agreement(folder,
                    {"--model", test::Path(VITRINE_TEST_DATA) / "../assets/digits", "--validate-every",
                     "epoch", "--lr", "0.01"},
                    "run/best", false);
  }
}

}  // namespace vitrine

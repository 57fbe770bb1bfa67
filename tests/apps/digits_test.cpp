#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "images/image.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "train/data/dataset.h"
#include "train/digits/digit_fonts.h"

namespace vitrine::test {
namespace {

CommandResult digits(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {VITRINE_PROGRAM, "digits"});
  return run_command(arguments);
}

}  // namespace

TEST_CASE("vitrine digits writes the same files for the same seed, and says which fonts it used") {
  const TemporaryFolder folder;
  const auto make = [&](const char* name, const char* seed, const char* distortion = "1") {
    return digits({"--out", (folder / name).string(), "--train", "40", "--test", "20", "--seed", seed,
                   "--distortion", distortion, "--json"});
  };
  const CommandResult first = make("a", "7");
  if (first.status == 1 && first.err.find("fonts") != std::string::npos) SKIP(first.err);
  REQUIRE(first.status == 0);
  const nlohmann::json line = nlohmann::json::parse(first.out);
  CHECK(line["train"] == 40);
  CHECK(line["test"] == 20);
  CHECK(line["size"] == 28);
  CHECK(!line["train_fonts"].empty());
  CHECK(!line["test_fonts"].empty());
  for (const auto& family : line["test_fonts"]) {
    for (const auto& other : line["train_fonts"]) CHECK(family != other);
  }
  CHECK(make("b", "7").status == 0);
  CHECK(make("c", "8").status == 0);
  CHECK(make("d", "7", "0.25").status == 0);
  CHECK(read_whole_file(folder / "a/train-images-idx3-ubyte") !=
        read_whole_file(folder / "d/train-images-idx3-ubyte"));
  CHECK(read_whole_file(folder / "a/train-labels-idx1-ubyte") ==
        read_whole_file(folder / "d/train-labels-idx1-ubyte"));
  CHECK(read_whole_file(folder / "a/train-images-idx3-ubyte").size() == 16 + 40 * 28 * 28);
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                           "t10k-labels-idx1-ubyte"}) {
    CAPTURE(name);
    CHECK(read_whole_file(folder / "a" / name) == read_whole_file(folder / "b" / name));
    CHECK(read_whole_file(folder / "a" / name) != read_whole_file(folder / "c" / name));
  }
}

TEST_CASE("vitrine digits tests fonts that were seen with other pictures, on request") {
  const TemporaryFolder folder;
  const auto make = [&](const char* name, std::vector<std::string> more) {
    std::vector<std::string> arguments{
        "--out", (folder / name).string(), "--train", "40", "--test", "40", "--seed", "7", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return digits(arguments);
  };
  const CommandResult made = make("a", {"--seen-fonts"});
  if (made.status == 1 && made.err.find("fonts") != std::string::npos) SKIP(made.err);
  REQUIRE(made.status == 0);
  const nlohmann::json line = nlohmann::json::parse(made.out);
  CHECK(!line["train_fonts"].empty());
  CHECK(line["train_fonts"] == line["test_fonts"]);
  CHECK(line["train_faces"] == line["test_faces"]);
  const auto file = [&](const char* set, const char* name) { return read_whole_file(folder / set / name); };
  CHECK(file("a", "train-images-idx3-ubyte") != file("a", "t10k-images-idx3-ubyte"));
  // What is learnt from stays the same.
  CHECK(make("b", {}).status == 0);
  CHECK(file("a", "train-images-idx3-ubyte") == file("b", "train-images-idx3-ubyte"));
  CHECK(file("a", "t10k-images-idx3-ubyte") != file("b", "t10k-images-idx3-ubyte"));
}

TEST_CASE("vitrine digits writes some of the test pictures as files") {
  const TemporaryFolder folder;
  const CommandResult made = digits(
      {"--out", (folder / "a").string(), "--train", "0", "--test", "5", "--pictures", "3", "--size", "20"});
  if (made.status == 1 && made.err.find("fonts") != std::string::npos) SKIP(made.err);
  REQUIRE(made.status == 0);
  const auto data = open_dataset(folder / "a", Split::test);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "a/pictures")) {
    const std::string name = entry.path().filename().string();
    const uint64_t number = std::stoul(name.substr(2));
    CHECK(name[0] == static_cast<char>('0' + data->label(number)));
    const Image picture = decode_image(entry.path());
    std::vector<uint8_t> pixels(data->shape().bytes());
    data->read(number, pixels);
    REQUIRE(picture.width == 20);
    REQUIRE(picture.height == 20);
    for (size_t i = 0; i < pixels.size(); ++i) REQUIRE(picture.pixels[4 * i] == pixels[i]);
    ++files;
  }
  CHECK(files == 3);
  CHECK(digits({"--out", (folder / "b").string(), "--test", "2", "--pictures", "3"}).status == 2);
}

TEST_CASE("vitrine digits leaves nothing behind when a signal ends it") {
  const TemporaryFolder whole;
  const CommandResult made = digits({"--out", whole.path().string(), "--train", "1", "--test", "0"});
  if (made.status == 1 && made.err.find("fonts") != std::string::npos) SKIP(made.err);
  REQUIRE(made.status == 0);
  for (const int signal : {SIGINT, SIGTERM, 1}) {  // 1: the terminal hangs up
    CAPTURE(signal);
    const TemporaryFolder folder;
    RunningCommand command(
        {VITRINE_PROGRAM, "digits", "--out", folder.path().string(), "--train", "4000000"});
    for (int ms = 0; ms < 60'000 && folder.names().empty(); ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE(!folder.names().empty());
    command.send(signal);
    CHECK(command.wait().status == 128 + signal);
    CHECK(folder.names().empty());
  }
}

TEST_CASE("vitrine digits names the folder that it can't make for the pictures") {
  const TemporaryFolder folder;
  folder.file("pictures", "a file");
  const CommandResult made =
      digits({"--out", folder.path().string(), "--train", "0", "--test", "2", "--pictures", "1"});
  if (made.status == 1 && made.err.find("fonts") != std::string::npos) SKIP(made.err);
  CHECK(made.status == 1);
  CHECK(made.err.starts_with("vitrine: cannot make the folder " + (folder / "pictures").string() + ": "));
}

TEST_CASE("vitrine digits draws in colors, as CIFAR-10's files") {
  const TemporaryFolder folder;
  const CommandResult made = digits({"--out", (folder / "a").string(), "--format", "cifar10", "--train", "12",
                                     "--test", "5", "--pictures", "2", "--json"});
  if (made.status == 1 && made.err.find("fonts") != std::string::npos) SKIP(made.err);
  INFO(made.err);
  REQUIRE(made.status == 0);
  const nlohmann::json line = nlohmann::json::parse(made.out);
  CHECK(line["format"] == "cifar10");
  CHECK(line["size"] == 32);
  const auto data = open_dataset(folder / "a", Split::test);
  CHECK(open_dataset(folder / "a", Split::train)->count() == 12);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "a/pictures")) {
    const uint64_t number = std::stoul(entry.path().filename().string().substr(2));
    const Image picture = decode_image(entry.path());
    std::vector<uint8_t> pixels(data->shape().bytes());
    data->read(number, pixels);
    REQUIRE(picture.width == 32);
    for (size_t i = 0; i < 1024; ++i) {
      for (size_t c = 0; c < 3; ++c) REQUIRE(picture.pixels[4 * i + c] == pixels[1024 * c + i]);
    }
    ++files;
  }
  CHECK(files == 2);
  const std::string other = (folder / "b").string();
  CHECK(digits({"--out", other, "--format", "cifar10", "--size", "28"}).status == 2);
  CHECK(digits({"--out", other, "--format", "cifar100"}).status == 2);
  CHECK(!std::filesystem::exists(other));
}

TEST_CASE("vitrine digits refuses what it can't do in one line") {
  const TemporaryFolder folder;
  const std::string out = (folder / "out").string();
  std::filesystem::create_directory(folder / "empty");
  const CommandResult none = digits({"--out", out, "--fonts", (folder / "empty").string()});
  CHECK(none.status == 1);
  CHECK(none.err.find("apt-get install fonts-dejavu-core") != std::string::npos);
  CHECK(digits({"--out", out, "--fonts", (folder / "missing").string()}).status == 2);
  CHECK(digits({"--out", out, "--train", "0", "--test", "0"}).status == 2);
  CHECK(digits({"--out", out, "--size", "15"}).status == 2);
  CHECK(digits({"--out", out, "--train", "-1"}).status == 2);
  for (const char* distortion : {"-0.1", "1.01", "nan"}) {
    CAPTURE(distortion);
    CHECK(digits({"--out", out, "--distortion", distortion}).status == 2);
  }
  CHECK(digits({}).status == 2);
  CHECK(folder.names() == std::vector<std::string>{"empty"});
}

}  // namespace vitrine::test

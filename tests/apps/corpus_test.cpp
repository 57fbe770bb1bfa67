// Every malformed file of tests/corpus, given to the program as a user would.
#include "tests/support/corpus.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "tests/support/command.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

// AddressSanitizer's shadow and its larger program count, too.
#ifdef __SANITIZE_ADDRESS__
constexpr size_t most_bytes = size_t{96} << 20;
#else
constexpr size_t most_bytes = size_t{64} << 20;
#endif

// The files are judged before a device is looked for, so that these need none.
CommandResult vitrine(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), VITRINE_PROGRAM);
  return run_command(arguments, {{"VK_DRIVER_FILES", "/nonexistent"}, {"VITRINE_DEVICE", ""}});
}

void check_bad_file(const CommandResult& result, const CorpusFile& file) {
  INFO(file.name << " (" << file.wrong << "): " << result.err);
  CHECK(result.status == static_cast<int>(ErrorCode::bad_file));
  CHECK(result.out.empty());
  CHECK_THAT(result.err, Catch::Matchers::ContainsSubstring(file.word));
  REQUIRE(result.err.ends_with('\n'));
  CHECK(std::none_of(result.err.begin(), result.err.end() - 1,
                     [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
  CHECK(result.peak_bytes < most_bytes);
}

}  // namespace

TEST_CASE("vitrine inspect refuses every malformed safetensors file and index") {
  for (const char* folder : {"safetensors", "index"}) {
    const auto files = corpus(folder);
    CHECK(files.size() >= 10);
    for (const CorpusFile& file : files) check_bad_file(vitrine({"inspect", file.path().string()}), file);
  }
}

TEST_CASE("vitrine inspect refuses every malformed configuration") {
  const TemporaryFolder folder;
  std::filesystem::copy_file(corpus_folder() / "valid/model.safetensors", folder / "model.safetensors");
  const auto files = corpus("config");
  CHECK(files.size() >= 50);
  for (const CorpusFile& file : files) {
    std::filesystem::copy_file(file.path(), folder / "config.json",
                               std::filesystem::copy_options::overwrite_existing);
    check_bad_file(vitrine({"inspect", folder.path().string()}), file);
  }
}

TEST_CASE("vitrine run refuses every malformed npy file and writes nothing") {
  const TemporaryFolder folder;
  const std::string model = (corpus_folder() / "valid").string();
  const std::string output = folder / "out.npy";
  const auto files = corpus("npy");
  CHECK(files.size() >= 30);
  for (const CorpusFile& file : files) {
    check_bad_file(vitrine({"run", "--model", model, "--input", file.path().string(), "--output", output}),
                   file);
  }
  CHECK(folder.names().empty());
}

TEST_CASE("the corpus' valid model and input get as far as looking for a device") {
  static_cast<void>(no_driver_files());
  const TemporaryFolder folder;
  const std::string model = (corpus_folder() / "valid").string();
  const std::string input = (corpus_folder() / "valid/input.npy").string();
  CHECK(vitrine({"inspect", model}).status == static_cast<int>(ErrorCode::no_device));
  CHECK(vitrine({"run", "--model", model, "--input", input, "--output", folder / "out.npy"}).status ==
        static_cast<int>(ErrorCode::no_device));
}

}  // namespace vitrine::test

// Every malformed file of tests/corpus, and hostile ones too large to be kept there.
#include "tests/support/corpus.h"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "model/files/tensor_files.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

// A sanitizer's allocator puts guards around every string and keeps freed ones for a while.
#ifdef __SANITIZE_ADDRESS__
constexpr size_t hostile_memory = size_t{128} << 20;
#else
constexpr size_t hostile_memory = size_t{64} << 20;
#endif

void read_npy(const std::filesystem::path& path) { static_cast<void>(NpyFile(path).values<float>()); }
void read_tensors(const std::filesystem::path& path) { const TensorFiles files(path); }

void check_all(const std::string& folder, size_t at_least, void (*read)(const std::filesystem::path&)) {
  const auto files = corpus(folder);
  CHECK(files.size() >= at_least);
  for (const CorpusFile& file : files) {
    INFO(file.name << " (" << file.wrong << ")");
    check_refused(run_apart([&] { read(file.path()); }), file.path().filename().string(), file.word);
  }
}

// `unit` again and again up to `bytes`, after `head` and before `tail`.
std::string filled(const std::string& head, const std::string& unit, size_t bytes,
                   const std::string& tail = "") {
  std::string text = head;
  text.reserve(bytes + unit.size() + tail.size());
  while (text.size() < bytes) text += unit;
  return text + tail;
}

// Makes the file in a process of its own (whose memory is not the reader's) and reads it in another.
Outcome make_and_read(const std::filesystem::path& path, const std::function<std::string()>& make,
                      void (*read)(const std::filesystem::path&)) {
  run_apart([&] {
    std::ofstream stream(path, std::ios::binary);
    const std::string content = make();
    stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  });
  Outcome outcome = run_apart([&] { read(path); });
  std::filesystem::remove(path);
  return outcome;
}

}  // namespace

TEST_CASE("the manifest names every file of the corpus") {
  size_t named = 0;
  for (const std::string folder : {"safetensors", "npy", "config", "index"}) {
    const auto files = corpus(folder);
    size_t there = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(corpus_folder() / folder))
      ++there;
    CHECK(files.size() == there);
    for (const CorpusFile& file : files) CHECK(std::filesystem::exists(file.path()));
    named += files.size();
  }
  CHECK(named >= 60);
}

TEST_CASE("every malformed safetensors file is refused in one sentence and little memory") {
  check_all("safetensors", 60, read_tensors);
}

TEST_CASE("every malformed npy file is refused in one sentence and little memory") {
  check_all("npy", 30, read_npy);
}

TEST_CASE("every malformed index is refused in one sentence and little memory") {
  check_all("index", 10, read_tensors);
}

TEST_CASE("the corpus' valid files are accepted") {
  const auto folder = corpus_folder() / "valid";
  CHECK(run_apart([&] { read_tensors(folder); }).message == "no error");
  CHECK(run_apart([&] { read_npy(folder / "input.npy"); }).message == "no error");
  CHECK(run_apart([&] { static_cast<void>(read_json(folder / "config.json")); }).message == "no error");
}

TEST_CASE("hostile safetensors headers up to the format's limit take little memory") {
  const TemporaryFolder folder;
  constexpr size_t size = 72'000'000;  // more than is allowed: a reader that keeps it would be seen
  const auto refused = [&](const std::string& word, const std::function<std::string()>& make_header) {
    const auto make = [&] { return safetensors_bytes(make_header(), ""); };
    check_refused(make_and_read(folder / "big.safetensors", make, read_tensors), "big.safetensors", word,
                  hostile_memory);
  };
  const std::string empty_tensor = R"(:{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  refused("MiB", [&] {  // two million tensors, every one valid
    std::string text = "{";
    for (size_t i = 0; text.size() < size; ++i) text += '"' + std::to_string(i) + '"' + empty_tensor;
    text.back() = '}';
    return text;
  });
  refused("more than 4194304 bytes", [&] { return filled("{\"", "name", size, "\"" + empty_tensor); });
  refused("more than 4194304 bytes", [&] { return filled(R"({"a":{"shape":[)", "1234", size); });
  refused("dimensions", [&] { return filled(R"({"a":{"dtype":"U8","shape":[)", "1,", size); });
  refused("deeper", [&] { return filled("{\"a\":", "[", size); });
  refused("ends too early", [&] { return filled("{", " \n", size); });
  refused("ends too early", [&] { return filled("{\"a\"  :  ", "\t", size); });
  refused("MiB", [&] {
    std::string text = R"({"__metadata__":{)";
    for (size_t i = 0; text.size() < size; ++i) {
      text += '"' + std::to_string(i) + "\":\"" + std::string(1'000'000, 'x') + "\",";
    }
    return text;
  });
  refused("UTF-8", [&] { return filled("{\"a\":\"", "\xC3\xA9", 4'000'000, "\xFF"); });
}

TEST_CASE("a file of holes of a terabyte is refused without reading it") {
  const TemporaryFolder folder;
  const auto path = folder.file("sparse.safetensors", safetensors_bytes("{}", ""));
  grow_file(path, uint64_t{1} << 40);
  check_refused(run_apart([&] { read_tensors(path); }), "sparse.safetensors", "bytes of data");
  const auto zeros = folder.file("zeros.npy", "");
  grow_file(zeros, uint64_t{1} << 40);
  check_refused(run_apart([&] { read_npy(zeros); }), "zeros.npy", "no .npy file");
}

TEST_CASE("hostile configurations up to the limit take little memory") {
  const TemporaryFolder folder;
  constexpr size_t size = size_t{16} << 20;
  const auto refused = [&](const std::string& word, const std::function<std::string()>& make) {
    const auto read = [](const std::filesystem::path& path) { static_cast<void>(read_json(path)); };
    check_refused(make_and_read(folder / "big.json", make, read), "big.json", word, hostile_memory);
  };
  refused("values", [&] { return filled("[", "[],", size - 8); });
  refused("values", [&] { return filled("[", "1,", size - 8); });
  refused("values", [&] { return filled("[", "{\"a\":1},", size - 16); });
  refused("ends too early", [&] { return filled("", " ", size); });
  refused("ends too early", [&] { return filled("[", "\"" + std::string(100, 'x') + "\",", size - 128); });
  refused("more than 1048576 bytes", [&] { return filled("\"", "x", size); });
  refused("expected at most 16777216", [&] { return filled("", " ", size + 1); });
}

}  // namespace vitrine::test

// Every malformed configuration of tests/corpus, beside a checkpoint that is in order.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "model/files/weights.h"
#include "tests/support/corpus.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

Outcome open_apart(const std::filesystem::path& folder) {
  return run_apart([&] {
    ModelOptions options;
    options.model = folder;
    static_cast<void>(open_model(options));
  });
}

}  // namespace

TEST_CASE("a model with a config that is in order is opened") {
  CHECK(open_apart(corpus_folder() / "valid").message == "no error");
}

TEST_CASE("every malformed configuration is refused in one sentence and little memory") {
  const TemporaryFolder folder;
  const auto valid = corpus_folder() / "valid";
  std::filesystem::copy_file(valid / "model.safetensors", folder / "model.safetensors");
  const auto files = corpus("config");
  CHECK(files.size() >= 50);
  for (const CorpusFile& file : files) {
    INFO(file.name << " (" << file.wrong << ")");
    std::filesystem::copy_file(file.path(), folder / "config.json",
                               std::filesystem::copy_options::overwrite_existing);
    // A config that the tensors contradict is told by the tensor's file.
    check_refused(open_apart(folder.path()), folder.path().filename().string(), file.word);
  }
}

}  // namespace vitrine::test

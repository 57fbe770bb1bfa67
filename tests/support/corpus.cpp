#include "tests/support/corpus.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "runtime/util/json.h"

namespace vitrine::test {

std::filesystem::path corpus_folder() { return std::filesystem::path(VITRINE_TEST_DATA) / "corpus"; }

std::vector<CorpusFile> corpus(std::string_view folder) {
  std::vector<CorpusFile> files;
  for (const auto& row : read_json(corpus_folder() / "manifest.json")) {
    CorpusFile file{row.at("file"), row.at("wrong"), row.at("word")};
    if (file.name.starts_with(std::string(folder) + "/")) files.push_back(std::move(file));
  }
  return files;
}

void check_refused(const Outcome& outcome, const std::string& name, const std::string& word,
                   size_t memory_limit) {
  INFO(name << ": " << outcome.message);
  CHECK(outcome.code == ErrorCode::bad_file);
  CHECK_THAT(outcome.message, Catch::Matchers::ContainsSubstring(word));
  CHECK_THAT(outcome.message, Catch::Matchers::ContainsSubstring(name));
  CHECK(std::none_of(outcome.message.begin(), outcome.message.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
  CHECK(outcome.message.size() < 600);
  CHECK(outcome.peak_bytes < memory_limit);
}

}  // namespace vitrine::test

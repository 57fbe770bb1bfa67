// The malformed files of tests/corpus, and running something in a process of its own to see how it
// ends and how much memory it took.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/util/error.h"

namespace vitrine::test {

std::filesystem::path corpus_folder();

struct CorpusFile {
  std::string name;   // "npy/big_endian.npy"
  std::string wrong;  // what is wrong with it
  std::string word;   // what the error's sentence must have
  std::filesystem::path path() const { return corpus_folder() / name; }
};

// All files of one of the corpus' folders.
std::vector<CorpusFile> corpus(std::string_view folder);

struct Outcome {
  std::optional<ErrorCode> code;  // nothing: no Error was thrown
  std::string message;            // the Error's, or how else the process ended
  size_t peak_bytes = 0;          // the most memory that it had at a time, besides what doing nothing takes
};

// In a process of its own, where the system can fork.
Outcome run_apart(const std::function<void()>& action);

// Fails the running test unless the outcome is a bad file, told in one line that has `word` and
// `name`, within the memory.
void check_refused(const Outcome& outcome, const std::string& name, const std::string& word,
                   size_t memory_limit = size_t{32} << 20);

}  // namespace vitrine::test

// Runs a program as a user would, and keeps what it said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace vitrine::test {

constexpr int killed_status = 137;  // the status of a program that was

struct CommandResult {
  int status = -1;  // exit status; 128 + the signal when one ended it
  std::string out, err;
  // The most memory that the program had at a time; never less than what the calling process has.
  size_t peak_bytes = 0;
};

// A program that is still running; the destructor kills it if nobody waited.
class RunningCommand {
 public:
  // `environment` is added to this process's own; an empty value removes the variable.
  explicit RunningCommand(const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& environment = {});
  ~RunningCommand();
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  // Skips where there are no signals.
  void send(int signal);
  void kill();
  bool is_running() const;
  // What it has written to stdout by now.
  std::string out_so_far() const;
  CommandResult wait();

 private:
  // Output goes to files: two pipes that fill up would need to be read at the same time.
  TemporaryFolder folder_;
  static constexpr intptr_t none = -1;
  intptr_t child_ = none;  // its number, or on Windows its handle
};

CommandResult run_command(const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& environment = {});

// A failure as users get it: this status, one line on stderr that holds these words, nothing on stdout.
void check_failure(const CommandResult& result, int status, const std::vector<std::string>& words);

}  // namespace vitrine::test

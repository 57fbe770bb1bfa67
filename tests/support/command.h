// Runs a program as a user would, and keeps what it said.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace vitrine::test {

struct CommandResult {
  int status = -1;  // exit status; 128 + the signal when one ended it
  std::string out, err;
  // The most memory that the program had at a time; never less than what the calling process has.
  size_t peak_bytes = 0;
};

// `environment` is added to this process's own; an empty value removes the variable.
CommandResult run_command(const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& environment = {});

}  // namespace vitrine::test

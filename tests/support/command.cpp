#include "tests/support/command.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

namespace vitrine::test {

std::string RunningCommand::out_so_far() const {
  const std::filesystem::path file = folder_ / "out";
  return std::filesystem::exists(file) ? read_whole_file(file) : "";
}

CommandResult run_command(const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& environment) {
  return RunningCommand(arguments, environment).wait();
}

void check_failure(const CommandResult& result, int status, const std::vector<std::string>& words) {
  INFO(result.err);
  CHECK(result.status == status);
  CHECK(result.out.empty());
  CHECK(std::ranges::count(result.err, '\n') == 1);
  for (const std::string& word : words) CHECK_THAT(result.err, Catch::Matchers::ContainsSubstring(word));
}

}  // namespace vitrine::test

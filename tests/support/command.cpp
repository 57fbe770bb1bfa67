#include "tests/support/command.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "tests/support/temporary_folder.h"

namespace vitrine::test {

CommandResult run_command(const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& environment) {
  // Output goes to files: two pipes that fill up would need to be read at the same time.
  const TemporaryFolder folder;
  const std::string out = folder / "out", err = folder / "err";
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    // For programs under AddressSanitizer: what drivers leave behind when they are unloaded looks like
    // leaks of ours.
    setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
    for (const auto& [name, value] : environment) {
      if (value.empty()) {
        unsetenv(name.c_str());
      } else {
        setenv(name.c_str(), value.c_str(), 1);
      }
    }
    // Not freopen: it would write what this process has still in its buffers.
    const int in_file = open("/dev/null", O_RDONLY);
    const int out_file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err_file = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (dup2(in_file, 0) < 0 || dup2(out_file, 1) < 0 || dup2(err_file, 2) < 0) _exit(126);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child) throw std::runtime_error("wait4 failed");
  CommandResult result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.peak_bytes = static_cast<size_t>(usage.ru_maxrss) * 1024;
  result.out = read_whole_file(out);
  result.err = read_whole_file(err);
  return result;
}

}  // namespace vitrine::test

#include "tests/support/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace vitrine::test {

static_assert(killed_status == 128 + SIGKILL);

RunningCommand::RunningCommand(const std::vector<std::string>& arguments,
                               const std::map<std::string, std::string>& environment) {
  const std::string out = folder_ / "out", err = folder_ / "err";
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  child_ = fork();
  if (child_ < 0) throw std::runtime_error("fork failed");
  if (child_ == 0) {
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
    // What runs the tests may ignore them (nohup), and the program would, too.
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
    // Not freopen: it would write what this process has still in its buffers.
    const int in_file = open("/dev/null", O_RDONLY);
    const int out_file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err_file = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (dup2(in_file, 0) < 0 || dup2(out_file, 1) < 0 || dup2(err_file, 2) < 0) _exit(126);
    execv(argv[0], argv.data());
    _exit(127);
  }
}

RunningCommand::~RunningCommand() {
  if (child_ == none) return;
  kill();
  waitpid(static_cast<pid_t>(child_), nullptr, 0);
}

void RunningCommand::send(int signal) { ::kill(static_cast<pid_t>(child_), signal); }

void RunningCommand::kill() { send(SIGKILL); }

bool RunningCommand::is_running() const {
  siginfo_t ended{};
  return waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == 0;
}

CommandResult RunningCommand::wait() {
  int status = 0;
  rusage usage{};
  if (wait4(static_cast<pid_t>(child_), &status, 0, &usage) != child_)
    throw std::runtime_error("wait4 failed");
  child_ = none;
  CommandResult result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.peak_bytes = static_cast<size_t>(usage.ru_maxrss) * 1024;
  result.out = read_whole_file(folder_ / "out");
  result.err = read_whole_file(folder_ / "err");
  return result;
}

}  // namespace vitrine::test

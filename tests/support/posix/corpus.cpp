#include "tests/support/corpus.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <stdexcept>

namespace vitrine::test {

namespace {

size_t peak_of(const rusage& usage) { return static_cast<size_t>(usage.ru_maxrss) * 1024; }

}  // namespace

Outcome run_apart(const std::function<void()>& action) {
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) throw std::runtime_error("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    // A crash is for the parent to see, not for Catch's handlers to report from here.
    for (const int signal : {SIGSEGV, SIGFPE, SIGABRT, SIGILL, SIGTERM, SIGINT}) std::signal(signal, SIG_DFL);
    // What the tests before took is this process's as well, and an emulator's own memory.
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const size_t before = peak_of(usage);
    std::string report = "-";
    try {
      action();
    } catch (const Error& error) {
      report = std::to_string(error.exit_status()) + error.what();
    } catch (const std::exception& error) {
      report = std::string("xsome other exception: ") + error.what();
    }
    report.insert(0, reinterpret_cast<const char*>(&before), sizeof(before));
    const bool told =
        write(pipe_ends[1], report.data(), report.size()) == static_cast<ssize_t>(report.size());
    _exit(told ? 0 : 1);  // not exit(): the parent's buffers and tests are not ours to end
  }
  close(pipe_ends[1]);
  std::string report;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = read(pipe_ends[0], buffer.data(), buffer.size())) > 0;) {
    report.append(buffer.data(), static_cast<size_t>(got));
  }
  close(pipe_ends[0]);
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);

  Outcome outcome;
  size_t before = 0;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || report.size() <= sizeof(before)) {
    outcome.message = "the process ended with status " + std::to_string(status);
    return outcome;
  }
  std::memcpy(&before, report.data(), sizeof(before));
  report.erase(0, sizeof(before));
  outcome.peak_bytes = peak_of(usage) - std::min(before, peak_of(usage));
  if (report[0] >= '1' && report[0] <= '9') {
    outcome.code = static_cast<ErrorCode>(report[0] - '0');
    outcome.message = report.substr(1);
  } else {
    outcome.message = report[0] == '-' ? "no error" : report.substr(1);
  }
  return outcome;
}

}  // namespace vitrine::test

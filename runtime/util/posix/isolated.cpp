#include "runtime/util/isolated.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "runtime/util/error.h"
#include "runtime/util/report_reader.h"
#include "runtime/util/system.h"

extern char** environ;

namespace vitrine {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw Error(ErrorCode::failed, what + ": " + std::strerror(error));
}

// The end to read of what the process writes to its standard output.
int start(const std::vector<std::string>& arguments, pid_t& process) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) fail("a pipe can't be made", errno);
  for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  std::string program = system::program().string();
  std::vector<char*> values{program.data()};
  std::vector<std::string> owned = arguments;
  for (std::string& argument : owned) values.push_back(argument.data());
  values.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const int error = posix_spawn(&process, program.c_str(), &actions, nullptr, values.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error == 0) return ends[0];
  close(ends[0]);
  fail(program + " can't be started once more", error);
}

// Reads to the pipe's end. False when nothing came for too long.
bool read_lines(int pipe, ReportReader& reports, int patience_seconds) {
  for (;;) {
    pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, patience_seconds * 1000);
    if (ready == 0) return false;
    if (ready < 0 && errno == EINTR) continue;
    std::array<char, 4096> buffer;
    const ssize_t got = read(pipe, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    reports.add(std::string_view(buffer.data(), static_cast<size_t>(got)));
  }
}

}  // namespace

std::optional<std::string> run_isolated(const std::vector<std::string>& arguments,
                                        const std::function<void(const std::string& line)>& take,
                                        int patience_seconds) {
  std::fflush(nullptr);  // what this process has said stands before what the other says
  pid_t process = 0;
  const int pipe = start(arguments, process);
  ReportReader reports(take);
  bool patient = true;
  try {
    patient = read_lines(pipe, reports, patience_seconds);
  } catch (...) {
    close(pipe);
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    throw;
  }
  close(pipe);
  if (!patient) kill(process, SIGKILL);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!patient) return "it took more than " + std::to_string(patience_seconds) + " s";
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "the driver ended the process with signal " + std::to_string(signal) + " (" + strsignal(signal) +
           ")";
  }
  if (WEXITSTATUS(status) != 0) return "the process ended with status " + std::to_string(WEXITSTATUS(status));
  return std::nullopt;
}

}  // namespace vitrine

#include "runtime/util/isolated.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "runtime/util/error.h"

namespace vitrine {
namespace {

[[noreturn]] void fail(const char* what) {
  throw Error(ErrorCode::failed, std::string(what) + ": " + std::strerror(errno));
}

void write_line(int pipe, const std::string& line) {
  const std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(pipe, text.data() + done, text.size() - done);
    if (written > 0) {
      done += static_cast<size_t>(written);
    } else if (errno != EINTR) {
      _exit(1);  // nobody listens any more
    }
  }
}

// Reads to the pipe's end. False when nothing came for too long.
bool read_lines(int pipe, const Report& take, int patience_seconds) {
  std::string text;
  for (;;) {
    pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, patience_seconds * 1000);
    if (ready == 0) return false;
    if (ready < 0 && errno == EINTR) continue;
    char buffer[4096];
    const ssize_t got = read(pipe, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(buffer, static_cast<size_t>(got));
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      take(text.substr(0, end));
      text.erase(0, end + 1);
    }
  }
}

}  // namespace

std::optional<std::string> run_isolated(const std::function<void(const Report&)>& work, const Report& take,
                                        int patience_seconds) {
  int ends[2];
  if (pipe(ends) != 0) fail("a pipe can't be made");
  std::fflush(nullptr);  // else the child would print it again
  const pid_t child = fork();
  if (child < 0) fail("a process can't be started");
  if (child == 0) {
    close(ends[0]);
    int status = 0;
    try {
      work([&](const std::string& line) { write_line(ends[1], line); });
    } catch (const std::exception& error) {
      std::fprintf(stderr, "vitrine: %s\n", error.what());
      status = 1;
    }
    std::fflush(nullptr);
    _exit(status);  // the parent's exit handlers are not the child's
  }
  close(ends[1]);
  bool patient = true;
  try {
    patient = read_lines(ends[0], take, patience_seconds);
  } catch (...) {
    close(ends[0]);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    throw;
  }
  close(ends[0]);
  if (!patient) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
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

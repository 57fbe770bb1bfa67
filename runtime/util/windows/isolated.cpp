#include "runtime/util/isolated.h"

#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "runtime/util/error.h"
#include "runtime/util/report_reader.h"
#include "runtime/util/system.h"
#include "runtime/util/text.h"
#include "runtime/util/windows/command_line.h"

namespace vitrine {
namespace {

struct Close {
  void operator()(HANDLE handle) const { CloseHandle(handle); }
};
using Handle = std::unique_ptr<std::remove_pointer_t<HANDLE>, Close>;

[[noreturn]] void fail(const std::string& what) {
  throw Error(
      ErrorCode::failed,
      what + ": " + std::error_code(static_cast<int>(GetLastError()), std::system_category()).message());
}

struct Process {
  Handle handle, output, job;
};

Process start(const std::vector<std::string>& arguments) {
  SECURITY_ATTRIBUTES inherited{sizeof(SECURITY_ATTRIBUTES), nullptr, TRUE};
  HANDLE to_read = nullptr, to_write = nullptr;
  if (!CreatePipe(&to_read, &to_write, &inherited, 0)) fail("a pipe can't be made");
  Process process{.handle = nullptr, .output = Handle(to_read), .job = nullptr};
  const Handle written(to_write);
  SetHandleInformation(to_read, HANDLE_FLAG_INHERIT, 0);
  const std::filesystem::path program = system::program();
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::wstring line = command_line_of(words);
  STARTUPINFOW how{};
  how.cb = sizeof(how);
  how.dwFlags = STARTF_USESTDHANDLES;
  how.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
  how.hStdOutput = to_write;
  how.hStdError = GetStdHandle(STD_ERROR_HANDLE);
  // Else a box would tell of a crash, and wait for somebody to close it.
  const UINT before = SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
  PROCESS_INFORMATION made{};
  const bool started = CreateProcessW(program.c_str(), line.data(), nullptr, nullptr, TRUE, CREATE_SUSPENDED,
                                      nullptr, nullptr, &how, &made) != 0;
  SetErrorMode(before);
  if (!started) fail(shown(program) + " can't be started once more");
  process.handle = Handle(made.hProcess);
  const Handle thread(made.hThread);
  // It ends when this process does, whatever ended that.
  process.job = Handle(CreateJobObjectW(nullptr, nullptr));
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
  SetInformationJobObject(process.job.get(), JobObjectExtendedLimitInformation, &limits, sizeof limits);
  AssignProcessToJobObject(process.job.get(), made.hProcess);
  ResumeThread(thread.get());
  return process;
}

// Reads to the pipe's end. False when nothing came for too long. A pipe can't be waited for with a limit, so
// it is asked a hundred times a second.
bool read_lines(HANDLE pipe, ReportReader& reports, int patience_seconds) {
  using Clock = std::chrono::steady_clock;
  const std::chrono::seconds patience(patience_seconds);
  Clock::time_point heard = Clock::now();
  for (;;) {
    DWORD there = 0, got = 0;
    if (!PeekNamedPipe(pipe, nullptr, 0, nullptr, &there, nullptr)) return true;
    if (there == 0) {
      if (Clock::now() - heard > patience) return false;
      Sleep(10);
      continue;
    }
    std::array<char, 4096> buffer;
    if (!ReadFile(pipe, buffer.data(), static_cast<DWORD>(buffer.size()), &got, nullptr)) return true;
    heard = Clock::now();
    reports.add(std::string_view(buffer.data(), got));
  }
}

}  // namespace

std::optional<std::string> run_isolated(const std::vector<std::string>& arguments,
                                        const std::function<void(const std::string& line)>& take,
                                        int patience_seconds) {
  std::fflush(nullptr);  // what this process has said stands before what the other says
  const Process process = start(arguments);
  ReportReader reports(take);
  const auto end = [&] {
    TerminateProcess(process.handle.get(), 1);
    WaitForSingleObject(process.handle.get(), INFINITE);
  };
  bool patient = true;
  try {
    patient = read_lines(process.output.get(), reports, patience_seconds);
  } catch (...) {
    end();
    throw;
  }
  if (!patient) {
    end();
    return "it took more than " + std::to_string(patience_seconds) + " s";
  }
  WaitForSingleObject(process.handle.get(), INFINITE);
  DWORD status = 0;
  GetExitCodeProcess(process.handle.get(), &status);
  // Numbers of exceptions, which nobody exits with, begin with the highest severity.
  if (status >= 0xC0000000u) {
    std::array<char, 16> number;
    std::snprintf(number.data(), number.size(), "0x%08lX", status);
    return std::string("the driver ended the process with exception ") + number.data();
  }
  if (status != 0) return "the process ended with status " + std::to_string(status);
  return std::nullopt;
}

}  // namespace vitrine

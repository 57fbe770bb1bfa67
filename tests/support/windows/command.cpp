#include "tests/support/command.h"

#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
// Behind it.
#include <psapi.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <stdexcept>

#include "runtime/util/windows/command_line.h"

namespace vitrine::test {
namespace {

std::wstring wide(const std::string& text) { return std::filesystem::path(text).wstring(); }

// NAME=VALUE, each ended by a zero, in the order that Windows asks for.
std::wstring environment_of(const std::map<std::string, std::string>& changes) {
  struct Less {
    bool operator()(const std::wstring& a, const std::wstring& b) const {
      return CompareStringOrdinal(a.c_str(), -1, b.c_str(), -1, TRUE) == CSTR_LESS_THAN;
    }
  };
  std::map<std::wstring, std::wstring, Less> values;
  wchar_t* const own = GetEnvironmentStringsW();
  for (const wchar_t* each = own; *each != 0; each += std::wcslen(each) + 1) {
    const std::wstring line = each;
    const size_t end = line.find(L'=', 1);  // the names of drives' folders begin with one
    if (end != std::wstring::npos) values[line.substr(0, end)] = line.substr(end + 1);
  }
  FreeEnvironmentStringsW(own);
  for (const auto& [name, value] : changes) {
    if (value.empty()) {
      values.erase(wide(name));
    } else {
      values[wide(name)] = wide(value);
    }
  }
  std::wstring block;
  for (const auto& [name, value] : values) (block += name + L"=" + value) += L'\0';
  return block += L'\0';
}

HANDLE inherited_file(const std::filesystem::path& name, DWORD access, DWORD disposition) {
  SECURITY_ATTRIBUTES inherited{sizeof(SECURITY_ATTRIBUTES), nullptr, TRUE};
  const HANDLE file = CreateFileW(name.c_str(), access, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited,
                                  disposition, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) throw std::runtime_error("cannot open " + name.string());
  return file;
}

}  // namespace

RunningCommand::RunningCommand(const std::vector<std::string>& arguments,
                               const std::map<std::string, std::string>& environment) {
  if (arguments[0].starts_with("/bin/") || arguments[0].starts_with("/usr/bin/"))
    SKIP("there is no " << arguments[0] << " here");
  std::wstring line = command_line_of(arguments);
  std::wstring block = environment_of(environment);
  const std::array files{inherited_file("NUL", GENERIC_READ, OPEN_EXISTING),
                         inherited_file(folder_ / "out", GENERIC_WRITE, CREATE_ALWAYS),
                         inherited_file(folder_ / "err", GENERIC_WRITE, CREATE_ALWAYS)};
  STARTUPINFOW start{};
  start.cb = sizeof(start);
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdInput = files[0];
  start.hStdOutput = files[1];
  start.hStdError = files[2];
  PROCESS_INFORMATION process{};
  const bool started =
      CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, CREATE_UNICODE_ENVIRONMENT, block.data(),
                     nullptr, &start, &process) != 0;
  for (const HANDLE file : files) CloseHandle(file);
  if (!started) throw std::runtime_error("cannot start " + arguments[0]);
  CloseHandle(process.hThread);
  child_ = reinterpret_cast<intptr_t>(process.hProcess);
}

RunningCommand::~RunningCommand() {
  if (child_ == none) return;
  kill();
  wait();
}

void RunningCommand::send(int) { SKIP("programs are sent no signals here"); }

void RunningCommand::kill() { TerminateProcess(reinterpret_cast<HANDLE>(child_), killed_status); }

bool RunningCommand::is_running() const {
  return WaitForSingleObject(reinterpret_cast<HANDLE>(child_), 0) == WAIT_TIMEOUT;
}

CommandResult RunningCommand::wait() {
  const auto process = reinterpret_cast<HANDLE>(child_);
  DWORD status = 0;
  if (WaitForSingleObject(process, INFINITE) != WAIT_OBJECT_0 || !GetExitCodeProcess(process, &status))
    throw std::runtime_error("cannot wait for a program");
  PROCESS_MEMORY_COUNTERS memory{};
  const bool known = K32GetProcessMemoryInfo(process, &memory, sizeof(memory)) != 0;
  CloseHandle(process);
  child_ = none;
  CommandResult result;
  result.status = static_cast<int>(status);
  result.peak_bytes = known ? memory.PeakWorkingSetSize : 0;
  result.out = read_whole_file(folder_ / "out");
  result.err = read_whole_file(folder_ / "err");
  return result;
}

}  // namespace vitrine::test

#include "runtime/util/windows/command_line.h"

#include <filesystem>

namespace vitrine {
namespace {

// A backslash is one unless quotes follow.
std::wstring quoted(const std::wstring& argument) {
  std::wstring out = L"\"";
  size_t backslashes = 0;
  for (const wchar_t c : argument) {
    if (c == L'"') out.append(backslashes + 1, L'\\');
    backslashes = c == L'\\' ? backslashes + 1 : 0;
    out += c;
  }
  return out.append(backslashes, L'\\') + L"\"";
}

}  // namespace

std::wstring command_line_of(const std::vector<std::string>& program_and_arguments) {
  std::wstring line;
  for (const std::string& word : program_and_arguments)
    (line += quoted(std::filesystem::path(word).wstring())) += L' ';
  return line;
}

}  // namespace vitrine

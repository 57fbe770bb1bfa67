// Arguments of a program in the one string that Windows has for all of them.
#pragma once

#include <string>
#include <vector>

namespace vitrine {

// Names in UTF-8. Programs take it apart again as CommandLineToArgvW does.
std::wstring command_line_of(const std::vector<std::string>& program_and_arguments);

}  // namespace vitrine

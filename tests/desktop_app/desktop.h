// Runs the desktop app with a script, on a display of its own, under the validation layer.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/desktop_app/virtual_display.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {

// Of the source tree.
std::filesystem::path assets();
std::filesystem::path fixture(const std::string& name);  // a model of tests/parity
std::filesystem::path picture(const std::string& name);  // of tests/images

// What windows/check_desktop has in the place of the app that was built, or that.
std::string desktop_program();

class Desktop {
 public:
  // Skips the running test case without a device or a display.
  Desktop();

  // Where relative paths of a script would not do: files that the script writes.
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }
  std::string written(const std::string& name) const { return read_whole_file(folder_ / name); }
  nlohmann::json json(const std::string& name) const { return nlohmann::json::parse(written(name)); }

  CommandResult run(std::vector<std::string> arguments);
  // With $ in front of a word replaced by this folder: "shot $/a.png".
  CommandResult run_script(std::string script, std::vector<std::string> arguments = {});
  // The same; fails the test case unless the app ended well: exit status 0, nothing from the validation
  // layer, no device memory that is still in use. What it says of bad files is the caller's to look at.
  CommandResult play(const std::string& script, const std::vector<std::string>& arguments = {});

  // Quotes for a word of a script.
  static std::string word(const std::filesystem::path& path);

 private:
  VirtualDisplay display_;
  TemporaryFolder folder_;
};

// vitrine, the command-line tool, on the same device.
CommandResult run_vitrine(std::vector<std::string> arguments);

}  // namespace vitrine::test

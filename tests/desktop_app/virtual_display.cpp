#include "tests/desktop_app/virtual_display.h"

#include <signal.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace vitrine::test {
namespace {

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code none;
    if (std::filesystem::exists(std::filesystem::path(folder) / name, none)) return folder + "/" + name;
  }
  return {};
}

}  // namespace

VirtualDisplay::VirtualDisplay() {
  const std::string program = find_program("Xvfb");
  if (program.empty()) SKIP("there is no display: Xvfb is not installed");
  // It says which number it found free, once it can be connected to: no two that start at the same time
  // choose the same one, as those that look for lock files do.
  server_ = std::make_unique<RunningCommand>(std::vector<std::string>{
      program, "-displayfd", "1", "-screen", "0", "1600x1000x24", "-nolisten", "tcp", "-noreset"});
  for (int i = 0; i < 1200; ++i) {
    const std::string said = server_->out_so_far();
    if (said.ends_with('\n')) {
      name_ = ":" + said.substr(0, said.size() - 1);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  throw std::runtime_error("Xvfb did not start within a minute");
}

VirtualDisplay::~VirtualDisplay() {
  if (!server_) return;
  server_->send(SIGTERM);  // it takes its lock away then
  server_->wait();
}

}  // namespace vitrine::test

// A display without a screen, for the time of a test.
#pragma once

#include <memory>
#include <string>

#include "tests/support/command.h"

namespace vitrine::test {

class VirtualDisplay {
 public:
  // Starts Xvfb on a number that is free. Skips the running test case where it isn't installed.
  VirtualDisplay();
  ~VirtualDisplay();
  VirtualDisplay(const VirtualDisplay&) = delete;
  VirtualDisplay& operator=(const VirtualDisplay&) = delete;

  const std::string& name() const { return name_; }  // for DISPLAY

 private:
  std::unique_ptr<RunningCommand> server_;
  std::string name_;
};

}  // namespace vitrine::test

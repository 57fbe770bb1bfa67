// The one way of failing: Error carries what the process should exit with, and one sentence that
// names the file or option, what was found and what was expected.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace vitrine {

// The values are the command line's exit statuses.
enum class ErrorCode {
  failed = 1,     // something went wrong while running
  usage = 2,      // the caller asked for something that makes no sense
  no_device = 3,  // no Vulkan loader, driver or device that can be used
  bad_file = 4,   // a model or data file breaks its format's rules
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message,
        std::source_location where = std::source_location::current())
      : std::runtime_error(message), code_(code), where_(where) {}

  ErrorCode code() const { return code_; }
  int exit_status() const { return static_cast<int>(code_); }
  const std::source_location& where() const { return where_; }

 private:
  ErrorCode code_;
  std::source_location where_;
};

}  // namespace vitrine

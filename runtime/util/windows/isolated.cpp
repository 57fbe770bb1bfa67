#include "runtime/util/isolated.h"

#include <exception>

namespace vitrine {

// In this process: Windows has no fork(). A GPU that hangs is reset by the system within seconds, which the
// work sees as a lost device; a driver that crashes takes the program along.
std::optional<std::string> run_isolated(const std::function<void(const Report&)>& work, const Report& take,
                                        int) {
  // What `take` refuses with is for the caller, as elsewhere.
  std::exception_ptr refused;
  const Report report = [&](const std::string& line) {
    try {
      take(line);
    } catch (...) {
      refused = std::current_exception();
      throw;
    }
  };
  try {
    work(report);
  } catch (const std::exception& error) {
    if (refused) std::rethrow_exception(refused);
    return error.what();
  }
  return std::nullopt;
}

}  // namespace vitrine

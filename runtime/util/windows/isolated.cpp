#include "runtime/util/isolated.h"

#include <exception>

namespace vitrine {

// In this process: Windows has no fork(). A GPU that hangs is reset by the system within seconds, which the
// work sees as a lost device; a driver that crashes takes the program along.
std::optional<std::string> run_isolated(const std::function<void(const Report&)>& work, const Report& take,
                                        int) {
  try {
    work(take);
  } catch (const std::exception& error) {
    return error.what();
  }
  return std::nullopt;
}

}  // namespace vitrine

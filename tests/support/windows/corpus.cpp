#include "tests/support/corpus.h"

namespace vitrine::test {

// Windows can't fork: in this process, whose memory says nothing of the action's.
Outcome run_apart(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {.code = error.code(), .message = error.what()};
  } catch (const std::exception& error) {
    return {.message = std::string("some other exception: ") + error.what()};
  }
  return {.message = "no error"};
}

}  // namespace vitrine::test

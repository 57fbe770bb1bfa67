// What the strict reader accepts, the lax one reads as the same tree; what it refuses for its grammar,
// the lax one refuses too.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/util/error.h"
#include "runtime/util/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const nlohmann::json lax = nlohmann::json::parse(text, nullptr, false);
  try {
    const nlohmann::json strict =
        vitrine::parse_json(text, "x.json", {.depth = 16, .token = 1000, .values = 1000});
    if (lax.is_discarded() || strict != lax) abort();
  } catch (const vitrine::Error& error) {
    const std::string message = error.what();
    if (error.code() != vitrine::ErrorCode::bad_file || message.find('\n') != std::string::npos) abort();
    const bool grammar =
        message.find("unexpected") != std::string::npos || message.find("too early") != std::string::npos;
    if (grammar && !lax.is_discarded()) abort();
  }
  return 0;
}

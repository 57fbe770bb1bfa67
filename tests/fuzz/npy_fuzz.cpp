// Any bytes are an .npy file whose header fits its data, or an Error(bad_file).
#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/util/error.h"
#include "runtime/util/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto header = vitrine::parse_npy_header({reinterpret_cast<const std::byte*>(data), size}, "x.npy");
    uint64_t elements = 1;
    for (const uint64_t dim : header.shape) elements *= dim;
    if (elements != header.elements) abort();
    if (header.data_offset + elements * vitrine::size_of(header.dtype) != size) abort();
  } catch (const vitrine::Error& error) {
    if (error.code() != vitrine::ErrorCode::bad_file ||
        std::string(error.what()).find('\n') != std::string::npos)
      abort();
  }
  return 0;
}

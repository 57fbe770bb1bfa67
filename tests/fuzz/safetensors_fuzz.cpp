// Any bytes are a safetensors file that keeps every promise of its reader, or an Error(bad_file).
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/files/safetensors.h"
#include "runtime/util/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int memory = memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(memory);
  if (ftruncate(memory, 0) != 0 || pwrite(memory, data, size, 0) != static_cast<ssize_t>(size)) return 0;
  try {
    const vitrine::SafetensorsFile file(path);
    uint64_t covered = 0;
    for (const vitrine::TensorInfo& tensor : file.tensors()) {
      if (file.find(tensor.name) != &tensor || tensor.begin != covered) abort();
      covered = tensor.end;
      uint64_t elements = 1;
      for (const uint64_t dim : tensor.shape) elements *= dim;
      if (elements != tensor.elements()) abort();
      unsigned sum = 0;
      for (const std::byte byte : file.bytes(tensor)) sum += std::to_integer<unsigned>(byte);
      if (vitrine::is_float_weight(tensor.dtype) && file.floats(tensor).size() + sum < elements) abort();
    }
  } catch (const vitrine::Error& error) {
    if (error.code() != vitrine::ErrorCode::bad_file ||
        std::string(error.what()).find('\n') != std::string::npos)
      abort();
  }
  return 0;
}

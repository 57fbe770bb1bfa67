#include "model/run/storage_type.h"

#include <string>

#include "runtime/util/error.h"

namespace vitrine {

DType storage_type(std::string_view name, const Capabilities& device) {
  if (name == "f32" || name == "auto") return DType::f32;
  if (name != "f16")
    throw Error(ErrorCode::usage, "--dtype: found '" + std::string(name) + "', expected f32, f16 or auto");
  if (!device.supports(Need::storage16)) {
    throw Error(ErrorCode::usage,
                "--dtype: found f16, and device '" + device.name + "' has no 16-bit storage, expected f32");
  }
  return DType::f16;
}

}  // namespace vitrine

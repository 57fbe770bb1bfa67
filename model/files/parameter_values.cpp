#include "model/files/parameter_values.h"

#include <bit>
#include <string>

#include "model/files/file_dtype.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

FileDType stored_as(const Parameter& parameter, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return FileDType::f32;
    case DType::f16:
      return FileDType::f16;
    case DType::bf16:
      return FileDType::bf16;
    case DType::u32:
      break;
  }
  throw Error(ErrorCode::bad_file, "'" + parameter.name + "' is stored as " + std::string(name_of(dtype)) +
                                       ", expected f32, f16 or bf16");
}

}  // namespace

void read_floats(ConstantSource& source, const Parameter& parameter, std::span<float> values) {
  for (const ConstantPart& part : source.find(parameter.name, parameter.shape, DType::f32)) {
    const uint64_t count = part.bytes.size() / size_of(part.dtype);
    if (count > values.size()) {
      throw Error(ErrorCode::bad_file, "'" + parameter.name + "' holds more than the " +
                                           std::to_string(parameter.shape.elements()) + " numbers of " +
                                           parameter.shape.to_string());
    }
    to_floats(stored_as(parameter, part.dtype), part.bytes, values.first(count));
    values = values.subspan(count);
  }
}

uint64_t checksum_of(ConstantSource& source, std::span<const Parameter> parameters) {
  // FNV-1a, a float at a time.
  uint64_t hash = 0xcbf29ce484222325u;
  std::vector<float> values;
  for (const Parameter& parameter : parameters) {
    values.resize(parameter.shape.elements());
    read_floats(source, parameter, values);
    for (const float value : values) hash = (hash ^ std::bit_cast<uint32_t>(value)) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace vitrine

// The JSON header of a safetensors file, checked tensor by tensor while it is read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/files/safetensors.h"

namespace vitrine {

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the header's order; names may repeat, that is the file's check
  std::map<std::string, std::string, std::less<>> metadata;
};

// Error(bad_file) at the first rule that is broken: names and types of the fields, known dtypes, sizes
// that fit shapes and lie within `data_bytes`. `file` names it; `passed` as in parse_json_events.
SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                           const std::string& file,
                                           const std::function<void(size_t)>& passed = {});

}  // namespace vitrine

// Bytes to numbers, of pictures that are stored plane by plane.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_byte_values;
std::vector<reference::OpCase> byte_values_cases();

struct BytePictures {
  uint64_t pictures = 0, height = 0, width = 0;
};

// bytes [N] u32, four a word with the first in the lowest bits: all planes of all pictures one after the
// other, N words for them; values [C, 256] f32. Gives [pictures, C, height, width] f32: for each byte the
// number that its channel has for it.
ValueId byte_values(Graph& graph, std::string name, ValueId bytes, ValueId values,
                    const BytePictures& pictures);

}  // namespace vitrine

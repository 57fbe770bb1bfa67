// Rotary positions: pairs of a head's columns turned by angles that go with the token's place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_rotary;
std::vector<reference::OpCase> rotary_cases();

// How the columns of a head make pairs.
enum class RotaryPairs : uint8_t {
  neighbours,  // 2i and 2i + 1
  halves,      // i and i + width / 2
};

struct RotaryOptions {
  uint64_t width = 64;  // of a head; even
  uint64_t turned = 1;  // heads that are turned, from the row's beginning on: all queries' and keys'
  uint64_t heads = 1;   // of the result; those behind the turned ones are copied
  RotaryPairs pairs = RotaryPairs::neighbours;
  bool back = false;  // by the opposite angles
};

// x [B, N, at least heads * width] f32 or f16; table f32, either [n, 2, width / 2] or [m, n, 2, width / 2],
// where the turned heads take the m tables by turns: for each of the last n tokens the cosines, then the
// sines. Tokens in front of these are copied. Gives [B, N, heads * width] in x's dtype.
ValueId rotary(Graph& graph, std::string name, ValueId x, ValueId table, const RotaryOptions& options);

// For operators with its attributes: that x and the table fit them.
void require_turns(InferContext& context, const Shape& x, const Value& table);

}  // namespace vitrine

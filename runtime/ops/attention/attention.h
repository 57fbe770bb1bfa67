// Multi-head attention in one pass: the scores are never stored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_attention;
std::vector<reference::OpCase> attention_cases();
std::vector<reference::Sample> attention_sample(const reference::LoneNode& node);

// Offsets and widths count elements. Head h of a row lies at offset + h * width, so that the three may be
// parts of one projection's output, read where they are.
struct AttentionOptions {
  uint64_t heads = 1;
  uint64_t key_width = 0;    // of one head; at most 256
  uint64_t value_width = 0;  // of one head, at most 256; 0: as wide as the keys
  uint64_t q_offset = 0, k_offset = 0, v_offset = 0;
  double scale = 0;  // of the scores; 0: 1 / sqrt(key_width)
  bool store_lse = false;
  // Of f32: a kernel that multiplies f16 may be taken, which rounds q, k, v and the weights on their way, and
  // in the derivative the gradients by what their largest asks for. What f16 has no room for of q, k and v
  // becomes infinite.
  bool rounded = false;
  // Dropout of the weights behind the softmax, from a stream of its own
  // (runtime/ops/elementwise/random_mask.h): of row (b * heads + head) * N + n, the draw of a key is its
  // number. A rate of 0 needs no step.
  double drop_rate = 0;
  uint32_t drop_stream = 0;
  ValueId step = {};  // [VITRINE_STEP_WORDS] u32
  // A query sees the keys up to its own number alone, of as many keys as queries. What it doesn't see has a
  // weight of 0, whatever its score; no mask is stored. Has no derivative here.
  bool causal = false;
  // What is added to scale * q . k by where the key's patch lies, seen from the query's: one f32 of a table
  // [rows, heads], as BEiT, Data2Vec and timm's models with relative positions have it. The tokens, as many
  // queries as keys, are bias_first others (0 or 1), then a grid of patches, row by row; the bias of query
  // (y, x) and key (v, u) is row (y - v + height - 1) * (2 * width - 1) + x - u + width - 1 of
  // (2 * height - 1) * (2 * width - 1). With a token in front, three rows follow: it asks a patch, a patch
  // asks it, it asks itself. No value of every pair is stored.
  ValueId bias = {};
  uint64_t bias_height = 0, bias_width = 0, bias_first = 0;
  // Or what SAM adds, with no token in front: f32 [B, heads, N, height + width], of which a query has a
  // number for each row of the grid that the key's patch may lie in, and behind them one for each column. Has
  // no derivative here.
  ValueId bias_rows = {};
};

struct AttentionResult {
  ValueId out;  // [B, N, heads * value_width]
  ValueId lse;  // [B, heads, N] f32: log of the sum of exp(score) of each row; none unless asked for
};

// q [B, N, ..], k and v [B, M, ..], all f32 or all f16; the result has the same dtype. They may be one value.
// Softmax and sums are f32. A row whose scores hold a NaN or +inf, or nothing but -inf, is NaN.
AttentionResult attention(Graph& graph, std::string name, ValueId q, ValueId k, ValueId v,
                          const AttentionOptions& options);

}  // namespace vitrine

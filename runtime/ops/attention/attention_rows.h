// Attention's weights, computed again after the fused kernel has thrown them away: from q, k and the
// log-sum-exp that it stored, and only the rows that are asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"
#include "runtime/ops/attention/attention.h"

namespace vitrine {

extern const OpDef op_attention_rows;
std::vector<reference::OpCase> attention_rows_cases();

struct AttentionRowsOptions {
  uint64_t first_row = 0;
  uint64_t rows = 0;        // 0: all from first_row on
  bool mean_heads = false;  // the mean of all heads, without holding the heads' own maps
  bool mean_rows = false;   // the mean of the rows, without holding them
};

// q, k and `attended` as attention() had them; lse [B, heads, N] f32, which attention() gives where
// store_lse is set. Weights exp(scale * q . k + bias - lse) in f32: [B, heads, rows, M], or [B, rows, M] with
// mean_heads; `rows` is 1 with mean_rows. What has to do with values in `attended` has no effect.
ValueId attention_rows(Graph& graph, std::string name, ValueId q, ValueId k, ValueId lse,
                       const AttentionOptions& attended, const AttentionRowsOptions& options = {});

}  // namespace vitrine

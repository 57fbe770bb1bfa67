// Inside attention and plain_attention: what they share, and attention's kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/op.h"
#include "runtime/ops/attention/attention.h"
#include "shaders/attention/attention.h"

namespace vitrine {

namespace attention_input {
constexpr uint32_t q = 0, k = 1, v = 2, step = 3, bias = 4;
}

struct AttentionSizes {
  uint64_t batch = 0, queries = 0, keys = 0, heads = 0, key_width = 0, value_width = 0;
  uint64_t bytes = 4;    // of an element
  double flops() const;  // of both products
  // Q, K, V and the result once; and of a workgroup, whose blocks of so many queries go with all keys.
  double tensor_bytes() const;
  double moved_bytes(uint64_t block_q) const;
};
AttentionSizes attention_sizes(const LowerContext& context);
// Which weights are dropped, as a shader's parameters say it; of no use where nothing is dropped.
struct AttentionDrops {
  uint32_t stream = 0, threshold = 0;
  float factor = 1;
};
// Whether f32 operands may be rounded to f16 on their way.
bool is_attention_rounded(const Attributes& attributes);
bool drops_weights(const Attributes& attributes);
AttentionDrops attention_drops(const Attributes& attributes);
// The reason why a kernel that draws no random numbers can't run a node, if it can't.
std::optional<std::string> refuse_drops(const LowerContext& context);
bool is_attention_causal(const Attributes& attributes);
// The reason why a kernel that lets every query see every key can't run a node, if it can't.
std::optional<std::string> refuse_causal(const LowerContext& context);
Attributes attention_attributes(const AttentionOptions& options);
// What a node of them reads behind q, k and v: nothing, or a step and a bias, each none where it has none.
void push_attention_extras(const Attributes& attributes, ValueId step, ValueId bias,
                           std::vector<ValueId>& inputs);
// Checks the inputs; returns the result's shape.
Shape infer_attention_inputs(InferContext& context);
void infer_attention(InferContext& context);
double attention_flops(const LowerContext& context);
// All parameters but how many pieces of work there are.
shader::AttentionParams attention_params(const LowerContext& context, uint64_t blocks);

// ---- tiled: shared memory, any device --------------------------------------------------------------

// How a workgroup works: over block_q queries and block_k keys at a time; `columns` invocations share a
// query. In shared memory lie chunk4 vec4 of the queries' and keys' columns, or the values of `slice` keys.
struct AttentionTile {
  uint32_t threads, columns, block_q, block_k, chunk4, slice;
  double cpu_speed;  // Work::cpu_speed: mostly by how few barriers there are
  uint32_t rows() const { return threads / columns; }
  uint32_t score_i() const { return block_q / rows(); }
  uint32_t score_j() const { return block_k / columns; }
  std::string name() const;
};
std::span<const AttentionTile> attention_tiles();
uint64_t shared_bytes(const AttentionTile& tile, const AttentionSizes& sizes);
bool fits(const AttentionTile& tile, const AttentionSizes& sizes, const Capabilities& device);
// What a tile of so many bytes of shared memory and registers of an invocation asks of a device.
Work work_of(const AttentionTile& tile, const AttentionSizes& sizes, uint64_t shared, double registers);
Lowered lower_attention_tiled_as(const LowerContext& context, const AttentionTile& tile);

std::optional<std::string> refuse_attention_tiled(const LowerContext& context);
double prefer_attention_tiled(const LowerContext& context);
Lowered lower_attention_tiled(const LowerContext& context);
std::vector<std::string> attention_tiled_configurations(const LowerContext& context);

// ---- coopmat: VK_KHR_cooperative_matrix, f16, or f32 that may be rounded -----------------------------

// What it shares with coopmat_columns. Whether every row of every head begins at a multiple of eight elements
// and is made of whole eights; q, k and v, by eight or by single values, behind them the results; and what
// keeps a device or a node from this variant of either.
bool rows_by_eight(const shader::AttentionParams& params);
std::vector<Operand> staged_attention_operands(bool eights, bool store_lse);
std::optional<std::string> refuse_staged_attention(const LowerContext& context, std::string_view shader,
                                                   std::string_view variant);

struct AttentionCoopmatShape {
  CooperativeShape matrix;
  uint32_t subgroup_size = 0;
  uint32_t subgroups = 0, blocks_m = 0;  // of a workgroup; of matrix.m queries, of a subgroup
  uint32_t block_k = 0;                  // keys of a step
  bool keep_queries = false;             // in registers
  double speed = 1;                      // of the units' rate: less with smaller matrices than theirs
  double registers = 0;                  // of an invocation
  uint32_t rows() const { return blocks_m * matrix.m; }
  uint32_t block_q() const { return subgroups * rows(); }
  uint32_t threads() const { return subgroups * subgroup_size; }
  uint64_t shared_bytes(const AttentionSizes& sizes) const;
  std::string name() const;
};
// The shapes that this device can run with such heads, of every matrix that it lists.
std::vector<AttentionCoopmatShape> attention_coopmat_shapes(const AttentionSizes& sizes,
                                                            const Capabilities& device);
Lowered lower_attention_coopmat_as(const LowerContext& context, const AttentionCoopmatShape& shape);

std::optional<std::string> refuse_attention_coopmat(const LowerContext& context);
double prefer_attention_coopmat(const LowerContext& context);
Lowered lower_attention_coopmat(const LowerContext& context);
std::vector<std::string> attention_coopmat_configurations(const LowerContext& context);

// ---- coopmat_columns: the same, scores in registers, where MatrixSums are known ----------------------

struct AttentionColumnsShape {
  CooperativeShape matrix;
  uint32_t subgroup_size = 0;
  uint32_t subgroups = 0, blocks_n = 0;  // of a workgroup; of matrix.n queries, of a subgroup
  uint32_t block_k = 0;                  // keys of a step
  double speed = 1;                      // of the units' rate: less with smaller matrices than theirs
  double registers = 0;                  // of an invocation
  uint32_t queries_each() const { return blocks_n * matrix.n; }
  uint32_t block_q() const { return subgroups * queries_each(); }
  uint32_t threads() const { return subgroups * subgroup_size; }
  uint64_t shared_bytes(const AttentionSizes& sizes) const;
  std::string name() const;
};
std::vector<AttentionColumnsShape> attention_columns_shapes(const AttentionSizes& sizes,
                                                            const Capabilities& device);
Lowered lower_attention_columns_as(const LowerContext& context, const AttentionColumnsShape& shape);

std::optional<std::string> refuse_attention_columns(const LowerContext& context);
double prefer_attention_columns(const LowerContext& context);
Lowered lower_attention_columns(const LowerContext& context);
std::vector<std::string> attention_columns_configurations(const LowerContext& context);

// ---- coopmat2: VK_NV_cooperative_matrix2, f16 ---------------------------------------------------------

struct AttentionCoopmat2Shape {
  bool staged = false;  // a subgroup's matrices, through shared memory; else a workgroup's, as tensors
  uint32_t threads = 0, block_q = 0, block_k = 0;
  uint32_t key_grain = 0, value_grain = 0;  // what the widths are padded to
  uint32_t key_depth(const AttentionSizes& sizes) const;
  uint32_t value_columns(const AttentionSizes& sizes) const;
  uint64_t shared_bytes(const AttentionSizes& sizes) const;  // where staged
  std::string name() const;
};
std::vector<AttentionCoopmat2Shape> attention_coopmat2_shapes(const AttentionSizes& sizes,
                                                              const Capabilities& device);
std::vector<AttentionCoopmat2Shape> attention_flexible_shapes(const AttentionSizes& sizes,
                                                              const Capabilities& device);
Lowered lower_attention_coopmat2_as(const LowerContext& context, const AttentionCoopmat2Shape& shape);

std::optional<std::string> refuse_attention_coopmat2(const LowerContext& context);
double prefer_attention_coopmat2(const LowerContext& context);
Lowered lower_attention_coopmat2(const LowerContext& context);
std::vector<std::string> attention_coopmat2_configurations(const LowerContext& context);
std::optional<std::string> refuse_attention_flexible(const LowerContext& context);
double prefer_attention_flexible(const LowerContext& context);
Lowered lower_attention_flexible(const LowerContext& context);
std::vector<std::string> attention_flexible_configurations(const LowerContext& context);

// ---- cpu_lanes: no shared memory, a query a lane, devices that are a CPU ---------------------------

// How many keys (or queries) a lane takes in at a time, the best first. `fours`: whole fours, or halves of
// one.
struct AttentionStep {
  uint32_t tokens;
  std::string_view unit;
  std::string name() const { return std::to_string(tokens) + std::string(unit); }
};
// Of a node: as many as code has room for whose tokens times width are most_unrolled.
std::vector<AttentionStep> attention_steps_for(const LowerContext& context, uint64_t most_unrolled,
                                               std::string_view unit);
std::vector<uint32_t> attention_steps(uint64_t tokens, uint64_t width, uint64_t unrolled, uint32_t least,
                                      bool fours);

std::optional<std::string> refuse_attention_lanes(const LowerContext& context);
double prefer_attention_lanes(const LowerContext& context);
Lowered lower_attention_lanes(const LowerContext& context);
std::vector<std::string> attention_lanes_configurations(const LowerContext& context);
bool attention_lanes_write(const LowerContext& context, const Layout& layout);

}  // namespace vitrine

// Inside matmul: its kernels, each in a file of its own, and what they share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph/op.h"
#include "shaders/products/matmul.h"

namespace vitrine {

// The node's inputs, in order; from bias on they may be none.
namespace matmul_input {
constexpr uint32_t x = 0, weight = 1, bias = 2, scale = 3, residual = 4, magnitude = 5;
}

// Operands that lie column by column, as x [.., m] with k rows and weight [.., n] with k rows: where the rule
// of fusion `transposed` took over what would have turned them. A kernel that can't read them so refuses.
bool is_x_transposed(const Node& node);
bool is_weight_transposed(const Node& node);
std::optional<std::string> refuse_transposed(const LowerContext& context);

// Whether f32 operands may be rounded to f16 on their way.
bool is_rounded(const Node& node);

// Whether the left side is patches of images: op_patch_embed's nodes, which have x, weight and bias in
// matmul's places.
bool reads_patches(const Node& node);
// A shader's variant that reads the left side as it lies, and the constants that it has more.
std::string with_patches(const LowerContext& context, std::string variant);
void add_patch_constants(const LowerContext& context, Dispatch& dispatch);

// Whether heads are turned by rotary positions before they are stored: op_rotary_matmul's nodes, which have
// x, weight and bias in matmul's places. A shader's variant that does so, and the constants and the operand
// that it has more. Of a product in slices the sum does it, not the product.
bool turns_heads(const Node& node);
std::string with_turns(const LowerContext& context, std::string variant);
void add_turns(const LowerContext& context, Dispatch& dispatch);

// C[m,n] = epilogue(A[m,k] W[n,k]^T)
struct MatmulSizes {
  uint64_t m = 0, n = 0, k = 0;
  uint64_t in_bytes = 4, out_bytes = 4;  // of an element of W, and of C
};
MatmulSizes matmul_sizes(const Node& node, const Shape& x, const Shape& weight);
MatmulSizes matmul_sizes(const LowerContext& context);
void infer_matmul(InferContext& context);
double matmul_flops(const LowerContext& context);
void differentiate_matmul(GradContext& context);
// "f32", "f16", "f16_f32" and so on, by what the weight and the result are stored as.
std::string matmul_variant(const LowerContext& context);

// The specialization constants of shaders/lib/epilogue.glsl.
std::vector<NamedConstant> epilogue_constants(const LowerContext& context);
// A, W, bias, scale, residual, C: the bindings of the descriptor-bound kernels.
std::vector<Operand> matmul_operands(const LowerContext& context);
// The output may take over the residual's memory: each element is read and written by one invocation.
std::vector<std::pair<uint32_t, uint32_t>> matmul_in_place(const LowerContext& context);

// A tile of a kernel and what it asks of a device (runtime/graph/work.h).
struct TileWorth {
  uint32_t tile_m = 0, tile_n = 0;
  uint32_t slices = 1;  // of K
  uint32_t threads = 0, subgroup_size = 0;
  double registers = 0, shared_bytes = 0;
  // Of a workgroup that walks K in steps of step_k:
  uint32_t step_k = 1;
  double shared_traffic = 0;     // of a step
  double instructions = 0;       // of a step, beside the products
  double instructions_once = 0;  // before and behind the steps
  double line_share = 1;         // of what the cache hands out, that a step asks for
  double pause = 0;              // cycles of a step in which the next one is stored and nothing else goes on
  uint32_t ahead = 0;            // steps whose loads are on their way while one is multiplied
  bool matrix_units = false;
  double matrix_speed = 1;  // of the units' rate: less where the matrices aren't those that they are made for
  double cpu_speed = 1;
};
// What a product in such tiles asks of a device, and what adding up its slices does.
Work work_of(const TileWorth& tile, const MatmulSizes& sizes);
Work work_of_sum(const TileWorth& tile, const MatmulSizes& sizes);
// The tiles' indices, the one that should finish first in front.
std::vector<size_t> rank_tiles(std::span<const TileWorth> tiles, const MatmulSizes& sizes,
                               const Capabilities& device);
// The same for a kernel's shapes, each of which has a worth().
template <typename Shape>
std::vector<Shape> ranked(const std::vector<Shape>& shapes, const LowerContext& context) {
  std::vector<TileWorth> worths;
  for (const Shape& shape : shapes) worths.push_back(shape.worth());
  std::vector<Shape> in_order;
  for (const size_t i : rank_tiles(worths, matmul_sizes(context), context.device()))
    in_order.push_back(shapes[i]);
  return in_order;
}

// ---- split K: more workgroups for a grid that doesn't fill the device -------------------------------
//
// A kernel that can start its sums at any k joins in: among its shapes it offers each with best_slices too,
// cuts K with cut_k, has a variant that stores the f32 sums of `count` slices one after the other as
// [count][m][n], and gives its dispatch to lower_in_tiles, which adds them up (sum_slices).

// In how many slices a tile should finish first; 1 where K should stay whole.
uint32_t best_slices(TileWorth tile, const MatmulSizes& sizes, const Capabilities& device);

// K in `count` pieces of `length`, a multiple of the kernel's step, but for the last one.
struct KSlices {
  uint32_t count = 1;
  uint64_t length = 0;
};
// At most `wanted` pieces; fewer when K has fewer steps.
KSlices cut_k(uint64_t k, uint32_t wanted, uint32_t step_k);

// Turns `product`, a dispatch with matmul_operands and epilogue_constants among its constants, into one
// that stores partial sums to scratch, and appends it and the sum of its slices to `lowered`. Its shader must
// be a variant whose output is f32.
void sum_slices(const LowerContext& context, Dispatch product, const KSlices& slices, Lowered& lowered);
// What all kernels with tiles share behind their constants and operands: the parameters
// (shaders/products/matmul.h), the grid, the sum of the slices where there are several, and the work that it
// is.
Lowered lower_in_tiles(const LowerContext& context, Dispatch product, const TileWorth& tile,
                       const KSlices& slices);
// Why the sum can't run on the device, if it can't.
std::optional<std::string> refuse_slices(const LowerContext& context);

// ---- tiled: shared memory, any device ------------------------------------------------------------

struct TiledShape {
  uint32_t tile_m, tile_n, step_k, thread_m, thread_n;
  uint32_t ahead;       // steps whose loads are on their way; from 1 on shared memory has two halves
  uint32_t slices = 1;  // of K
  bool mixed = false;   // f16 tiles stay halves in shared memory
  bool one_way = true;  // all invocations stage by the same code, whichever operand they hold
  uint32_t threads() const { return (tile_m / thread_m) * (tile_n / thread_n); }
  uint32_t shared_bytes() const {
    // vec4, rows of an odd pitch, two more at every eighth k.
    const uint32_t vectors = step_k * (tile_m / 4 + tile_n / 4 + 2) + step_k / 8 * 4;
    return 16 * vectors * (ahead > 0 ? 2 : 1);
  }
  // Blocks of 4 x 4 that an invocation stages in a step.
  uint32_t loads() const { return to_u32(ceil_div((tile_m + tile_n) / 4 * (step_k / 4), threads())); }
  // Of an invocation, about as compilers make of them (docs/zoo.md): its sums, a step's operands, what is
  // staged and where it comes from, and some 20 more, of which 8 wait for no load that is under way.
  uint32_t registers() const {
    const uint32_t staged = 16 * loads(), operands = thread_m + thread_n;
    return thread_m * thread_n + 4 * loads() +
           (ahead > 0 ? 20 + ahead * staged + operands : 12 + std::max(staged, operands));
  }
  TileWorth worth() const;
  std::string name() const;
};
std::span<const TiledShape> tiled_shapes();
bool fits(const TiledShape& shape, const Capabilities& device);
// Nothing when the device can multiply halves into f32 sums for this node.
std::optional<std::string> refuse_mixed(const LowerContext& context);
Lowered lower_tiled_as(const LowerContext& context, const TiledShape& shape);

std::optional<std::string> refuse_tiled(const LowerContext& context);
double prefer_tiled(const LowerContext& context);
Lowered lower_tiled(const LowerContext& context);
std::vector<std::string> tiled_configurations(const LowerContext& context);

// ---- few_rows: up to eight rows, each weight read once ----------------------------------------------

std::optional<std::string> refuse_few_rows(const LowerContext& context);
double prefer_few_rows(const LowerContext& context);
Lowered lower_few_rows(const LowerContext& context);

// ---- coopmat: VK_KHR_cooperative_matrix, f16 inputs, or f32 ones that may be rounded -----------------

struct CoopmatShape {
  CooperativeShape matrix;
  uint32_t subgroup_size = 0;
  uint32_t subgroups_m = 0, subgroups_n = 0;  // of a workgroup
  uint32_t matrices_m = 0, matrices_n = 0;    // of a subgroup
  uint32_t step_k = 0, buffers = 0;           // two buffers: the next step is staged beside this one
  uint32_t ahead = 1;                         // steps whose loads are on their way
  double speed = 1;                           // of the units' rate (TileWorth::matrix_speed)
  double registers = 0;                       // of an invocation
  uint32_t slices = 1;                        // of K
  bool rounded = false;                       // operands are f32
  bool rolled = false;                        // a step's products are a loop, which takes fewer registers
  uint32_t tile_m() const { return subgroups_m * matrices_m * matrix.m; }
  uint32_t tile_n() const { return subgroups_n * matrices_n * matrix.n; }
  uint32_t threads() const { return subgroups_m * subgroups_n * subgroup_size; }
  uint32_t shared_bytes() const;
  TileWorth worth() const;
  std::string name() const;
};
// The shapes that this device can run, of every matrix that it lists; empty when it has none.
std::vector<CoopmatShape> coopmat_shapes(const Capabilities& device, bool rounded = false);
Lowered lower_coopmat_as(const LowerContext& context, const CoopmatShape& shape);

std::optional<std::string> refuse_coopmat(const LowerContext& context);
double prefer_coopmat(const LowerContext& context);
Lowered lower_coopmat(const LowerContext& context);
std::vector<std::string> coopmat_configurations(const LowerContext& context);

// The same, of matrices as large as a subgroup's part (VK_NV_cooperative_matrix2's flexible dimensions), with
// an epilogue element by element.
std::vector<CoopmatShape> coopmat_flexible_shapes(const Capabilities& device, bool rounded = false);
Lowered lower_coopmat_flexible_as(const LowerContext& context, const CoopmatShape& shape);

std::optional<std::string> refuse_coopmat_flexible(const LowerContext& context);
double prefer_coopmat_flexible(const LowerContext& context);
Lowered lower_coopmat_flexible(const LowerContext& context);
std::vector<std::string> coopmat_flexible_configurations(const LowerContext& context);

// ---- coopmat2: all of VK_NV_cooperative_matrix2, f16 inputs ------------------------------------------

struct Coopmat2Shape {
  uint32_t threads = 0, tile_m = 0, tile_n = 0, step_k = 0;
  TileWorth worth() const;
  std::string name() const;
};
std::vector<Coopmat2Shape> coopmat2_shapes(const Capabilities& device);
Lowered lower_coopmat2_as(const LowerContext& context, const Coopmat2Shape& shape);

std::optional<std::string> refuse_coopmat2(const LowerContext& context);
double prefer_coopmat2(const LowerContext& context);
Lowered lower_coopmat2(const LowerContext& context);
std::vector<std::string> coopmat2_configurations(const LowerContext& context);

// ---- cpu_small: weights of at most 64 x 64, devices that are a CPU ---------------------------------

std::optional<std::string> refuse_small(const LowerContext& context);
double prefer_small(const LowerContext& context);
Lowered lower_small(const LowerContext& context);

// ---- cpu_direct: no shared memory, packed weights, devices that are a CPU --------------------------

std::optional<std::string> refuse_direct(const LowerContext& context);
double prefer_direct(const LowerContext& context);
Lowered lower_direct(const LowerContext& context);
std::vector<std::string> direct_configurations(const LowerContext& context);
std::optional<Layout> direct_likes_layout(const LowerContext& context, uint32_t input);
bool direct_writes_layout(const LowerContext& context, const Layout& layout);

// ---- cpu_chunks: the same for such whose loops gather, a dispatch for each chunk of K --------------

std::optional<std::string> refuse_chunks(const LowerContext& context);
double prefer_chunks(const LowerContext& context);
Lowered lower_chunks(const LowerContext& context);
std::vector<std::string> chunks_configurations(const LowerContext& context);
std::optional<Layout> chunks_likes_layout(const LowerContext& context, uint32_t input);
bool chunks_writes_layout(const LowerContext& context, const Layout& layout);

}  // namespace vitrine

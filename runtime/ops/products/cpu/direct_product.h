// The matrix product for devices that are a CPU (shaders/products/cpu/matmul_cpu_direct.comp), for every
// operator that is one with a gather of its own in front.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

// C[rows, columns] = epilogue(A[rows, depth]·W[columns, depth]ᵀ)
struct DirectProduct {
  uint64_t rows = 0, columns = 0, depth = 0;
  uint32_t weight_input = 0;  // which input of the node W is
  DType weight = DType::f32, out = DType::f32;
  std::vector<NamedConstant> epilogue;  // the constants of shaders/lib/epilogue.glsl
  std::array<Operand, 3> extras{};      // bias, scale and residual
  // Operands that lie with the depth outermost, A as [depth, rows] and W as [depth, columns], both f32
  // (shaders/products/cpu/matmul_cpu_direct_columns.comp, or strips for chunks).
  bool rows_by_depth = false, weight_by_depth = false;
  std::string_view configuration;  // the block of rows, by its name; empty: the best one
  bool in_chunks = false;  // the depth in a dispatch a chunk (shaders/products/cpu/matmul_cpu_chunk.comp)

  // How the rows of A are packed: [blocks of rows][steps of depth][block_rows][unroll], f32, zeros around.
  uint32_t block_rows() const;
  static constexpr uint32_t unroll = 16;  // a cache line of A a row and step
  uint64_t steps() const { return ceil_div(depth, unroll); }
  uint64_t packed_elements() const { return round_up(rows, block_rows()) * steps() * unroll; }
};

// The names of the blocks of rows, the one that should be fastest first: KernelDef::configurations.
std::vector<std::string> direct_product_configurations(const DirectProduct& product);
// The blocks in which a product likes its left side; nothing where the depth leaves a part of a step over.
std::optional<Layout> liked_layout(const DirectProduct& product);
// Whether its result can be written so.
bool can_write(const DirectProduct& product, const Layout& layout);

std::optional<std::string> refuse_direct_product(const LowerContext& context, const DirectProduct& product);

// Adds scratch 0 for the packed rows, `pack_rows` as the dispatch that fills it, the packing of W, and the
// product, which writes output 0. A constant W is packed at load, any other before each product.
void add_direct_product(const LowerContext& context, const DirectProduct& product, Dispatch pack_rows,
                        Lowered& lowered);
// The same where `rows` is packed already.
void add_packed_product(const LowerContext& context, const DirectProduct& product, Operand rows,
                        Lowered& lowered);

// What a product is multiplied with: panels of W's columns, packed at load where it is a constant, or W in
// place.
Operand weight_of(const LowerContext& context, const DirectProduct& product, Lowered& lowered);

// The product of a matmul node whose x lies with the depth outermost; the depth in slices where that helps.
void add_product_by_depth(const LowerContext& context, const DirectProduct& product, Lowered& lowered);

// Without shared memory a GPU would read each operand from memory far too often. Which of the two a CPU-type
// device likes goes by Capabilities::loops_gather.
double prefer_direct_product(const LowerContext& context);
double prefer_chunked_product(const LowerContext& context);

// ---- chunked_product.cpp: with DirectProduct::in_chunks ----

std::optional<std::string> refuse_chunked_product(const LowerContext& context, const DirectProduct& product);
// The dispatches that multiply packed `rows` with packed `weight`.
void add_chunks(const LowerContext& context, const DirectProduct& product, Operand rows, Operand weight,
                Lowered& lowered);
// The steps of chunks, the longest first. Each length is a shader to compile; the longer, the less time goes
// to storing sums and reading them again.
constexpr std::array<uint64_t, 5> chunk_steps{16, 8, 4, 2, 1};
// A chunk of sixteen steps takes a second to compile, and such a product less than a millisecond.
constexpr bool is_small_product(const DirectProduct& product) {
  return product.rows * product.columns * product.depth <= 4'000'000;
}
// What makes the result of the sums of all chunks, of blocks of so many rows.
void add_chunk_end(const LowerContext& context, const DirectProduct& product, uint32_t block_rows,
                   Operand sums, Lowered& lowered);

}  // namespace vitrine

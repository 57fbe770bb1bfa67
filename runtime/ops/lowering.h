// What the lowerings of the small operators share: workgroup sizes, group counts and variant names.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/op.h"
#include "runtime/util/error.h"

namespace vitrine {

// The largest power of two that is at most `wanted` and that the device takes as a workgroup of one
// dimension.
uint32_t workgroup_size(const Capabilities& device, uint32_t wanted);

// The workgroup size for kernels that give each row of `width` elements a workgroup. On a GPU about four
// elements an invocation; on a CPU, where a barrier costs every subgroup time, one subgroup.
uint32_t row_workgroup_size(const Capabilities& device, uint64_t width);

// `count` workgroups in x, continued in y where the device's limit on x is smaller. The shader's side is
// linear_group() of shaders/lib/index.glsl; it must leave out the numbers from `count` on.
std::array<uint32_t, 3> spread_groups(const Capabilities& device, uint64_t count);

// The groups of a dispatch that strides over `count` pieces of work with workgroups of `threads` invocations.
std::array<uint32_t, 3> striding_groups(const Capabilities& device, uint64_t count, uint32_t threads);

// The names of an operator's storage variants: "f32" and "f16" where in and out agree, else "f32_f16"
// and so on.
std::string storage_variant(DType in, DType out);

// The reason why the device can't run `variant` of `shader`, why a tensor of the node is too large for
// 32-bit indices or for the device's descriptors, or why no descriptor can begin where it does; else nothing.
std::optional<std::string> refuse(const LowerContext& context, std::string_view shader,
                                  std::string_view variant);

// What the kernels for CPU-type devices share that give each row to one lane and move elements by fours
// (shaders/lib/quads.glsl): when they can't, how many lanes a workgroup has, and that GPUs prefer others.
std::optional<std::string> refuse_row_lanes(const LowerContext& context, std::string_view shader,
                                            std::string_view variant, const Shape& shape);
std::optional<std::string> refuse_row_groups(const LowerContext& context, uint64_t rows);
// The reason why a 32-bit tensor can't be moved as 64-bit words: a state may start between two of them.
std::optional<std::string> refuse_half_word(const Value& value);
uint32_t lanes_workgroup_size(const Capabilities& device);

// How many lanes a workgroup has that gives each of so many rows a lane, where a row is little work: a
// workgroup costs about as much as a hundred nanoseconds of arithmetic.
uint32_t row_lanes_workgroup_size(const Capabilities& device, uint64_t rows);

// Of those that go through whole tensors by fours (shaders/lib/quad_runs.glsl): the reason why the node's
// inputs and output can't be gone through so; and what the kernel for one element an invocation lowers to,
// with another shader, whose constants are the same but for the workgroup's size and, at the end, the quads
// of each.
std::optional<std::string> refuse_quads(const LowerContext& context, std::string_view shader,
                                        std::string_view variant);
Lowered lower_by_quads(const LowerContext& context, Lowered lowered, std::string_view shader,
                       std::string_view variant);
double prefer_on_cpu(const LowerContext& context);

// Of those for GPUs that do so 16 bytes an invocation (shaders/lib/wide.glsl): how many elements these are,
// of the wider of the node's first input and its result; and what the kernel for one element an invocation
// lowers to, with another shader of the same parameters, of which the first counts elements, and the same
// constants and `whole_runs`.
uint64_t wide_run(const LowerContext& context);
Lowered lower_wide(const LowerContext& context, Lowered lowered, std::string_view shader,
                   std::string_view variant);
// For kernels whose ways suit GPUs alone.
double prefer_on_gpu(const LowerContext& context);

// What the kernels share whose lanes want the same rows (shaders/lib/rows.glsl): where the device's loops
// gather, the variant with lanes that hand each other what they loaded, and the subgroup's size that it
// needs, which is their workgroup's; elsewhere `variant` itself, and any subgroup.
std::string shared_rows_variant(const Capabilities& device, std::string variant);
uint32_t shared_rows_subgroup(const Capabilities& device);

// What a kernel with several tiles needs for KernelDef::configurations and for its `lower`; `shapes` are
// those that fit, the best first, and each has a name().
template <typename Shape>
std::vector<std::string> names_of(const std::vector<Shape>& shapes) {
  std::vector<std::string> names;
  for (const Shape& shape : shapes) names.push_back(shape.name());
  return names;
}
template <typename Shape>
const Shape& configured(const LowerContext& context, const std::vector<Shape>& shapes) {
  if (context.configuration().empty()) return shapes.at(0);
  for (const Shape& shape : shapes) {
    if (shape.name() == context.configuration()) return shape;
  }
  throw Error(ErrorCode::usage, std::string(context.node().op->name) + " '" + context.node().name +
                                    "' has no configuration '" + std::string(context.configuration()) + "'");
}

// True for the dtypes that arithmetic operators store: f32 and f16.
inline bool is_computable(DType dtype) { return dtype == DType::f32 || dtype == DType::f16; }

}  // namespace vitrine

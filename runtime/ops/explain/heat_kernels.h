// What the operators share that end in shaders/lib/heat.glsl.
#pragma once

#include <optional>
#include <string>

#include "runtime/ops/explain/heat.h"

namespace vitrine {

// The attributes first, height and width as set_heat_grid() left them.
void set_heat_grid(Attributes& attributes, const HeatGrid& grid);
HeatGrid heat_grid_of(const Attributes& attributes);

// Requires choice and colors, the inputs from number `choice` on, and `tokens` enough for the grid; declares
// the outputs.
void infer_heat(InferContext& context, size_t choice, uint64_t tokens, uint64_t maps);

// How many pixels, times the arithmetic of one.
double heat_flops(const LowerContext& context);

// The reason why a map's numbers don't fit into the device's shared memory.
std::optional<std::string> refuse_heat(const LowerContext& context);

// Workgroups, and the constants that both kernels have.
void set_heat_groups(const LowerContext& context, Dispatch& dispatch);

}  // namespace vitrine

// Patch embeddings on devices that are a CPU: KernelDef's functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

namespace patch_embed_input {
constexpr uint32_t image_input = 0, weight_input = 1, bias_input = 2;
}

// cpu_direct: patches are packed as rows of a product.
std::optional<std::string> refuse_patch_direct(const LowerContext& context);
Lowered lower_patch_direct(const LowerContext& context);
std::vector<std::string> patch_direct_configurations(const LowerContext& context);

// cpu_chunks: the same with K in chunks.
std::optional<std::string> refuse_patch_chunks(const LowerContext& context);
Lowered lower_patch_chunks(const LowerContext& context);
std::vector<std::string> patch_chunks_configurations(const LowerContext& context);

// cpu_in_place: chunks of patches where they lie (shaders/tokens/cpu/patch_embed_cpu_chunk.comp).
std::optional<std::string> refuse_patch_in_place(const LowerContext& context);
double prefer_patch_in_place(const LowerContext& context);
Lowered lower_patch_in_place(const LowerContext& context);

}  // namespace vitrine

// The part of a step that does to pictures' bytes what was drawn for them.
#pragma once

#include <string_view>

#include "runtime/graph/graph.h"
#include "train/data/picture_augmentation.h"

namespace vitrine {

// The input that says it, [B, operations, VITRINE_OPERATION_WORDS] u32.
inline constexpr std::string_view operations_input = "operations";

// Declares it, and gives the pictures [B, H, W] u32 after all operations.
ValueId append_picture_operations(Graph& graph, const PictureAugmentation& augmentation, ValueId pictures);

}  // namespace vitrine

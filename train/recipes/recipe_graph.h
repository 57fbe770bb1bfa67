// The parts of a step that a recipe adds: mixing and erasing in front of the model, other losses behind it.
#pragma once

#include <cstdint>
#include <optional>

#include "model/vit/graph_builder.h"
#include "runtime/graph/executable.h"
#include "train/data/batch_parts.h"
#include "train/recipes/teacher.h"
#include "train/train_config.h"

namespace vitrine {

// The names of the step's inputs that a recipe adds where it has a use for them.
//   mixing        [B, VITRINE_MIX_WORDS] u32 (shaders/training/mix_samples.h)
//   other_labels  [B] u32, the partners'; with shares [B] and other_shares [B] f32
//   erasing       [B, boxes, VITRINE_BOX_WORDS] u32 (shaders/training/erase_boxes.h)
inline constexpr std::string_view mixing_input = "mixing", other_labels_input = "other_labels",
                                  shares_input = "shares", other_shares_input = "other_shares",
                                  erasing_input = "erasing";

// What the model is shown instead of the images: with boxes erased, then mixed. The images where neither is
// on.
ValueId append_mixing(GraphBuilder& builder, const TrainConfig& config, ValueId images);

// What the losses are made of.
struct Answers {
  ValueId result;  // for the labels: the model's own result, or with a teacher its class head's
  ValueId for_teacher, of_teacher;  // logits; none without a teacher
};
// What the model answers, and its teacher, where there is one.
Answers append_models(GraphBuilder& builder, const TrainConfig& config,
                      const std::optional<TeacherModel>& teacher, ValueId images);
// Each sample's loss, [B], not weighted.
ValueId append_losses(Graph& graph, const TrainConfig& config, const Answers& answers, ValueId labels);

// What of a batch a step works on: all of it, or one of its parts.
struct PartOfBatch {
  uint64_t samples = 0;        // its own
  uint64_t batch_samples = 0;  // the batch's
  uint64_t number = 0;         // of the part, from 0
  BatchParts parts = {};
};

// Fills what append_mixing() and append_losses() have added, for a batch that is number `pass`: it is mixed
// and erased as it is whole. "labels" has been filled.
void write_recipe_inputs(Executable& step, uint32_t set, const TrainConfig& config, uint64_t pass,
                         const PartOfBatch& part);

}  // namespace vitrine

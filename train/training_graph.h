// The graphs of training: one step with forward pass, loss, derivatives and update, and what testing needs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "model/pictures/picture_input.h"
#include "runtime/graph/graph.h"
#include "train/parameter_layout.h"
#include "train/recipes/teacher.h"
#include "train/train_config.h"

namespace vitrine {

// What a step and a test are given of pictures.
enum class StepImages : uint8_t {
  numbers,  // input "image" [B, C, H, W] f32
  // Inputs "bytes", planes one after the other with four bytes a word, and "values" [C, 256] f32 with what
  // each byte becomes.
  bytes,
  // The state "pictures" [B, H, W] u32, which make_picture_graph() fills, and "values".
  pictures,
};
inline constexpr std::string_view pictures_buffer = "pictures";
// What of those a graph is given: pictures that the host resizes and changes are numbers when they come.
constexpr StepImages given_images(StepImages images, bool on_host) {
  return images == StepImages::pictures && on_host ? StepImages::numbers : images;
}

// Inputs: those of StepImages, "labels" [B] u32, "weights" [B] f32 with which each sample's loss counts,
// "step" (shaders/lib/step_state.h), and what a recipe (train/recipes/recipe_graph.h) and, of pictures, an
// augmentation need (train/augmentation_graph.h). Output: "losses"
// [B], not weighted. States: the buffers of a ParameterLayout; parameters that it hasn't are constants. The
// gradients of the weighted sum of losses are stored in theirs; with `update`, the parameters are updated
// too, unless a gradient is not finite, and there is an output "clipping" [2]: by how much the gradients were
// clipped, and their norm, both NaN where there was no update. The state updates_buffer, u32 [1], counts the
// updates that Adam has made.
struct StepGraphOptions {
  bool update = true;
  bool recompute = false;  // a block's values are computed again for its derivative instead of being kept
  StepImages images = StepImages::numbers;
  // In place of the images there is "features" [B, width]: what make_features_graph() gives.
  bool from_features = false;
  std::optional<TeacherModel> teacher = {};  // of a training with distillation
};
std::shared_ptr<const Graph> make_step_graph(const TrainConfig& config, const ParameterLayout& layout,
                                             const StepGraphOptions& options = {});

// A step's forward pass alone, of nodes that plain_graph() makes, up to the output "losses". With `rounded`
// its nodes say so where f16 may be used (MatmulOptions::rounded), whatever the configuration asks for.
Graph make_forward_graph(const TrainConfig& config, const ParameterLayout& layout,
                         const StepGraphOptions& options, bool rounded);

// The same for gradients that several batches add up to: "sums" begins as, or adds, what the last step has
// stored, and the update takes it. "clipping" is that graph's output.
inline constexpr std::string_view sums_buffer = "sums", updates_buffer = "updates";
std::shared_ptr<const Graph> make_first_sum_graph(const ParameterLayout& layout);
std::shared_ptr<const Graph> make_add_sum_graph(const ParameterLayout& layout);
std::shared_ptr<const Graph> make_update_graph(const TrainConfig& config, const ParameterLayout& layout);
// The gradients that the last step has stored as an output, "gradients", for whoever adds them up elsewhere.
std::shared_ptr<const Graph> make_gradients_graph(const ParameterLayout& layout);

// The buffer of the parameters that a training results in, which are tested and saved: the average, where
// there is one.
std::string_view result_buffer(const TrainConfig& config);

// From the images to what the model's heads see of it, "features" [B,
// VisionTransformer::head_inputs_width()]. Nothing is dropped.
std::shared_ptr<const Graph> make_features_graph(const TrainConfig& config, const ParameterLayout& layout,
                                                 uint64_t batch, StepImages images = StepImages::numbers);

// From the images to the model's own result, "result" [B, classes]. The parameters that are trained are
// states, in result_buffer().
std::shared_ptr<const Graph> make_test_graph(const TrainConfig& config, const ParameterLayout& layout,
                                             uint64_t batch, StepImages images = StepImages::numbers);

// From pictures of any size to the state "pictures": the nodes with which a model looks at pictures.
std::shared_ptr<const Graph> make_picture_graph(const TrainConfig& config, const PictureCapacity& capacity);

}  // namespace vitrine

// Which pictures a model is shown: their preprocessing, and the size that comes of it.
#pragma once

#include <cstdint>
#include <string>

#include "model/files/weights.h"

namespace vitrine {

// Throws Error(bad_file) naming the model unless pictures can be shown to it: it has 1 or 3 channels, and
// preprocessing that can be followed. What isn't done to the letter is said, also that pictures lose their
// shape unless they are shown to it in that.
void require_pictures(const Model& model, const Warn& warn = {}, bool in_their_shape = false);

// Its preprocessing for who takes pictures of one size alone; where they keep their shape `warn` is told.
Preprocess stretched_pictures(const Model& model, const Warn& warn);

// The preprocessing that was named, else what the model's files ask for, and the size of images that config,
// weights and preprocessing share: a part of opening a model. `whole_patches` as Family has it.
void decide_pictures(Model& model, const ModelOptions& options, bool whole_patches, const Warn& warn);

// "224x320", the height first.
std::string sides(uint64_t height, uint64_t width);

}  // namespace vitrine

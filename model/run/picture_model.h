// A model that is shown pictures: with the preprocessing that it gets.
#pragma once

#include <string_view>

#include "model/files/weights.h"
#include "model/pictures/preprocess.h"
#include "runtime/vk/capabilities.h"

namespace vitrine {

struct PictureModel {
  Model model;
  Preprocess preprocess;
};

// `profile` names the preprocessing; empty: what the model's files ask for. An image size in the options
// decides the size, else that preprocessing does, and the model is opened for it: published models may be
// shown pictures of another size than they were trained with. Throws what open_model() and
// require_picture_channels() throw.
PictureModel open_picture_model(const ModelOptions& options, std::string_view profile = {},
                                const Warn& warn = {});

// Throws Error(bad_file) naming the model unless it has 1 or 3 channels.
void require_picture_channels(const Model& model);

// "f32", "f16" or "auto" for this device; auto is f32. Throws Error(usage) where the device can't store
// 16 bits.
DType storage_type(std::string_view name, const Capabilities& device);

}  // namespace vitrine

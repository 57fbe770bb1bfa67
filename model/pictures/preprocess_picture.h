// One picture through preprocessing alone, on the device: to look at what a model would be given.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/pictures/picture_input.h"
#include "runtime/graph/pipeline_store.h"

namespace vitrine {

// Resized and cropped, before any scaling: [height, width, channels].
std::vector<uint8_t> resized_picture(PipelineStore& pipelines, const Preprocess& preprocess,
                                     uint64_t channels, Picture picture, const std::string& name);

// What the model is given: [channels, height, width].
std::vector<float> preprocessed_picture(PipelineStore& pipelines, const Preprocess& preprocess,
                                        uint64_t channels, Picture picture, const std::string& name);

}  // namespace vitrine

// A model, however it was made, on a data set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "model/files/weights.h"
#include "model/run/picture_runner.h"
#include "train/data/dataset.h"
#include "train/test_result.h"

namespace vitrine {

// The data set with pictures as the model takes them: where they have no size of their own, the preprocessing
// of the model says how they get it.
std::unique_ptr<Dataset> open_evaluation_set(const Model& model, const std::filesystem::path& folder,
                                             Split split);

// Of the model's own result, which `take` is told sample by sample: pictures go the way that they go for
// classify. `progress` is told how many samples are done.
TestResult evaluate_on(PipelineStore& pipelines, const Model& model, const Dataset& data,
                       const PictureRunnerOptions& options,
                       const std::function<void(uint64_t)>& progress = {}, const TakeResults& take = {});

}  // namespace vitrine

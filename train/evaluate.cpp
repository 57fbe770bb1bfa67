#include "train/evaluate.h"

#include <utility>
#include <vector>

#include "model/files/model_pictures.h"
#include "train/data/batch_loader.h"

namespace vitrine {

std::unique_ptr<Dataset> open_evaluation_set(const Model& model, const std::filesystem::path& folder,
                                             Split split) {
  require_pictures(model);
  const ViTConfig& c = model.config;
  // Each picture is read once.
  DatasetOptions options{
      .classes = static_cast<uint32_t>(c.classes), .preprocess = model.preprocess, .kept_bytes = 0};
  options.shape = {static_cast<uint32_t>(c.channels), static_cast<uint32_t>(c.image_height),
                   static_cast<uint32_t>(c.image_width)};
  return open_dataset(folder, split, options);
}

TestResult evaluate_on(PipelineStore& pipelines, const Model& model, const Dataset& data,
                       const PictureRunnerOptions& options, const std::function<void(uint64_t)>& progress,
                       const TakeResults& take) {
  TestSums sums;
  PictureRunner runner(pipelines, model, model.preprocess, options,
                       [&](uint64_t number, std::span<const float> result) {
                         const uint32_t label = data.label(number);
                         sums.add(result, {&label, 1});
                         if (take) take(result, {&label, 1});
                         if (progress) progress(sums.samples());
                       });
  const auto batch = static_cast<uint32_t>(runner.batch());
  BatchLoader loader(
      data,
      {.batch_size = batch, .pictures = true, .shuffle = false, .end_epoch = 1, .largest = runner.largest()});
  std::vector<uint32_t> labels(batch);
  while (loader.next([&](PicturePart part) { runner.add(std::move(part)); }, labels)) {
  }
  runner.finish();
  return sums.result();
}

}  // namespace vitrine

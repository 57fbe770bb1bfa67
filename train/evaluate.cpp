#include "train/evaluate.h"

#include <algorithm>
#include <vector>

#include "train/data/batch_loader.h"

namespace vitrine {
std::unique_ptr<Dataset> open_evaluation_set(const Model& model, const std::filesystem::path& folder,
                                             Split split) {
  require_pictures(model);
  const ViTConfig& c = model.config;
  DatasetOptions options{.classes = static_cast<uint32_t>(c.classes), .preprocess = model.preprocess};
  options.shape = {static_cast<uint32_t>(c.channels), static_cast<uint32_t>(c.image_height),
                   static_cast<uint32_t>(c.image_width)};
  return open_dataset(folder, split, options);
}

TestResult evaluate_on(Runner& runner, const Model& model, const Dataset& data, uint64_t batch,
                       const std::function<void(uint64_t)>& progress) {
  BatchLoader loader(data, {.batch_size = static_cast<uint32_t>(batch),
                            .shuffle = false,
                            .values = model.preprocess.values(model.config.channels),
                            .end_epoch = 1});
  std::vector<float> images(batch * runner.image_elements());
  std::vector<uint32_t> labels(batch);
  TestSums sums;
  while (const std::optional<Batch> made = loader.next(images, labels)) {
    const std::vector<float> results =
        runner.run(std::span(images).first(made->size * runner.image_elements()), batch);
    sums.add(results, std::span(labels).first(made->size));
    if (progress) progress(sums.samples());
  }
  return sums.result();
}

}  // namespace vitrine

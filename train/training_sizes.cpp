#include <algorithm>

#include "model/vit/vision_transformer.h"
#include "train/run/feature_cache.h"
#include "train/run/training_run.h"
#include "train/trained_parameters.h"

namespace vitrine {
namespace {

// More than this isn't taken of the host's memory for features: those of 1.3 million pictures for a width of
// 768.
constexpr uint64_t most_feature_bytes = uint64_t{4} << 30;

}  // namespace

StepImages images_of(const Dataset& data, const TrainConfig& config) {
  return data.preprocess() || config.random_resized_crop || config.augmentation.on() ? StepImages::pictures
                                                                                     : StepImages::bytes;
}

bool trains_on_features(const TrainConfig& config, const Dataset& data) {
  const uint64_t width = VisionTransformer(config.model).head_inputs_width();
  return trains_on_fixed_features(config) && FeatureCache::bytes(data.count(), width) <= most_feature_bytes;
}

uint64_t total_updates(const TrainConfig& config, uint64_t samples) {
  const uint64_t batches = (samples + config.batch_size - 1) / config.batch_size;
  return config.epochs * ((batches + config.accumulation - 1) / config.accumulation);
}

bool pictures_on_host(const TrainingOptions& options, const Device& device) {
  if (options.pictures_on_host) return *options.pictures_on_host;
  if (options.devices.empty()) return prepares_on_host(device.capabilities());
  return std::ranges::all_of(
      options.devices, [](PipelineStore* one) { return prepares_on_host(one->device().capabilities()); });
}

LoaderOptions plain_loading(const TrainConfig& config, StepImages images, const PictureCapacity& largest,
                            bool on_host) {
  LoaderOptions options{.batch_size = static_cast<uint32_t>(config.batch_size),
                        .pictures = images == StepImages::pictures,
                        .seed = config.seed};
  if (options.pictures) {
    options.largest = largest;
    options.on_host = on_host;
  }
  return options;
}

LoaderOptions step_loading(const TrainConfig& config, StepImages images, const PictureCapacity& largest,
                           bool on_host) {
  LoaderOptions options = plain_loading(config, images, largest, on_host);
  options.balanced = config.recipe.sampling == Sampling::balanced;
  options.repeats = config.recipe.repeats;
  options.augmentation = {.crop_padding = static_cast<uint32_t>(config.crop_padding),
                          .flip = config.flip,
                          .resized_crop = config.random_resized_crop,
                          .operations = config.augmentation,
                          .fill = fill_of_mean(preprocessing_of(config).mean)};
  options.end_epoch = static_cast<uint32_t>(config.epochs);
  return options;
}

DatasetOptions dataset_options(const TrainConfig& config) {
  const ViTConfig& c = config.model;
  return {.shape = {static_cast<uint32_t>(c.channels), static_cast<uint32_t>(c.image_height),
                    static_cast<uint32_t>(c.image_width)},
          .classes = static_cast<uint32_t>(c.classes),
          .preprocess = preprocessing_of(config)};
}

}  // namespace vitrine

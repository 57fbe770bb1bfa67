#include "apps/desktop/training_samples.h"

#include <cstdint>
#include <span>

namespace vitrine::desktop {
namespace {

std::vector<uint8_t> rgba_of(std::span<const uint8_t> planes, const SampleShape& shape) {
  const size_t pixels = size_t{shape.height} * shape.width;
  std::vector<uint8_t> result(4 * pixels, 255);
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t channel = 0; channel < 3; ++channel)
      result[4 * i + channel] = planes[(shape.channels >= 3 ? channel : 0) * pixels + i];
  }
  return result;
}

}  // namespace

const std::vector<TexturePointer>& TrainingSamples::of(const TrainingState& state) {
  samples_.resize(state.samples.size());
  shown_.resize(state.samples.size());
  for (size_t i = 0; i < samples_.size(); ++i) {
    const auto& pixels = state.samples[i].pixels;
    if (shown_[i] == pixels && samples_[i]) continue;
    shown_[i] = pixels;
    samples_[i] = textures_.make_or_keep(samples_[i], state.shape.width, state.shape.height, Sampling::sharp);
    textures_.write(samples_[i], rgba_of(*pixels, state.shape));
  }
  return samples_;
}

}  // namespace vitrine::desktop

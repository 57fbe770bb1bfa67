#include "apps/desktop/training_samples.h"

namespace vitrine::desktop {
const std::vector<TexturePointer>& TrainingSamples::of(const TrainingState& state) {
  samples_.resize(state.samples.size());
  shown_.resize(state.samples.size());
  for (size_t i = 0; i < samples_.size(); ++i) {
    const auto& pixels = state.samples[i].pixels;
    if (shown_[i] == pixels && samples_[i]) continue;
    shown_[i] = pixels;
    samples_[i] = textures_.make_or_keep(samples_[i], state.shape.width, state.shape.height, Sampling::sharp);
    textures_.write(samples_[i], pixels_of(*pixels, state.shape));
  }
  return samples_;
}

}  // namespace vitrine::desktop

// The test pictures of a training as textures.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "apps/desktop/engine/training_session.h"
#include "apps/desktop/gpu/texture.h"

namespace vitrine::desktop {

class TrainingSamples {
 public:
  explicit TrainingSamples(TextureStore& textures) : textures_(textures) {}

  // One a sample of the state, in the same order; once a frame.
  const std::vector<TexturePointer>& of(const TrainingState& state);

 private:
  TextureStore& textures_;
  std::vector<TexturePointer> samples_;
  std::vector<std::shared_ptr<const std::vector<uint8_t>>> shown_;  // what the textures hold
};

}  // namespace vitrine::desktop

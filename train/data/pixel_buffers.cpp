#include "train/data/pixel_buffers.h"

#include <utility>

namespace vitrine {
namespace {

// More than threads decode at once on most machines, and little memory of photographs.
constexpr size_t most_free = 32;

}  // namespace

std::vector<uint8_t> PixelBuffers::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return {};
  std::vector<uint8_t> buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

std::shared_ptr<const Picture> PixelBuffers::share(Picture picture) {
  auto held = std::make_unique<Picture>(std::move(picture));
  return {held.release(), [buffers = shared_from_this()](Picture* done) {
            buffers->give(std::move(done->pixels));
            delete done;
          }};
}

void PixelBuffers::give(std::vector<uint8_t> buffer) {
  const std::lock_guard lock(mutex_);
  if (free_.size() < most_free) free_.push_back(std::move(buffer));
}

}  // namespace vitrine

#include "train/picture_feed.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/util/error.h"
#include "train/training_graph.h"

namespace vitrine {

bool prepares_on_host(const Capabilities& device) { return device.type == DeviceType::cpu; }

PictureFeed::PictureFeed(PipelineStore& pipelines, WeightStore& weights, StateStore& states,
                         TrainConfig config, PlanOptions plan, uint64_t pixels_at_once, bool on_host,
                         HandOver hand_over)
    : pipelines_(pipelines),
      weights_(weights),
      states_(states),
      config_(std::move(config)),
      preprocess_(preprocessing_of(config_)),
      plan_(std::move(plan)),
      on_host_(on_host),
      hand_over_(std::move(hand_over)),
      values_(preprocess_.values(config_.model.channels)),
      largest_(PictureCapacity::largest(pipelines.device().capabilities(), preprocess_.width())),
      usual_(largest_),
      operations_(config_.batch_size * config_.augmentation.operations() * VITRINE_OPERATION_WORDS) {
  usual_.pixels = std::min(usual_.pixels, pixels_at_once);
  // The words of pictures that are none are in every table. A picture has no more than this beside its own.
  const uint64_t none = config_.batch_size * resample_needs({}).words;
  if (none >= largest_.words) {
    throw Error(ErrorCode::usage, "a batch of " + std::to_string(config_.batch_size) +
                                      " pictures is more than the device can be given at once");
  }
  usual_.words -= none;
  largest_.words -= none;
}

void PictureFeed::add(PicturePart part) {
  if (first_ + pending_.size() >= config_.batch_size)
    throw Error(ErrorCode::usage, "more pictures than a batch has were given to a training");
  if (on_host_) return add_ready(*part.picture);
  const ResampleNeeds needs = resample_needs(part.prepared.resample);
  ResampleNeeds together = pending_needs_;
  together += needs;
  if (!pending_.empty() && !usual_.holds(together)) {
    submit();
    together = needs;
  }
  const uint64_t words = operations_.size() / config_.batch_size;
  const auto own = std::span(operations_).subspan((first_ + pending_.size()) * words, words);
  std::ranges::fill(own, 0u);
  std::ranges::copy(part.operations, own.begin());
  pending_.push_back(std::move(part));
  pending_needs_ = together;
}

void PictureFeed::flush() {
  if (on_host_) return complete();
  while (first_ + pending_.size() < config_.batch_size) add({nullptr, blank_picture(preprocess_)});
  submit();
  first_ = 0;
}

void PictureFeed::submit() {
  ResampleNeeds needs = pending_needs_;
  needs.words += (config_.batch_size - pending_.size()) * resample_needs({}).words;
  Executable& executable = recording(needs);
  executable.wait(set_);
  write_resized_input(executable, set_, pending_, config_.batch_size, first_);
  hand_over_(executable, set_);
  set_ = (set_ + 1) % Executable::io_sets;
  first_ += pending_.size();
  pending_.clear();
  pending_needs_ = {};
}

// As pixel_values has it, from the same table.
void PictureFeed::write(uint64_t place, const Picture& picture) {
  const uint64_t pixels = uint64_t{picture.width} * picture.height, channels = config_.model.channels;
  float* const to = images_.subspan(place * channels * pixels, channels * pixels).data();
  for (uint64_t c = 0; c < channels; ++c) {
    const float* const values = values_.data() + c * 256;
    const uint8_t* const bytes = picture.pixels.data() + c;
    for (uint64_t i = 0; i < pixels; ++i) to[c * pixels + i] = values[bytes[4 * i]];
  }
}

void PictureFeed::add_ready(const Picture& picture) {
  if (picture.width != preprocess_.width() || picture.height != preprocess_.height())
    throw Error(ErrorCode::usage, "a picture that isn't ready was given to a training that resizes none");
  write(first_++, picture);
}

// What the batch lacks of its size is blank.
void PictureFeed::complete() {
  if (first_ < config_.batch_size) {
    const std::vector<uint32_t> pixels(preprocess_.width() * preprocess_.height(),
                                       blank_picture(preprocess_).resample.fill);
    const Picture blank = picture_of(pixels, static_cast<uint32_t>(preprocess_.width()));
    while (first_ < config_.batch_size) write(first_++, blank);
  }
  first_ = 0;
}

Executable& PictureFeed::recording(const ResampleNeeds& needs) {
  if (recording_ && capacity_.holds(needs)) return *recording_;
  // What it held once it will be asked to hold again.
  ResampleNeeds most = needs;
  if (recording_) {
    most.pixels = std::max(most.pixels, capacity_.pixels);
    most.blocks = std::max(most.blocks, capacity_.blocks);
    most.words = std::max(most.words, capacity_.words);
  }
  PictureCapacity limit = largest_;
  limit.words += config_.batch_size * resample_needs({}).words;
  capacity_ = PictureCapacity::covering(most, limit);
  recording_.reset();  // its memory first
  recording_ = std::make_unique<Executable>(
      weights_, make_plan(make_picture_graph(config_, capacity_), pipelines_.device().capabilities(), plan_),
      &states_);
  set_ = 0;
  return *recording_;
}

}  // namespace vitrine

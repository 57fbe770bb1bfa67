// Pictures of any size on their way to a training's steps: the device resizes them into a state, some at a
// time, while others are still decoded. Where the device is the host itself, who decodes them resizes them,
// too, and they become a step's numbers here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/pictures/picture_input.h"
#include "runtime/graph/executable.h"
#include "runtime/graph/pipeline_store.h"
#include "runtime/graph/state_store.h"
#include "train/train_config.h"

namespace vitrine {

// Whether pictures are best resized, and changed by chance, by the threads that decode them: a software
// driver's loads are several times as expensive as the host's own.
bool prepares_on_host(const Capabilities& device);

class PictureFeed {
 public:
  // Has the device run a recording with what lies in one of its sets.
  using HandOver = std::function<void(Executable&, uint32_t set)>;

  // With `on_host` all pictures are ready when they come, of the model's size, and their numbers go where
  // write_to() says; else the device is given so many pixels at once, and a picture that has more alone. All
  // have to outlive this. `states` must have the buffer "pictures" by the first flush() then.
  PictureFeed(PipelineStore& pipelines, WeightStore& weights, StateStore& states, TrainConfig config,
              PlanOptions plan, uint64_t pixels_at_once, bool on_host, HandOver hand_over);

  // What one picture may need; what needs more is resized by part_of() on the host.
  const PictureCapacity& largest() const { return largest_; }
  // Where the batch's numbers go, [B, C, H, W]; to be said before its first picture.
  void write_to(std::span<float> images) { images_ = images; }
  // The batch's next picture.
  void add(PicturePart part);
  // The batch is complete; what it lacks of its size becomes blank. The next picture is the next batch's
  // first.
  void flush();
  // What is to be done to the last batch's pictures once they are resized: the words of
  // config.augmentation.operations() operations each.
  std::span<const uint32_t> operations() const { return operations_; }

 private:
  void submit();
  void write(uint64_t place, const Picture& picture);
  void add_ready(const Picture& picture);
  void complete();
  Executable& recording(const ResampleNeeds& needs);

  PipelineStore& pipelines_;
  WeightStore& weights_;
  StateStore& states_;
  TrainConfig config_;
  Preprocess preprocess_;
  PlanOptions plan_;
  bool on_host_;
  HandOver hand_over_;
  std::vector<float> values_;  // what bytes become
  std::span<float> images_;
  PictureCapacity largest_, usual_;

  std::vector<PicturePart> pending_;
  ResampleNeeds pending_needs_;
  uint64_t first_ = 0;  // the number of the first of them in the batch
  std::vector<uint32_t> operations_;

  PictureCapacity capacity_;  // of the recording
  std::unique_ptr<Executable> recording_;
  uint32_t set_ = 0;
};

}  // namespace vitrine

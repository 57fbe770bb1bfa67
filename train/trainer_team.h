// The trainers of a training: one alone, or one a device. Several share the parts of each batch
// (batch_parts.h). The host adds the gradients up in the order of the parts, the first device makes the
// update by the sum, and the others get its parameters. So neither the number of devices nor which of them
// had a part changes a bit, as long as they compute alike, and no two ever differ in what they hold.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/trainer.h"

namespace vitrine {

// sums = part, or sums + part, number by number, on several threads where that pays.
void add_gradients(std::span<float> sums, std::span<const float> part, bool first);

class TrainerTeam {
 public:
  // `devices` are those of a training on several, which may be a single one; empty: the trainer is alone, on
  // `pipelines`.
  TrainerTeam(PipelineStore& pipelines, std::span<PipelineStore* const> devices, const TrainConfig& config,
              uint64_t total_updates, const TrainerOptions& options);

  // That of the updates, which has all that a training comes to.
  Trainer& first() { return *trainers_.front(); }
  const Trainer& first() const { return *trainers_.front(); }
  // What each of the devices takes of a picture.
  PictureCapacity largest_picture() const;

  // The one that the next part, or batch, goes to: its slot is free.
  Trainer& next();
  // Has it work on what was put there. After an update's last part the update is made.
  void submit(const PartShare& share);
  // As Trainer's.
  void take_results(std::vector<BatchResult>& into);
  void finish();

 private:
  bool alone() const { return sums_.empty(); }
  void take_part();
  void bring_up_to_date();
  template <typename Work>
  auto on(size_t device, const Work& work);

  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<std::string> names_;
  size_t next_ = 0;
  bool up_to_date_ = false;  // all have the first one's parameters
  // Of the update under way.
  struct Part {
    size_t device;
    PartShare share;
  };
  std::vector<Part> parts_;  // that were submitted
  size_t taken_ = 0;         // of them
  std::vector<float> sums_, parameters_;
  double loss_sum_ = 0;  // of the batch that parts are taken of
  uint64_t samples_ = 0;
  std::vector<BatchResult> results_;
};

}  // namespace vitrine

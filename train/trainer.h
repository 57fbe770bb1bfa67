// A model while it is learned: its parameters and moments on the device, and the recorded steps that change
// them. Of files it knows a teacher's alone, and nothing of data sets.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/executable.h"
#include "runtime/graph/pipeline_store.h"
#include "runtime/graph/state_store.h"
#include "train/data/batch_parts.h"
#include "train/parameter_layout.h"
#include "train/picture_feed.h"
#include "train/recipes/teacher.h"
#include "train/test_result.h"
#include "train/train_config.h"
#include "train/training_graph.h"

namespace vitrine {

// What a Trainer has of a training (trainer_team.h).
enum class TrainerRole : uint8_t {
  alone,   // all of it
  first,   // the updates, by sums of gradients that it is given, and steps
  helper,  // steps alone: its parameters have to be brought up to date
};

struct TrainerOptions {
  StepImages images = StepImages::numbers;
  // Of pictures: enough for a hundred small photographs, so that the device is busy with some of a batch
  // while the host decodes and copies others.
  uint64_t pixels_at_once = uint64_t{1} << 24;
  // Pictures come ready, resized and changed; left out, where the device is the host itself.
  std::optional<bool> pictures_on_host = {};
  bool recompute = false;  // see StepGraphOptions
  PlanOptions plan = {};   // as vitrine tune left the device, where it holds no choices of its own
  // Where a step is too long for one submission, it is asked between two: with "no" the step is left
  // unfinished, Interrupted is thrown, and what the parameters hold then means nothing. Others who share the
  // device's queue get their turn between two submissions. Left out: all are handed over at once.
  std::function<bool()> go_on = {};
  // Asked while the steps are compiled, and with the first test what tests; after a "no" Interrupted is
  // thrown.
  GoOn preparing = {};
  // Where the parameters that aren't trained come from, for as long as the Trainer lives; left out, they are
  // drawn from the configuration's seed.
  ConstantSource* frozen = nullptr;
  // The step begins with what the heads see, which features() gives and feature_slot() takes.
  bool from_features = false;
  TrainerRole role = TrainerRole::alone;
};

// What is submitted of an update.
struct PartShare {
  uint64_t samples = 0;        // of the batch, or of the part of it
  uint64_t group_samples = 0;  // of all of the update
  bool last = false;           // of the update's
  uint64_t part = 0;           // its number in the batch
  uint64_t batch_samples = 0;  // of the batch; 0: it is all of it
  bool ends_batch = true;
};

// What a part gave, for whoever adds it up.
struct PartResult {
  uint64_t samples = 0;
  std::span<const float> gradients;  // of the sum that the update is made by; until the next submit_part()
};

// What a training has come to, besides the buffers.
struct TrainerCounts {
  uint64_t updates = 0;  // where the schedule is: the left out ones count
  uint64_t passes = 0;   // batches; several an update with accumulation
  uint64_t skipped = 0;  // updates that were left out, because a gradient was not finite
  bool operator==(const TrainerCounts&) const = default;
};

// What the update behind a batch gave.
struct UpdateResult {
  double gradient_norm = 0;  // before clipping; NaN where the update was left out
  bool skipped() const { return std::isnan(gradient_norm); }
};

// What one batch gave.
struct BatchResult {
  double loss = 0;  // the mean over its samples
  uint64_t samples = 0;
  std::optional<UpdateResult> update = {};  // of the last batch of a group
};

class Trainer {
 public:
  // `total_updates` is what the learning rate's schedule is made for. The pipelines have to outlive this. Of
  // batches that are cut, it works on parts: config() is that of a part.
  Trainer(PipelineStore& pipelines, TrainConfig config, uint64_t total_updates,
          const TrainerOptions& options = {});
  ~Trainer();

  const TrainConfig& config() const { return config_; }
  const ParameterLayout& layout() const { return layout_; }
  StepImages images() const { return images_; }
  // What a picture may need, of a trainer that is given pictures; one that needs more is resized before.
  const PictureCapacity& largest_picture() const { return pictures_->largest(); }
  // Whether pictures have to come ready (LoaderOptions::on_host).
  bool pictures_on_host() const { return on_host_; }
  const Plan& step_plan() const { return step_->plan(); }
  // Whether the step has a product of what f16 keeps of its operands. Where the configuration's precision is
  // f16 and this is false, the device has nothing that it would be faster on.
  bool rounds() const;
  // `skipped` is that of the results that are there to be taken.
  const TrainerCounts& counts() const { return counts_; }

  // Takes the trained parameters from `weights`, whatever type they are stored as; moments and counts begin
  // at 0.
  void initialize(ConstantSource& weights);
  // Of the model that the training has come to, each learned parameter, trained or not: result_buffer().
  // Finishes first.
  std::vector<float> parameter(const Parameter& parameter);

  // Tells the bases of adapters apart, see model/files/adapter.h. Of a training with LoRA.
  uint64_t base_checksum() const;

  // Where the next batch goes: [samples, C, H, W] numbers or bytes, or pictures one after the other, as
  // TrainerOptions::images says, and as many labels. Waits until the device has read what was there.
  struct Slot {
    std::span<float> images;
    std::span<uint8_t> bytes;
    PictureFeed* pictures = nullptr;
    std::span<uint32_t> labels;
    // How much each sample's loss counts, of a step's slot: 1 unless it is written to. The losses that are
    // told are without.
    std::span<float> weights = {};
  };
  Slot slot();
  // The same for a step that begins with features [samples, VisionTransformer::head_inputs_width()].
  struct FeatureSlot {
    std::span<float> features;
    std::span<uint32_t> labels;
  };
  FeatureSlot feature_slot();
  // Has the device work on what was put into slot(), of which the first `samples` count. An update follows
  // when `last`, with the gradient of the mean loss of the `group_samples` samples since the update before.
  // It is left out where that is not finite: parameters, moments and Adam's count stay as they are. Returns
  // at once.
  void submit(uint64_t samples, uint64_t group_samples, bool last) {
    submit(PartShare{.samples = samples, .group_samples = group_samples, .last = last});
  }
  void submit(const PartShare& share);
  // Replaces what `into` holds by what finished since the last call, in the order of submission. Losses come
  // a batch or two later, so that the device never waits for the host; after finish() nothing is left to
  // come.
  void take_results(std::vector<BatchResult>& into);
  void finish();
  // For those who aren't alone: the same without an update, as part of the training's batch number `pass`. As
  // many may be under way as there are sets of inputs; take_part() waits for the oldest, and
  // adds the losses of its samples.
  void submit_part(const PartShare& share, uint64_t pass);
  PartResult take_part(double& loss_sum);
  uint64_t parts_under_way() const { return open_parts_.size(); }
  // The update by the sum of all gradients, [layout().elements]. Waits for it.
  UpdateResult update(std::span<const float> sums);
  void count_pass() { ++counts_.passes; }

  // Runs the step of what lies in the first slot once more, with the device's own clock. It updates the
  // parameters and is not counted: for measuring alone.
  Profile profile_step();

  // Has `fill` write one batch after the other until it gives no number of samples. `take` is told of every
  // batch. Parameters and moments stay as they are.
  using Fill = std::function<std::optional<uint64_t>(const Slot&)>;
  TestResult test(const Fill& fill, const TakeResults& take = {});
  // The same, but `take` is given what the heads see: [labels, head_inputs_width].
  void features(const Fill& fill, const TakeResults& take);

  // What f32 makes of a batch, which `fill` writes, as forward pass number `pass` with the parameters as they
  // are: for whoever wants to know why f16 came to something else. Changes nothing.
  struct InF32 {
    bool finite = false;  // the losses
    // The first product that multiplies numbers which f16 can't hold, and the largest of these; empty: none.
    std::string product;
    float largest = 0;
  };
  InF32 in_f32(const Fill& fill, uint64_t pass);

  // Buffers on the host, [layout().elements] each: what a checkpoint is made of. Both finish() first.
  std::vector<std::string> buffers() const;  // those that have to be kept
  // Where the gradients of the last update lie.
  std::string_view gradients() const;
  void read(std::string_view buffer, std::span<float> values);
  void write(std::string_view buffer, std::span<const float> values);
  void set_counts(const TrainerCounts& counts);

 private:
  struct Pending {
    bool active = false;
    uint64_t samples = 0;
    bool ends_batch = true;
    std::optional<uint32_t> update = {};  // the set that the update behind it has written
  };
  Plan plan_of(std::shared_ptr<const Graph> graph) const;
  std::unique_ptr<Executable> prepare(Plan plan);
  void collect(uint32_t set);
  void add_losses(uint32_t set, uint64_t samples, double& sum) const;
  UpdateResult updated(Executable& executable, uint32_t set);
  Slot slot_of(Executable& executable, uint32_t set, std::span<uint32_t> labels);
  // Has what lies behind the samples that were put there be finite, and the pictures on their way.
  void complete(const Slot& slot, uint64_t samples);
  void write_step(Executable& executable, uint32_t set, uint64_t pass, uint64_t part);
  // Has the step work on what lies in the current set.
  void submit_step(const PartShare& share, uint64_t pass);
  void hand_over(Executable& executable, uint32_t set);
  void go_through(Executable& executable, std::string_view output, const Fill& fill, const TakeResults& take);

  PipelineStore& pipelines_;
  BatchParts parts_;
  TrainConfig config_;  // of a part
  StepImages images_;
  std::vector<float> values_;  // of bytes and pixels
  uint64_t total_updates_;
  PlanOptions plan_;
  TrainerRole role_;
  std::function<bool()> go_on_;
  GoOn preparing_;
  uint32_t prepared_ = 0;  // executables
  ParameterLayout layout_;
  StateStore states_;
  bool from_features_;
  bool on_host_;
  std::unique_ptr<ConstantSource> drawn_;
  ConstantSource& frozen_;
  std::unique_ptr<ConstantSource> rows_;  // of frozen_, where pairs lie beside parts of a layer
  std::optional<Teacher> teacher_;        // which the configuration names
  std::unique_ptr<ConstantSource> with_teacher_;
  std::unique_ptr<WeightStore> weights_;
  std::unique_ptr<PictureFeed> pictures_;
  // Where several steps make an update the last three work on the sum of gradients, else the first does all.
  std::unique_ptr<Executable> step_, first_sum_, add_sum_, update_, test_;
  std::unique_ptr<Executable> gradients_out_;  // for the host
  std::optional<Plan> test_plan_;              // until the first test
  TrainerCounts counts_;
  uint64_t known_updates_ = 0;  // of counts_.updates: those whose result is there
  bool group_begins_ = true;
  uint32_t set_ = 0, update_set_ = 0;
  std::vector<Pending> pending_;
  std::vector<std::pair<uint32_t, uint64_t>> open_parts_;  // sets and samples, in the order of submission
  double batch_loss_sum_ = 0;                              // of the parts of a batch that are known
  uint64_t batch_samples_ = 0;
  std::vector<BatchResult> results_;
  std::vector<float> sample_weights_;  // of the next batch
};

// Says that f16 is why the loss of a batch, counted from 1, isn't finite, which it is in f32.
std::string sentence_of(const Trainer::InF32& in_f32, uint64_t batch, uint64_t epoch);

}  // namespace vitrine

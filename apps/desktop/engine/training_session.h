// A training that one can watch: it runs on a thread of its own, tells what happens, and can be paused, saved
// and let go at any moment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/desktop/engine/curve.h"
#include "runtime/graph/pipeline_store.h"
#include "train/data/dataset.h"
#include "train/digits/digit_files.h"
#include "train/train_config.h"
#include "train/training_run.h"

namespace vitrine::desktop {

struct TrainingRequest {
  TrainConfig config;
  std::filesystem::path from;  // a folder that a training was saved to, which goes on; empty: from the start
  // A data set's folder; empty: digits are drawn with this machine's fonts, of the model's size.
  std::filesystem::path data;
  DigitSet digits{.train = 10000, .test = 2000};
  std::filesystem::path cache;  // where drawn digits are kept; empty: Vitrine's cache folder

  // Pauses when so many steps (batches) are done; 0: never.
  uint64_t step_limit = 0;
  // How often the model is tested on a part of the test set, in steps, and how large the part is, in batches.
  uint64_t test_every = 25, test_batches = 8;
};

enum class TrainingStage : uint8_t {
  none,       // nothing was started
  drawing,    // digits
  opening,    // the data set
  compiling,  // the steps for this device
  training,
  paused,
  finished,  // the configuration's epochs are done
  stopped,
  failed,
};
std::string_view name_of(TrainingStage stage);

struct TestPoint {
  uint64_t step = 0;     // after so many
  uint64_t samples = 0;  // that it was tested on
  double loss = 0, accuracy = 0;
};

// One of the test pictures that are shown all the time.
struct SamplePrediction {
  std::shared_ptr<const std::vector<uint8_t>> pixels;  // [channels, height, width]
  uint32_t label = 0, predicted = 0;
  double probability = 0;  // of `predicted`
};

// All there is to be shown.
struct TrainingState {
  TrainingStage stage = TrainingStage::none;
  double share_done = 0;  // of `drawing` and `compiling`
  std::string error;      // why it failed, in one sentence

  uint64_t step = 0, steps = 0;    // batches that are done, of the whole training
  uint64_t epoch = 0, epochs = 0;  // the one under way, from 1
  double images_per_second = 0, seconds_left = 0;
  std::vector<CurvePoint> losses;  // of every batch, thinned
  std::vector<TestPoint> tests;
  std::vector<EpochReport> reports;  // one an epoch that is done

  uint64_t training_samples = 0, test_samples = 0;
  SampleShape shape;
  std::vector<std::string> class_names;   // empty where nothing says them
  std::vector<SamplePrediction> samples;  // at most 16, of the newest test

  bool can_save = false;
  std::filesystem::path saved;  // the folder that was saved to last, and after which step
  uint64_t saved_step = 0;
  std::string save_error;  // why the last save() failed

  bool busy() const { return stage >= TrainingStage::drawing && stage <= TrainingStage::training; }
};

class TrainingSession {
 public:
  static constexpr uint64_t shown_samples = 16;

  // `changed` is called from the training's thread when there is something new to show. The pipelines have
  // to outlive this.
  explicit TrainingSession(PipelineStore& pipelines, std::function<void()> changed = {});
  // Ends what runs, within a fraction of a second, and writes nothing.
  ~TrainingSession();
  TrainingSession(const TrainingSession&) = delete;
  TrainingSession& operator=(const TrainingSession&) = delete;

  // None of these waits. A training that is under way, or was, is let go by the next start().
  void start(TrainingRequest request);
  void pause();
  void resume();
  // After the step under way: the model can still be saved. Before the first step there is none.
  void stop();
  void close();  // lets the training go, with its memory
  // Into a folder, whole or not at all; see TrainingRun::save_to(). Between two steps, or while nothing
  // runs; TrainingState says when it is done.
  void save(std::filesystem::path folder);

  // Something goes on, or was asked for and is still to come; not while it is paused.
  bool busy() const;
  // The newest; the same until something changes.
  std::shared_ptr<const TrainingState> state() const;

 private:
  class Job;
  PipelineStore& pipelines_;
  std::function<void()> changed_;
  std::unique_ptr<Job> job_;
};

}  // namespace vitrine::desktop

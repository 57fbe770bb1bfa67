// A training that one can watch: it runs on a thread of its own, tells what happens, and can be paused, saved
// and let go at any moment.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "apps/desktop/engine/curve.h"
#include "apps/desktop/engine/training_request.h"
#include "runtime/graph/pipeline_store.h"
#include "train/data/dataset.h"
#include "train/run/training_run.h"

namespace vitrine::desktop {

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
  std::string name;  // the request's
  TrainingStage stage = TrainingStage::none;
  double share_done = 0;  // of `drawing` and `compiling`
  std::string error;      // why it failed, in one sentence
  std::string remark;     // what is otherwise than was asked for, in one sentence

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
  double last_loss() const { return losses.empty() ? 0 : losses.back().mean; }
  double accuracy() const { return tests.empty() ? 0 : tests.back().accuracy; }
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
  void toggle_pause();
  // After the step under way: the model can still be saved. Before the first step there is none.
  void stop();
  void close();  // lets the training go, with its memory: as if none had been started
  // Into a folder, whole or not at all; see TrainingRun::save_to(). Between two steps, or while nothing
  // runs; TrainingState says when it is done.
  void save(std::filesystem::path folder);

  // Something goes on, or was asked for and is still to come; not while it is paused.
  bool busy() const;
  // The newest; the same until something changes.
  std::shared_ptr<const TrainingState> state() const;

 private:
  // One training: what was asked of it, what is told of it, and what its thread knows.
  struct Course {
    TrainingRequest request;
    std::atomic<bool> stop = false, ends = false;
    // Under the session's lock.
    bool pausing = false, saving = false;
    std::optional<std::filesystem::path> save_to;
    std::shared_ptr<const TrainingState> told;
    // The thread's own.
    TrainingState draft;
    Curve losses;
    uint64_t tested_at = 0, paused_at = 0;
    std::chrono::steady_clock::time_point told_at;
  };

  template <typename Change>
  void command(const Change& change);
  void end_newest();
  // Of the thread.
  void work();
  void run_course();
  void train();
  void describe(const Dataset& data, const Dataset& test);
  void note(const TrainingProgress& progress);
  void between(TrainingRun& run, const Dataset& part);
  bool wants_pause();
  void test_on(TrainingRun& run, const Dataset& data);
  SamplePrediction prediction(const Dataset& data, uint64_t i, std::span<const float> result, uint32_t label);
  void save_if_asked(TrainingRun* run);
  void end_if_asked() const;
  void tell(TrainingStage stage);
  void tell_sometimes();

  PipelineStore& pipelines_;
  const std::function<void()> changed_;
  std::shared_ptr<Course> course_;  // the thread's own: the one that it is at

  mutable std::mutex lock_;  // of what follows
  std::condition_variable commanded_;
  std::shared_ptr<Course> newest_;
  bool closing_ = false;
  std::thread thread_;  // from the first training on
};

}  // namespace vitrine::desktop

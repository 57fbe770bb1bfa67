#include "apps/desktop/engine/training_session.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "apps/desktop/engine/digit_data.h"
#include "model/vit/vision_transformer.h"
#include "runtime/util/error.h"
#include "runtime/vk/pipeline_cache.h"
#include "train/data/selection.h"

namespace vitrine::desktop {
namespace {

using Clock = std::chrono::steady_clock;

// A window's frames come in between two submissions. It is an estimate, which a slow or busy machine exceeds.
constexpr double slice_seconds = 0.01;
// The state is copied when it is told; losses come more often than anybody looks.
constexpr std::chrono::milliseconds telling_interval{33};

// Somebody wanted an end before the training had begun.
struct Ended {};

std::filesystem::path data_folder(const TrainingRequest& request,
                                  const std::function<void(double)>& progress) {
  if (!request.data.empty()) return request.data;
  const ViTConfig& model = request.config.model;
  if (model.channels != 1 || model.image_height != model.image_width || model.classes < 10) {
    throw Error(ErrorCode::usage,
                "digits are drawn for models of 10 classes and square grey pictures, this one "
                "has " +
                    std::to_string(model.classes) + " classes and pictures of " +
                    std::to_string(model.channels) + " x " + std::to_string(model.image_height) + " x " +
                    std::to_string(model.image_width));
  }
  std::filesystem::path cache = request.cache;
  if (cache.empty()) {
    const std::optional<std::filesystem::path> users = cache_folder();
    if (!users) {
      throw Error(ErrorCode::failed,
                  "found no folder to keep drawn digits in, expected HOME, XDG_CACHE_HOME or "
                  "VITRINE_CACHE_DIR to name one");
    }
    cache = *users;
  }
  DigitSet digits = request.digits;
  digits.size = static_cast<uint32_t>(model.image_height);
  return drawn_digits(cache, digits, progress);
}

}  // namespace

std::string_view name_of(TrainingStage stage) {
  switch (stage) {
    case TrainingStage::none:
      return "none";
    case TrainingStage::drawing:
      return "drawing";
    case TrainingStage::opening:
      return "opening";
    case TrainingStage::compiling:
      return "compiling";
    case TrainingStage::training:
      return "training";
    case TrainingStage::paused:
      return "paused";
    case TrainingStage::finished:
      return "finished";
    case TrainingStage::stopped:
      return "stopped";
    case TrainingStage::failed:
      return "failed";
  }
  return "?";
}

// One training with its thread.
class TrainingSession::Job {
 public:
  // `before` is let go on the thread, before this takes any memory.
  Job(PipelineStore& pipelines, TrainingRequest request, std::function<void()> changed,
      std::unique_ptr<Job> before)
      : pipelines_(pipelines),
        request_(std::move(request)),
        changed_(std::move(changed)),
        before_(std::move(before)),
        paused_at_(request_.step_limit),
        told_(std::make_shared<const TrainingState>()) {
    if (before_) before_->end();
    draft_.stage = TrainingStage::opening;
    told_ = std::make_shared<const TrainingState>(draft_);
    thread_ = std::thread([this] { work(); });
  }
  ~Job() {
    end();
    thread_.join();
  }

  void pause() {
    command([&] { pausing_ = true; });
  }
  void resume() {
    command([&] { pausing_ = false; });
  }
  void stop() {
    command([&] { stop_ = true; });
  }
  void end() {
    command([&] { stop_ = ending_ = true; });
  }
  void save(std::filesystem::path folder) {
    command([&] {
      if (over_) {
        TrainingState state = *told_;
        state.save_error = nothing_to_save;
        told_ = std::make_shared<const TrainingState>(std::move(state));
      } else {
        save_to_ = std::move(folder);
        saving_ = true;
      }
    });
  }

  std::shared_ptr<const TrainingState> state() const {
    const std::lock_guard lock(lock_);
    return told_;
  }

  bool busy() const {
    const std::lock_guard lock(lock_);
    return saving_ || told_->busy() || (told_->stage == TrainingStage::paused && !pausing_);
  }

 private:
  static constexpr const char* nothing_to_save = "there is no model that could be saved";

  template <typename Change>
  void command(const Change& change) {
    {
      const std::lock_guard lock(lock_);
      change();
    }
    commanded_.notify_all();
  }

  void work() {
    try {
      before_.reset();
      train();
    } catch (const Ended&) {
      tell(TrainingStage::stopped);
    } catch (const Interrupted&) {
      tell(TrainingStage::stopped);
    } catch (const std::exception& error) {
      draft_.error = error.what();
      tell(TrainingStage::failed);
    }
    draft_.can_save = false;
    tell(draft_.stage);
    command([&] { over_ = true; });
    save_if_asked(nullptr);
  }

  void train() {
    tell(request_.data.empty() ? TrainingStage::drawing : TrainingStage::opening);
    const std::filesystem::path folder = data_folder(request_, [&](double share) {
      end_if_asked();
      draft_.share_done = share;
      tell_sometimes();
    });
    tell(TrainingStage::opening);
    const TrainConfig& config = request_.config;
    config.validate("the training");
    const auto data = open_dataset(folder, Split::train, dataset_options(config));
    const auto test = open_dataset(folder, Split::test, dataset_options(config));
    describe(*data, *test);
    end_if_asked();

    draft_.share_done = 0;
    tell(TrainingStage::compiling);
    TrainingRun run(pipelines_, config, *data,
                    {.from = request_.from,
                     .plan = {.slice_seconds = slice_seconds},
                     .go_on = [&] { return !ending_.load(); },
                     .preparing =
                         [&](double share) {
                           draft_.share_done = share;
                           tell_sometimes();
                           return !stop_.load();
                         }});
    draft_.can_save = true;
    draft_.step = run.trainer().counts().passes;
    draft_.epoch = run.position().epoch + 1;
    const Selection part(
        *test, representative_samples(*test, shown_samples, request_.test_batches * config.batch_size));
    test_on(run, part);

    tell(TrainingStage::training);
    const TrainingEvents events{.progress = [&](const TrainingProgress& progress) { note(progress); },
                                .epoch =
                                    [&](const EpochReport& report) {
                                      draft_.reports.push_back(report);
                                      tell_sometimes();
                                    },
                                .between = [&] { between(run, part); }};
    const bool finished = run.run(events, stop_);
    if (finished) {
      const Selection all(*test, representative_samples(*test, shown_samples, test->count()));
      test_on(run, all);
    }
    tell(finished ? TrainingStage::finished : TrainingStage::stopped);
    while (!ending_) {
      save_if_asked(&run);
      std::unique_lock lock(lock_);
      commanded_.wait(lock, [&] { return ending_ || save_to_; });
    }
  }

  void describe(const Dataset& data, const Dataset& test) {
    const TrainConfig& config = request_.config;
    draft_.training_samples = data.count();
    draft_.test_samples = test.count();
    draft_.shape = data.shape();
    draft_.class_names = config.class_names.empty() ? data.class_names() : config.class_names;
    draft_.epochs = config.epochs;
    draft_.steps = config.epochs * ((data.count() + config.batch_size - 1) / config.batch_size);
  }

  void note(const TrainingProgress& progress) {
    losses_.add(progress.batches, progress.batch_loss);
    draft_.step = progress.batches;
    draft_.epoch = progress.epoch;
    draft_.images_per_second = progress.images_per_second;
    draft_.seconds_left = progress.seconds_left;
    tell_sometimes();
  }

  // After every update, on the training's thread.
  void between(TrainingRun& run, const Dataset& part) {
    const uint64_t step = run.trainer().counts().passes;
    const bool at_limit = paused_at_ != 0 && step >= paused_at_;
    if (!stop_ && (at_limit || step - tested_at_ >= request_.test_every)) {
      run.settle();
      test_on(run, part);
    }
    if (at_limit) {
      paused_at_ = 0;
      pause();
    }
    save_if_asked(&run);
    if (!wants_pause()) return;
    run.settle();
    while (wants_pause()) {
      tell(TrainingStage::paused);
      {
        std::unique_lock lock(lock_);
        commanded_.wait(lock, [&] { return !pausing_ || stop_ || save_to_; });
      }
      save_if_asked(&run);
    }
    tell(TrainingStage::training);
  }

  bool wants_pause() {
    const std::lock_guard lock(lock_);
    return pausing_ && !stop_;
  }

  // The first of the samples are the ones that are shown.
  void test_on(TrainingRun& run, const Dataset& data) {
    const uint64_t step = run.trainer().counts().passes;
    std::vector<SamplePrediction> shown;
    const uint64_t wanted = std::min(shown_samples, data.count());
    const auto take = [&](std::span<const float> results, std::span<const uint32_t> labels) {
      const uint64_t classes = results.size() / labels.size();
      for (uint64_t i = 0; i < labels.size() && shown.size() < wanted; ++i) {
        shown.push_back(prediction(data, shown.size(), results.subspan(i * classes, classes), labels[i]));
      }
    };
    const TestResult result = run.test(data, take, &stop_);
    if (stop_) return;  // it was not finished
    tested_at_ = step;
    draft_.tests.push_back({step, data.count(), result.loss, result.accuracy});
    draft_.samples = std::move(shown);
    tell_sometimes();
  }

  SamplePrediction prediction(const Dataset& data, uint64_t i, std::span<const float> result,
                              uint32_t label) {
    const auto best = std::ranges::max_element(result);
    double sum = 0;
    for (const float value : result) sum += std::exp(static_cast<double>(value) - *best);
    const bool are_probabilities = natural_result(request_.config.model) == Result::probabilities;
    // The pictures stay the same, and are read once.
    std::shared_ptr<const std::vector<uint8_t>> pixels;
    if (i < draft_.samples.size()) {
      pixels = draft_.samples[i].pixels;
    } else {
      std::vector<uint8_t> bytes(data.shape().bytes());
      data.read(i, bytes);
      pixels = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
    }
    return {.pixels = std::move(pixels),
            .label = label,
            .predicted = static_cast<uint32_t>(best - result.begin()),
            .probability = are_probabilities ? *best : 1 / sum};
  }

  void save_if_asked(TrainingRun* run) {
    std::optional<std::filesystem::path> folder;
    {
      const std::lock_guard lock(lock_);
      folder = std::exchange(save_to_, std::nullopt);
    }
    if (!folder) return;
    try {
      if (!run) throw Error(ErrorCode::usage, nothing_to_save);
      run->save_to(*folder);
      draft_.saved = *folder;
      draft_.saved_step = run->trainer().counts().passes;
      draft_.save_error.clear();
    } catch (const std::exception& error) {
      draft_.save_error = error.what();
    }
    tell(draft_.stage);
    command([&] { saving_ = save_to_.has_value(); });
    if (changed_) changed_();
  }

  void end_if_asked() const {
    if (stop_) throw Ended();
  }

  void tell(TrainingStage stage) {
    draft_.stage = stage;
    draft_.losses = losses_.points();
    auto copy = std::make_shared<const TrainingState>(draft_);
    {
      const std::lock_guard lock(lock_);
      told_.swap(copy);
    }
    told_at_ = Clock::now();
    if (changed_) changed_();
  }
  void tell_sometimes() {
    if (Clock::now() - told_at_ >= telling_interval) tell(draft_.stage);
  }

  PipelineStore& pipelines_;
  const TrainingRequest request_;
  const std::function<void()> changed_;

  // The thread's own.
  std::unique_ptr<Job> before_;
  TrainingState draft_;
  Curve losses_;
  uint64_t tested_at_ = 0, paused_at_;
  Clock::time_point told_at_;

  mutable std::mutex lock_;  // of what follows; the flags are read without it, too
  std::condition_variable commanded_;
  std::atomic<bool> stop_ = false, ending_ = false;
  bool pausing_ = false, saving_ = false, over_ = false;
  std::optional<std::filesystem::path> save_to_;
  std::shared_ptr<const TrainingState> told_;
  std::thread thread_;
};

TrainingSession::TrainingSession(PipelineStore& pipelines, std::function<void()> changed)
    : pipelines_(pipelines), changed_(std::move(changed)) {}

TrainingSession::~TrainingSession() = default;

void TrainingSession::start(TrainingRequest request) {
  job_ = std::make_unique<Job>(pipelines_, std::move(request), changed_, std::move(job_));
}

void TrainingSession::pause() {
  if (job_) job_->pause();
}
void TrainingSession::resume() {
  if (job_) job_->resume();
}
void TrainingSession::stop() {
  if (job_) job_->stop();
}
void TrainingSession::close() {
  if (job_) job_->end();
}
bool TrainingSession::busy() const { return job_ && job_->busy(); }

void TrainingSession::save(std::filesystem::path folder) {
  if (job_) job_->save(std::move(folder));
}

std::shared_ptr<const TrainingState> TrainingSession::state() const {
  static const auto nothing = std::make_shared<const TrainingState>();
  return job_ ? job_->state() : nothing;
}

}  // namespace vitrine::desktop

#include "apps/desktop/engine/training_session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <utility>

#include "model/vit/vision_transformer.h"
#include "runtime/util/error.h"
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

}  // namespace

std::string_view name_of(TrainingStage stage) {
  constexpr std::string_view names[] = {"none",   "drawing",  "opening", "compiling", "training",
                                        "paused", "finished", "stopped", "failed"};
  return names[static_cast<size_t>(stage)];
}

// ---- the UI's thread ----

template <typename Change>
void TrainingSession::command(const Change& change) {
  {
    const std::lock_guard lock(lock_);
    change();
  }
  commanded_.notify_all();
}

TrainingSession::TrainingSession(PipelineStore& pipelines, std::function<void()> changed)
    : pipelines_(pipelines), changed_(std::move(changed)) {}

TrainingSession::~TrainingSession() {
  command([&] {
    closing_ = true;
    end_newest();
  });
  if (thread_.joinable()) thread_.join();
}

void TrainingSession::end_newest() {
  if (newest_) newest_->stop = newest_->ends = true;
}

void TrainingSession::start(TrainingRequest request) {
  auto course = std::make_shared<Course>();
  course->paused_at = request.step_limit;
  course->draft.stage = TrainingStage::opening;
  course->draft.name = request.name;
  course->told = std::make_shared<const TrainingState>(course->draft);
  course->request = std::move(request);
  command([&] {
    end_newest();
    newest_ = std::move(course);
  });
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
}

void TrainingSession::pause() {
  command([&] {
    if (newest_) newest_->pausing = true;
  });
}
void TrainingSession::resume() {
  command([&] {
    if (newest_) newest_->pausing = false;
  });
}
void TrainingSession::toggle_pause() {
  const std::shared_ptr<const TrainingState> now = state();
  if (now->stage == TrainingStage::paused) {
    resume();
  } else if (now->busy()) {
    pause();
  }
}
void TrainingSession::stop() {
  command([&] {
    if (newest_) newest_->stop = true;
  });
}
void TrainingSession::close() {
  command([&] {
    end_newest();
    newest_.reset();
  });
}
void TrainingSession::save(std::filesystem::path folder) {
  command([&] {
    if (!newest_) return;
    newest_->save_to = std::move(folder);
    newest_->saving = true;
  });
}

bool TrainingSession::busy() const {
  const std::lock_guard lock(lock_);
  if (!newest_) return false;
  const TrainingState& told = *newest_->told;
  return newest_->saving || told.busy() || (told.stage == TrainingStage::paused && !newest_->pausing);
}

std::shared_ptr<const TrainingState> TrainingSession::state() const {
  static const auto nothing = std::make_shared<const TrainingState>();
  const std::lock_guard lock(lock_);
  return newest_ ? newest_->told : nothing;
}

// ---- the training's thread ----

void TrainingSession::work() {
  std::unique_lock lock(lock_);
  while (true) {
    commanded_.wait(lock, [&] { return closing_ || newest_ != course_ || (course_ && course_->save_to); });
    if (closing_) return;
    const bool another = newest_ != course_;
    course_ = newest_;
    if (!course_) continue;
    lock.unlock();
    if (another) {
      run_course();
    } else {
      save_if_asked(nullptr);  // what there was is gone
    }
    lock.lock();
  }
}

void TrainingSession::run_course() {
  TrainingState& draft = course_->draft;
  try {
    train();
  } catch (const Ended&) {
    tell(TrainingStage::stopped);
  } catch (const Interrupted&) {
    tell(TrainingStage::stopped);
  } catch (const std::exception& error) {
    draft.error = error.what();
    tell(TrainingStage::failed);
  }
  draft.can_save = false;
  tell(draft.stage);
}

void TrainingSession::train() {
  tell(course_->request.data.empty() ? TrainingStage::drawing : TrainingStage::opening);
  const std::filesystem::path folder = data_folder(course_->request, [&](double share) {
    end_if_asked();
    course_->draft.share_done = share;
    tell_sometimes();
  });
  tell(TrainingStage::opening);
  const TrainConfig& config = course_->request.config;
  config.validate("the training");
  const auto data = open_dataset(folder, Split::train, dataset_options(config));
  const auto test = open_dataset(folder, Split::test, dataset_options(config));
  describe(*data, *test);
  end_if_asked();

  course_->draft.share_done = 0;
  tell(TrainingStage::compiling);
  TrainingRun run(pipelines_, config, *data,
                  {.from = course_->request.from,
                   .plan = {.slice_seconds = slice_seconds},
                   .go_on = [&] { return !course_->ends.load(); },
                   .preparing =
                       [&](double share) {
                         course_->draft.share_done = share;
                         tell_sometimes();
                         return !course_->stop.load();
                       }});
  if (config.precision == Precision::f16 && !run.trainer().rounds()) {
    course_->draft.remark = "f16 was asked for, but no product of this training is of f16 on " +
                            pipelines_.device().capabilities().name + ": it is in f32";
  }
  course_->draft.can_save = true;
  course_->draft.step = run.trainer().counts().passes;
  course_->draft.epoch = run.position().epoch + 1;
  const Selection part(
      *test, representative_samples(*test, shown_samples, course_->request.test_batches * config.batch_size));
  test_on(run, part);

  tell(TrainingStage::training);
  const TrainingEvents events{.progress = [&](const TrainingProgress& progress) { note(progress); },
                              .epoch =
                                  [&](const EpochReport& report) {
                                    course_->draft.reports.push_back(report);
                                    tell_sometimes();
                                  },
                              .between = [&] { between(run, part); }};
  const bool finished = run.run(events, course_->stop);
  if (finished) {
    const Selection all(*test, representative_samples(*test, shown_samples, test->count()));
    test_on(run, all);
  }
  tell(finished ? TrainingStage::finished : TrainingStage::stopped);
  while (!course_->ends) {
    save_if_asked(&run);
    std::unique_lock lock(lock_);
    commanded_.wait(lock, [&] { return course_->ends || course_->save_to; });
  }
}

void TrainingSession::describe(const Dataset& data, const Dataset& test) {
  const TrainConfig& config = course_->request.config;
  course_->draft.training_samples = data.count();
  course_->draft.test_samples = test.count();
  course_->draft.shape = data.shape();
  course_->draft.class_names = config.class_names.empty() ? data.class_names() : config.class_names;
  course_->draft.epochs = config.epochs;
  course_->draft.steps = config.epochs * ((data.count() + config.batch_size - 1) / config.batch_size);
}

void TrainingSession::note(const TrainingProgress& progress) {
  course_->losses.add(progress.batches, progress.batch_loss);
  course_->draft.step = progress.batches;
  course_->draft.epoch = progress.epoch;
  course_->draft.images_per_second = progress.images_per_second;
  course_->draft.seconds_left = progress.seconds_left;
  tell_sometimes();
}

// After every update, on the training's thread.
void TrainingSession::between(TrainingRun& run, const Dataset& part) {
  const uint64_t step = run.trainer().counts().passes;
  const bool at_limit = course_->paused_at != 0 && step >= course_->paused_at;
  if (!course_->stop && (at_limit || step - course_->tested_at >= course_->request.test_every)) {
    run.settle();
    test_on(run, part);
  }
  if (at_limit) {
    course_->paused_at = 0;
    command([&] { course_->pausing = true; });
  }
  save_if_asked(&run);
  if (!wants_pause()) return;
  run.settle();
  while (wants_pause()) {
    tell(TrainingStage::paused);
    {
      std::unique_lock lock(lock_);
      commanded_.wait(lock, [&] { return !course_->pausing || course_->stop || course_->save_to; });
    }
    save_if_asked(&run);
  }
  tell(TrainingStage::training);
}

bool TrainingSession::wants_pause() {
  const std::lock_guard lock(lock_);
  return course_->pausing && !course_->stop;
}

// The first of the samples are the ones that are shown.
void TrainingSession::test_on(TrainingRun& run, const Dataset& data) {
  const uint64_t step = run.trainer().counts().passes;
  std::vector<SamplePrediction> shown;
  const uint64_t wanted = std::min(shown_samples, data.count());
  const auto take = [&](std::span<const float> results, std::span<const uint32_t> labels) {
    const uint64_t classes = results.size() / labels.size();
    for (uint64_t i = 0; i < labels.size() && shown.size() < wanted; ++i) {
      shown.push_back(prediction(data, shown.size(), results.subspan(i * classes, classes), labels[i]));
    }
  };
  const TestResult result = run.test(data, take, &course_->stop);
  if (course_->stop) return;  // it was not finished
  course_->tested_at = step;
  course_->draft.tests.push_back({step, data.count(), result.loss, result.accuracy});
  course_->draft.samples = std::move(shown);
  tell_sometimes();
}

SamplePrediction TrainingSession::prediction(const Dataset& data, uint64_t i, std::span<const float> result,
                                             uint32_t label) {
  const auto best = std::ranges::max_element(result);
  double sum = 0;
  for (const float value : result) sum += std::exp(static_cast<double>(value) - *best);
  const bool are_probabilities = natural_result(course_->request.config.model) == Result::probabilities;
  // The pictures stay the same, and are read once.
  std::shared_ptr<const std::vector<uint8_t>> pixels;
  if (i < course_->draft.samples.size()) {
    pixels = course_->draft.samples[i].pixels;
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

void TrainingSession::save_if_asked(TrainingRun* run) {
  std::optional<std::filesystem::path> folder;
  {
    const std::lock_guard lock(lock_);
    folder = std::exchange(course_->save_to, std::nullopt);
  }
  if (!folder) return;
  try {
    if (!run) throw Error(ErrorCode::usage, "there is no model that could be saved");
    run->save_to(*folder);
    course_->draft.saved = *folder;
    course_->draft.saved_step = run->trainer().counts().passes;
    course_->draft.save_error.clear();
  } catch (const std::exception& error) {
    course_->draft.save_error = error.what();
  }
  tell(course_->draft.stage);
  command([&] { course_->saving = course_->save_to.has_value(); });
  if (changed_) changed_();
}

void TrainingSession::end_if_asked() const {
  if (course_->stop) throw Ended();
}

void TrainingSession::tell(TrainingStage stage) {
  course_->draft.stage = stage;
  course_->draft.losses = course_->losses.points();
  auto copy = std::make_shared<const TrainingState>(course_->draft);
  {
    const std::lock_guard lock(lock_);
    course_->told.swap(copy);
  }
  course_->told_at = Clock::now();
  if (changed_) changed_();
}
void TrainingSession::tell_sometimes() {
  if (Clock::now() - course_->told_at >= telling_interval) tell(course_->draft.stage);
}

}  // namespace vitrine::desktop

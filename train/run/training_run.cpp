#include "train/run/training_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "model/files/safetensors.h"
#include "model/files/weights.h"
#include "model/vit/vision_transformer.h"
#include "runtime/util/atomic_file.h"
#include "runtime/util/atomic_folder.h"
#include "runtime/util/error.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"
#include "train/batch_parts.h"
#include "train/data/augmentation.h"
#include "train/data/batch_loader.h"
#include "train/data/epoch_order.h"
#include "train/lora.h"
#include "train/run/model_files.h"
#include "train/run/run_settings.h"
#include "train/training_graph.h"

namespace vitrine {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What a picture may need of those who are given some.
template <typename GivenPictures>
PictureCapacity largest_of(const GivenPictures& given, StepImages images) {
  return images == StepImages::pictures ? given.largest_picture() : PictureCapacity();
}

// The next batch to where it goes.
std::optional<Batch> load(BatchLoader& loader, const Trainer::Slot& slot) {
  if (!slot.pictures) return loader.next(slot.bytes, slot.labels);
  return loader.next([&](PicturePart part) { slot.pictures->add(std::move(part)); }, slot.labels);
}

void require_fit(const TrainConfig& config, const Dataset& data) {
  const ViTConfig& c = config.model;
  const SampleShape wanted{static_cast<uint32_t>(c.channels), static_cast<uint32_t>(c.image_height),
                           static_cast<uint32_t>(c.image_width)};
  if (!(data.shape() == wanted)) {
    throw Error(ErrorCode::bad_file, data.name() + ": the images are " + data.shape().to_string() +
                                         ", the model takes " + wanted.to_string());
  }
  if (data.classes() > c.classes) {
    throw Error(ErrorCode::bad_file, data.name() + ": there are " + std::to_string(data.classes()) +
                                         " classes, the model has " + std::to_string(c.classes));
  }
}

TrainingPosition next_epoch(const TrainingPosition& position) {
  return {.epoch = position.epoch + 1, .history = position.history};
}

// Batches as a loader gives them, until `stop` is set.
Trainer::Fill fill_from(BatchLoader& loader, const std::atomic<bool>* stop) {
  return [&loader, stop](const Trainer::Slot& slot) -> std::optional<uint64_t> {
    if (stop && stop->load()) return std::nullopt;
    const std::optional<Batch> made = load(loader, slot);
    if (!made) return std::nullopt;
    return made->size;
  };
}

// The parameters that a training of this configuration has left in a folder, into a buffer of its layout.
void read_trained(const std::filesystem::path& folder, const TrainConfig& config,
                  const ParameterLayout& layout, std::span<float> values) {
  if (trains_low_rank(config)) return read_adapter(folder, config, layout, values);
  const SafetensorsFile file(folder / "model.safetensors");
  for (const auto& [parameter, first] : layout.places) {
    const TensorInfo* tensor = file.find(parameter.name);
    if (!tensor || tensor->dtype != FileDType::f32 ||
        file.bytes(*tensor).size() != parameter.shape.elements() * sizeof(float)) {
      throw Error(ErrorCode::bad_file, shown(file.path()) + ": found no F32 tensor '" + parameter.name +
                                           "' of " + parameter.shape.to_string() +
                                           ", expected the best model of this training");
    }
    std::memcpy(values.data() + first, file.bytes(*tensor).data(), file.bytes(*tensor).size());
  }
}

// All samples once, as they are stored.
LoaderOptions once_as_stored(const Trainer& trainer) {
  LoaderOptions loading = plain_loading(trainer.config(), trainer.images(),
                                        largest_of(trainer, trainer.images()), trainer.pictures_on_host());
  loading.shuffle = false;
  loading.end_epoch = 1;
  return loading;
}

}  // namespace

TrainingRun::TrainingRun(PipelineStore& pipelines, const TrainConfig& config, const Dataset& train,
                         TrainingOptions options)
    : config_(config),
      data_(train),
      options_(std::move(options)),
      identity_(identity_of(config, train, options_.weights)),
      on_features_(trains_on_features(config, train)),
      parts_(parts_of(config)),
      team_(pipelines, options_.devices, config, total_updates(config, train.count()),
            {.images = images_of(train, config),
             .pictures_on_host = pictures_on_host(options_, pipelines.device()),
             .recompute = options_.recompute,
             .plan = options_.plan,
             .go_on = options_.go_on,
             .preparing = options_.preparing,
             .frozen = options_.weights,
             .from_features = on_features_}),
      trainer_(team_.first()) {
  require_fit(config_, data_);
  if (trains_low_rank(config_) && !options_.out.empty() && options_.base.empty()) {
    throw Error(ErrorCode::usage,
                "a training with LoRA begins with random weights, expected a model whose "
                "adapter it can write (--model)");
  }
  if (trains_low_rank(config_) && !options_.out.empty()) {
    const std::filesystem::path model = options_.out / "model.safetensors";
    if (path_exists(model, ErrorCode::failed)) {
      throw Error(ErrorCode::usage,
                  shown(model) +
                      " is there already, and would be read in place of the adapter, expected "
                      "another folder to write to");
    }
    if (find_invalid_utf8(options_.base)) {
      throw Error(ErrorCode::usage,
                  "--model: " + in_quotes(options_.base) +
                      " is not UTF-8, which adapter_config.json needs, expected another path");
    }
  }
  const bool has_to = !options_.from.empty();
  const std::filesystem::path checkpoint = checkpoint_in(has_to ? options_.from : options_.out);
  if (has_to || (options_.resume && path_exists(checkpoint, ErrorCode::failed))) {
    position_ = load_checkpoint(checkpoint, trainer_, identity_);
    reported_updates_ = trainer_.counts().updates;
    reported_skipped_ = trainer_.counts().skipped;
    settings_written_ = !has_to && path_exists(settings_in(options_.out), ErrorCode::failed) &&
                        holds_text(settings_in(options_.out), settings_text(config_));
    return;
  }
  if (!options_.out.empty()) {
    require_no_other_settings(config_, options_.out);
    if (!options_.resume && path_exists(best_in(options_.out), ErrorCode::failed)) {
      throw Error(ErrorCode::usage, shown(best_in(options_.out)) +
                                        " is there already, and it is what is read of a training, expected "
                                        "another folder to write to");
    }
  }
  if (options_.weights) {
    trainer_.initialize(*options_.weights);
  } else {
    trainer_.initialize(*random_weights(config_.model, config_.seed));
  }
}

uint64_t TrainingRun::batches_an_epoch() const {
  return (data_.count() + config_.batch_size - 1) / config_.batch_size;
}

std::vector<std::string> TrainingRun::class_names() const {
  return config_.class_names.empty() ? data_.class_names() : config_.class_names;
}

void TrainingRun::save() {
  if (options_.out.empty()) return;
  if (!std::exchange(settings_written_, true)) write_settings(options_.out);
  if (log_) position_.history.log = log_->flush();
  save_checkpoint(checkpoint_in(options_.out), trainer_, position_, identity_);
}

// Of an epoch's end, as it was saved.
void TrainingRun::keep() {
  if (!options_.out.empty()) keep_checkpoint(options_.out, position_.epoch, config_.keep);
}

void TrainingRun::write_settings(const std::filesystem::path& folder) const {
  const std::string text = settings_text(config_);
  write_file_atomically(settings_in(folder), std::as_bytes(std::span(text)));
}

void TrainingRun::save_to(const std::filesystem::path& folder) {
  settle();
  require_no_other_settings(config_, folder);
  std::vector<std::string> names = model_file_names();
  const std::filesystem::path logs[] = {log_in({}), events_in({})};
  for (const auto& path : {checkpoint_in({}), settings_in({}), logs[0], logs[1]})
    names.push_back(path.string());
  AtomicFolder written(folder, names);
  // What a training that goes on from there has told so far stays.
  for (const auto& log : logs) {
    if (path_exists(folder / log, ErrorCode::failed)) {
      write_file_atomically(written.path() / log, MappedFile(folder / log).bytes());
    }
  }
  // After an epoch's last batch the next one begins.
  const TrainingPosition here = position_.batch < batches_an_epoch() ? position_ : next_epoch(position_);
  save_checkpoint(checkpoint_in(written.path()), trainer_, here, identity_);
  write_settings(written.path());
  write_model(written.path(), trainer_, class_names(), options_.base);
  written.commit();
}

void TrainingRun::report(const BatchResult& result) {
  if (std::isfinite(result.loss)) {
    position_.loss_sum += result.loss;
    ++position_.losses;
  } else if (!bad_batch_) {
    bad_batch_ = position_.batch - 1;
  }
  if (result.update) {
    const bool skipped = result.update->skipped();
    position_.skipped += skipped;
    uint64_t& in_a_row = position_.history.skipped_in_a_row;
    in_a_row = skipped ? in_a_row + 1 : 0;
    ++reported_updates_;
    reported_skipped_ += skipped;
    if (skipped && bad_batch_ && !looked_ && !look_at_ && trainer_.rounds()) look_at_ = bad_batch_;
    bad_batch_.reset();
    if (skipped && in_a_row >= config_.max_skipped_steps && !lost_at_) {
      lost_at_ = reported_updates_;
      lost_in_a_row_ = in_a_row;
    }
  }
  position_.samples += result.samples;
  log_result(result);
  seen_samples_ += result.samples;
  ++seen_batches_;
  if (!events_ || !events_->progress) return;
  const uint64_t done = position_.epoch * batches_an_epoch() + position_.batch;
  const uint64_t total = config_.epochs * batches_an_epoch();
  const double each = seen_seconds_ / static_cast<double>(seen_batches_);
  events_->progress(
      {.epoch = position_.epoch + 1,
       .epochs = config_.epochs,
       .batches = done,
       .total = total,
       .batch_loss = result.loss,
       .loss = epoch_loss(),
       .images_per_second = seen_seconds_ > 0 ? static_cast<double>(seen_samples_) / seen_seconds_ : 0,
       .seconds_left = each * static_cast<double>(total - done)});
}

// The batches of an update are one line.
void TrainingRun::log_result(const BatchResult& result) {
  group_loss_sum_ += result.loss * static_cast<double>(result.samples);
  group_samples_ += result.samples;
  if (!result.update) return;
  const double loss =
      std::exchange(group_loss_sum_, 0) / static_cast<double>(std::exchange(group_samples_, 0));
  if (loss_watch_) watch_loss(loss);
  if (!log_) return;
  log_->add(UpdateLine{
      .update = reported_updates_,
      .epoch = position_.epoch + 1,
      .loss = loss,
      .learning_rate = learning_rate(config_, reported_updates_ - 1, total_updates(config_, data_.count())),
      .gradient_norm = result.update->gradient_norm,
      .skipped = reported_skipped_,
      .images_per_second = seen_seconds_ > 0 ? static_cast<double>(seen_samples_) / seen_seconds_ : 0});
}

// No number has left f16's range, so what f16 has to do with it isn't known; that it may is worth a sentence.
void TrainingRun::watch_loss(double loss) {
  const std::optional<std::string> rises = loss_watch_->add(reported_updates_, loss);
  if (rises && events_ && events_->notice)
    events_->notice(*rises +
                    "; a training with --precision f32 shows if f16 is why, else a lower lr may help");
}

double TrainingRun::epoch_loss() const { return position_.loss_sum / static_cast<double>(position_.losses); }

// Whether the first update that f16 lost would have been one in f32: the same batch once more, with the
// parameters that no update has changed since, unless one was under way.
void TrainingRun::look_for_f16(const LoaderOptions& loading) {
  if (!look_at_ || looked_ || parts_.count() > 1) return;
  settle();
  looked_ = true;
  LoaderOptions same = loading;
  same.first_epoch = static_cast<uint32_t>(position_.epoch);
  same.first_batch = *look_at_;
  Trainer::InF32 found;
  try {
    BatchLoader loader(data_, same);
    found = trainer_.in_f32(fill_from(loader, nullptr), position_.epoch * batches_an_epoch() + *look_at_);
  } catch (const Error&) {
    return;  // there is no memory for it, say: then nothing is known, and the training goes on
  }
  if (!found.finite) return;
  f16_sentence_ = sentence_of(found, *look_at_ + 1, position_.epoch + 1);
  if (events_ && events_->notice)
    events_->notice("an update is left out, because it is not finite; " + f16_sentence_);
}

// What is saved holds none of these updates: the parameters are those from before the first.
void TrainingRun::end_where_lost() {
  if (!lost_at_) return;
  settle();
  save();
  throw Error(ErrorCode::failed,
              "the gradients of " + std::to_string(lost_in_a_row_) +
                  " updates in a row were not finite, up to update " + std::to_string(*lost_at_) +
                  " in epoch " + std::to_string(position_.epoch + 1) + ", and none of them was made; " +
                  (f16_sentence_.empty() ? "a lower lr or a clip_norm may keep them finite" : f16_sentence_) +
                  " (max_skipped_steps is how many may be)");
}

void TrainingRun::take() {
  team_.take_results(results_);
  for (const BatchResult& result : results_) {
    ++position_.batch;
    report(result);
  }
}

void TrainingRun::settle() {
  team_.finish();
  take();
}

bool TrainingRun::ended_early() const {
  return validates() && config_.patience > 0 && position_.history.best.count > 0 &&
         position_.history.best.since >= config_.patience;
}

bool TrainingRun::validation_due(bool epoch_ends) const {
  const uint64_t updates = trainer_.counts().updates;
  if (!validates() || updates == 0) return false;
  if (config_.validate_every == TrainConfig::every_epoch) return epoch_ends;
  return updates % config_.validate_every == 0 || (epoch_ends && position_.epoch + 1 == config_.epochs);
}

// Nothing where it was stopped in between.
std::optional<ValidationResult> TrainingRun::validate(const std::atomic<bool>& stop) {
  const TestResult result = test(*options_.validation, {}, &stop);
  if (stop) return std::nullopt;
  const uint64_t updates = trainer_.counts().updates;
  const bool best = position_.history.best.add(updates, result);
  write_models(best);
  const ValidationResult validation{
      .update = updates, .epoch = position_.epoch + 1, .result = result, .best = best};
  if (log_) log_->add(validation);
  return validation;
}

void TrainingRun::write_models(bool best) {
  if (options_.out.empty()) return;
  AtomicFolder last(last_in(options_.out), model_file_names());
  write_model(last.path(), trainer_, class_names(), options_.base);
  last.commit();
  if (best) link_model(last_in(options_.out), best_in(options_.out));
}

// False when it was stopped.
bool TrainingRun::compute_features(const TrainingEvents& events, const std::atomic<bool>& stop) {
  const uint64_t width = VisionTransformer(config_.model).head_inputs_width();
  features_.emplace(data_, width, parts_, config_.seed);
  BatchLoader loader(data_, once_as_stored(trainer_));
  uint64_t done = 0;
  trainer_.features(fill_from(loader, &stop),
                    [&](std::span<const float> rows, std::span<const uint32_t> labels) {
                      features_->add(rows);
                      done += labels.size();
                      if (events.features) events.features(done, data_.count());
                    });
  if (features_->complete()) return true;
  features_.reset();
  return false;
}

bool TrainingRun::run(const TrainingEvents& events, const std::atomic<bool>& stop) {
  events_ = &events;
  if (!loss_watch_ && config_.precision == Precision::f16 && trainer_.rounds()) loss_watch_.emplace();
  const std::unique_ptr<const TrainingEvents*, void (*)(const TrainingEvents**)> forget(
      &events_, [](const TrainingEvents** told) { *told = nullptr; });
  if (!options_.out.empty()) {
    make_folders(options_.out);
    remove_left_behind_in(options_.out);
  }
  if (!options_.out.empty() && validates()) {
    // What would be in their way is said now, and not after the first epoch.
    for (const auto& folder : {last_in(options_.out), best_in(options_.out)}) {
      const AtomicFolder tried(folder, model_file_names());
    }
  }
  if (!options_.out.empty()) {
    log_ = std::make_unique<TrainingLog>(options_.out, config_.tensorboard, position_.history.log);
    if (position_.history.log.events == 0) log_->add_pictures(data_);
  }
  // What it was killed before.
  if (position_.epoch > 0 && position_.batch == 0 && options_.from.empty()) keep();
  const uint64_t batches = batches_an_epoch();
  const bool at_end = position_.batch >= batches;  // of an epoch, whose end is still to come
  const PartSizes sizes({.samples = data_.count(), .batch = static_cast<uint32_t>(config_.batch_size)},
                        parts_);
  LoaderOptions loading = step_loading(config_, trainer_.images(), largest_of(team_, trainer_.images()),
                                       trainer_.pictures_on_host());
  loading.parts = parts_;
  loading.batches_ahead *= static_cast<uint32_t>(parts_.count());
  loading.first_epoch = static_cast<uint32_t>(position_.epoch + at_end);
  loading.first_batch = at_end ? 0 : sizes.first_of_batch(position_.batch);
  if (on_features_ && !finished() && !features_ && !compute_features(events, stop)) {
    save();
    return false;
  }
  std::optional<BatchLoader> loader;
  if (!on_features_) loader.emplace(data_, loading);
  double waited_before = 0;  // in the epochs before
  const auto next_part = [&](uint64_t part) -> std::optional<Batch> {
    Trainer& trainer = team_.next();
    if (!on_features_) return load(*loader, trainer.slot());
    const Trainer::FeatureSlot slot = trainer.feature_slot();
    return features_->fill(static_cast<uint32_t>(position_.epoch), part, slot.features, slot.labels);
  };
  // Hands a batch over, part by part.
  const auto submit_batch = [&](uint64_t batch, uint64_t group_samples, bool last) {
    const uint64_t samples = std::min(config_.batch_size, data_.count() - batch * config_.batch_size);
    const uint64_t count = parts_.count(samples);
    for (uint64_t part = 0; part < count; ++part) {
      const uint64_t wanted = sizes.first_of_batch(batch) + part;
      const std::optional<Batch> made = next_part(wanted);
      if (!made || made->index != wanted) throw Error(ErrorCode::failed, "the batches came out of order");
      const bool ends = part + 1 == count;
      team_.submit({.samples = made->size,
                    .group_samples = group_samples,
                    .last = last && ends,
                    .part = part,
                    .batch_samples = samples,
                    .ends_batch = ends});
    }
  };

  Clock::time_point start = Clock::now(), saved = start;
  const double seconds_before = seen_seconds_;
  double epoch_before = position_.seconds;
  Clock::time_point epoch_start = start;
  const auto count_seconds = [&] {
    seen_seconds_ = seconds_before + seconds_since(start);
    position_.seconds = epoch_before + seconds_since(epoch_start);
  };
  // What isn't training takes no time of it.
  const auto beside = [&](const auto& work) {
    count_seconds();
    const Clock::time_point called = Clock::now();
    work();
    const Clock::duration taken = Clock::now() - called;
    start += taken;
    epoch_start += taken;
  };
  std::optional<ValidationResult> validation;
  // In the middle of an epoch, with nothing under way; false where it was stopped.
  const auto validate_here = [&] {
    beside([&] { validation = validate(stop); });
    save();
    saved = Clock::now();
    if (validation && events.validation) events.validation(*validation);
    return validation.has_value();
  };
  if (!finished() && position_.batch > 0 && !at_end && validation_due(false) &&
      position_.history.best.newest != trainer_.counts().updates) {
    if (!validate_here()) return false;
  }
  while (!finished()) {
    // Between groups of accumulated batches alone the parameters say all.
    bool group_ends = true;
    for (uint64_t batch = position_.batch; batch < batches; ++batch) {
      const uint64_t group_first = batch / config_.accumulation * config_.accumulation;
      const uint64_t group_end = std::min(group_first + config_.accumulation, batches);
      const uint64_t group_samples =
          std::min(group_end * config_.batch_size, data_.count()) - group_first * config_.batch_size;
      group_ends = batch + 1 == group_end;
      submit_batch(batch, group_samples, group_ends);
      count_seconds();
      take();
      if (!group_ends) continue;
      if (look_at_ && !looked_) beside([&] { look_for_f16(loading); });
      end_where_lost();
      if (events.between) beside(events.between);
      const bool epoch_ends = batch + 1 == batches, validates_here = !epoch_ends && validation_due(false);
      const bool stopping = stop.load();
      if (!stopping && !validates_here && seconds_since(saved) < options_.checkpoint_seconds) continue;
      settle();
      count_seconds();
      if (epoch_ends) break;  // saved with the epoch's end
      end_where_lost();
      if (validates_here && !stopping) {
        if (!validate_here()) return false;
        if (finished()) return finish();
        continue;
      }
      save();
      saved = Clock::now();
      if (stopping) return false;
    }
    settle();
    look_for_f16(loading);
    end_where_lost();
    count_seconds();
    validation.reset();
    if (validation_due(true)) {
      beside([&] { validation = validate(stop); });
      if (!validation) {
        save();
        return false;
      }
    }
    const EpochReport report{.epoch = position_.epoch + 1,
                             .loss = epoch_loss(),
                             .seconds = position_.seconds,
                             .images_per_second = static_cast<double>(position_.samples) / position_.seconds,
                             .waited_seconds = loader ? loader->waited_seconds() - waited_before : 0,
                             .skipped_steps = position_.skipped,
                             .validation = validation};
    waited_before += report.waited_seconds;
    position_ = next_epoch(position_);
    save();
    keep();
    saved = epoch_start = Clock::now();
    epoch_before = 0;
    if (events.epoch) events.epoch(report);
    if (stop.load() && !finished()) return false;
  }
  return finish();
}

bool TrainingRun::finish() {
  if (options_.out.empty() || validates()) return true;
  // A folder that was validated once is read as its best.
  if (path_exists(best_in(options_.out), ErrorCode::failed)) {
    write_models(false);
  } else {
    write_model(options_.out, trainer_, class_names(), options_.base);
  }
  return true;
}

TestResult TrainingRun::test_best(const Dataset& data) {
  const std::filesystem::path best = best_in(options_.out);
  if (options_.out.empty() || !validates() || !path_exists(best, ErrorCode::failed)) return test(data);
  std::vector<float> last(trainer_.layout().elements), values(last.size());
  // What is tested: the weights, or their average.
  const std::string_view tested = result_buffer(config_);
  trainer_.read(tested, last);
  read_trained(best, config_, trainer_.layout(), values);
  trainer_.write(tested, values);
  const TestResult result = test(data);
  trainer_.write(tested, last);
  return result;
}

TestResult TrainingRun::test(const Dataset& data, const TakeResults& take, const std::atomic<bool>* stop) {
  require_fit(config_, data);
  return test_on(trainer_, data, take, stop);
}

TestResult test_on(Trainer& trainer, const Dataset& data, const TakeResults& take,
                   const std::atomic<bool>* stop) {
  BatchLoader loader(data, once_as_stored(trainer));
  return trainer.test(fill_from(loader, stop), take);
}

void write_model(const std::filesystem::path& folder, Trainer& trainer,
                 const std::vector<std::string>& class_names, const std::string& base) {
  const TrainConfig& config = trainer.config();
  write_model_settings(folder, config.model, preprocessing_of(config), class_names);
  if (trains_low_rank(config)) return write_adapter(folder, trainer, base);
  write_weights(folder, config.model,
                [&](const Parameter& parameter) { return trainer.parameter(parameter); });
}

}  // namespace vitrine

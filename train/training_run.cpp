#include "train/training_run.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/files/preprocess_files.h"
#include "model/files/safetensors_writer.h"
#include "model/files/weights.h"
#include "runtime/util/atomic_file.h"
#include "runtime/util/atomic_folder.h"
#include "runtime/util/error.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"
#include "train/data/augmentation.h"
#include "train/data/batch_loader.h"

namespace vitrine {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

LoaderOptions loader_options(const Trainer& trainer) {
  const TrainConfig& config = trainer.config();
  LoaderOptions options{.batch_size = static_cast<uint32_t>(config.batch_size),
                        .pictures = trainer.images() == StepImages::pictures,
                        .seed = config.seed};
  if (options.pictures) options.largest = trainer.largest_picture();
  return options;
}

// The next batch to where it goes.
std::optional<Batch> load(BatchLoader& loader, const Trainer::Slot& slot) {
  if (!slot.pictures) return loader.next(slot.bytes, slot.labels);
  return loader.next([&](PicturePart part) { slot.pictures->add(std::move(part)); }, slot.labels);
}

// Whether the device has to resize what the data set has.
StepImages images_of(const Dataset& data, const TrainConfig& config) {
  return data.preprocess() || config.random_resized_crop ? StepImages::pictures : StepImages::bytes;
}

std::string settings_text(const TrainConfig& config) { return to_json(config).dump(2) + "\n"; }

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

}  // namespace

uint64_t total_updates(const TrainConfig& config, uint64_t samples) {
  const uint64_t batches = (samples + config.batch_size - 1) / config.batch_size;
  return config.epochs * ((batches + config.accumulation - 1) / config.accumulation);
}

DatasetOptions dataset_options(const TrainConfig& config) {
  const ViTConfig& c = config.model;
  return {.shape = {static_cast<uint32_t>(c.channels), static_cast<uint32_t>(c.image_height),
                    static_cast<uint32_t>(c.image_width)},
          .classes = static_cast<uint32_t>(c.classes),
          .preprocess = preprocessing_of(config)};
}

std::filesystem::path checkpoint_in(const std::filesystem::path& out) {
  return out / "checkpoint.safetensors";
}
std::filesystem::path settings_in(const std::filesystem::path& out) { return out / "training.json"; }

void require_no_other_settings(const TrainConfig& config, const std::filesystem::path& out) {
  const std::filesystem::path file = settings_in(out);
  std::error_code none;
  if (!std::filesystem::exists(file, none) || std::filesystem::exists(checkpoint_in(out), none)) return;
  const MappedFile there(file);
  const std::string_view text(reinterpret_cast<const char*>(there.bytes().data()), there.bytes().size());
  if (text == settings_text(config)) return;
  throw Error(ErrorCode::usage, shown(file) +
                                    " is there already, and would be overwritten with this training's "
                                    "settings, expected another folder to write to");
}

std::string fingerprint_of(const Dataset& data) {
  // FNV-1a of the labels: cheap, and another data set has others.
  uint64_t hash = 0xcbf29ce484222325u;
  for (uint64_t i = 0; i < data.count(); ++i) hash = (hash ^ data.label(i)) * 0x100000001b3u;
  return std::to_string(data.count()) + " samples of " + data.shape().to_string() + ", labels " +
         std::to_string(hash);
}

TrainingRun::TrainingRun(PipelineStore& pipelines, const TrainConfig& config, const Dataset& train,
                         TrainingOptions options)
    : config_(config),
      data_(train),
      options_(std::move(options)),
      identity_{to_json(config).dump(), fingerprint_of(train)},
      trainer_(pipelines, config, total_updates(config, train.count()),
               {.images = images_of(train, config),
                .recompute = options_.recompute,
                .plan = options_.plan,
                .go_on = options_.go_on,
                .preparing = options_.preparing}) {
  require_fit(config_, data_);
  const bool has_to = !options_.from.empty();
  const std::filesystem::path checkpoint = checkpoint_in(has_to ? options_.from : options_.out);
  if (has_to || (options_.resume && path_exists(checkpoint, ErrorCode::failed))) {
    position_ = load_checkpoint(checkpoint, trainer_, identity_);
    settings_written_ = !has_to && path_exists(settings_in(options_.out), ErrorCode::failed);
    return;
  }
  if (!options_.out.empty()) require_no_other_settings(config_, options_.out);
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
  save_checkpoint(checkpoint_in(options_.out), trainer_, position_, identity_);
}

void TrainingRun::write_settings(const std::filesystem::path& folder) const {
  const std::string text = settings_text(config_);
  write_file_atomically(settings_in(folder), std::as_bytes(std::span(text)));
}

void TrainingRun::save_to(const std::filesystem::path& folder) {
  settle();
  require_no_other_settings(config_, folder);
  AtomicFolder written(folder, {checkpoint_in({}).string(), settings_in({}).string(), "config.json",
                                "preprocessor_config.json", "model.safetensors"});
  // After an epoch's last batch the next one begins.
  const TrainingPosition here =
      position_.batch < batches_an_epoch() ? position_ : TrainingPosition{.epoch = position_.epoch + 1};
  save_checkpoint(checkpoint_in(written.path()), trainer_, here, identity_);
  write_settings(written.path());
  write_model(written.path(), trainer_, class_names());
  written.commit();
}

void TrainingRun::report(const BatchResult& result) {
  position_.loss_sum += result.loss;
  position_.samples += result.samples;
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
       .loss = position_.loss_sum / static_cast<double>(position_.batch),
       .images_per_second = seen_seconds_ > 0 ? static_cast<double>(seen_samples_) / seen_seconds_ : 0,
       .seconds_left = each * static_cast<double>(total - done)});
}

void TrainingRun::take() {
  trainer_.take_results(results_);
  for (const BatchResult& result : results_) {
    ++position_.batch;
    report(result);
  }
}

void TrainingRun::settle() {
  trainer_.finish();
  take();
}

bool TrainingRun::run(const TrainingEvents& events, const std::atomic<bool>& stop) {
  events_ = &events;
  const std::unique_ptr<const TrainingEvents*, void (*)(const TrainingEvents**)> forget(
      &events_, [](const TrainingEvents** told) { *told = nullptr; });
  if (!options_.out.empty()) make_folders(options_.out);
  LoaderOptions loading = loader_options(trainer_);
  loading.augmentation = {.crop_padding = static_cast<uint32_t>(config_.crop_padding),
                          .flip = config_.flip,
                          .resized_crop = config_.random_resized_crop};
  loading.first_epoch = static_cast<uint32_t>(position_.epoch);
  loading.first_batch = position_.batch;
  loading.end_epoch = static_cast<uint32_t>(config_.epochs);
  BatchLoader loader(data_, loading);

  const uint64_t batches = batches_an_epoch();
  Clock::time_point start = Clock::now(), saved = start;
  const double seconds_before = seen_seconds_;
  double epoch_before = position_.seconds;
  Clock::time_point epoch_start = start;
  const auto count_seconds = [&] {
    seen_seconds_ = seconds_before + seconds_since(start);
    position_.seconds = epoch_before + seconds_since(epoch_start);
  };
  const auto between = [&] {
    if (!events.between) return;
    count_seconds();
    const Clock::time_point called = Clock::now();
    events.between();
    const Clock::duration taken = Clock::now() - called;
    start += taken;
    epoch_start += taken;
  };
  while (!finished()) {
    // Between groups of accumulated batches alone the parameters say all.
    bool group_ends = true;
    for (uint64_t batch = position_.batch; batch < batches; ++batch) {
      const uint64_t group_first = batch / config_.accumulation * config_.accumulation;
      const uint64_t group_end = std::min(group_first + config_.accumulation, batches);
      const uint64_t group_samples =
          std::min(group_end * config_.batch_size, data_.count()) - group_first * config_.batch_size;
      const Trainer::Slot slot = trainer_.slot();
      const std::optional<Batch> made = load(loader, slot);
      if (!made || made->index != batch) throw Error(ErrorCode::failed, "the batches came out of order");
      group_ends = batch + 1 == group_end;
      trainer_.submit(made->size, group_samples, group_ends);
      count_seconds();
      take();
      if (!group_ends) continue;
      between();
      const bool stopping = stop.load();
      if (!stopping && seconds_since(saved) < options_.checkpoint_seconds) continue;
      settle();
      count_seconds();
      if (batch + 1 == batches) break;  // saved with the epoch's end
      save();
      saved = Clock::now();
      if (stopping) return false;
    }
    settle();
    count_seconds();
    const EpochReport report{.epoch = position_.epoch + 1,
                             .loss = position_.loss_sum / static_cast<double>(batches),
                             .seconds = position_.seconds,
                             .images_per_second = static_cast<double>(position_.samples) / position_.seconds};
    position_ = {.epoch = position_.epoch + 1};
    save();
    saved = epoch_start = Clock::now();
    epoch_before = 0;
    if (events.epoch) events.epoch(report);
    if (stop.load() && !finished()) return false;
  }
  if (!options_.out.empty()) write_model(options_.out, trainer_, class_names());
  return true;
}

TestResult TrainingRun::test(const Dataset& data, const TakeResults& take, const std::atomic<bool>* stop) {
  require_fit(config_, data);
  return test_on(trainer_, data, take, stop);
}

TestResult test_on(Trainer& trainer, const Dataset& data, const TakeResults& take,
                   const std::atomic<bool>* stop) {
  LoaderOptions loading = loader_options(trainer);
  loading.shuffle = false;
  loading.end_epoch = 1;
  BatchLoader loader(data, loading);
  return trainer.test(
      [&](const Trainer::Slot& slot) -> std::optional<uint64_t> {
        if (stop && stop->load()) return std::nullopt;
        const std::optional<Batch> made = load(loader, slot);
        if (!made) return std::nullopt;
        return made->size;
      },
      take);
}

void write_model(const std::filesystem::path& folder, Trainer& trainer,
                 const std::vector<std::string>& class_names) {
  const TrainConfig& config = trainer.config();
  const auto write_json = [&](const char* name, const nlohmann::ordered_json& json) {
    const std::string text = json.dump(2) + "\n";
    write_file_atomically(folder / name, std::as_bytes(std::span(text)));
  };
  nlohmann::ordered_json description;
  description["vitrine"] = to_json(config.model);
  if (class_names.size() == config.model.classes) description["label_names"] = class_names;
  write_json("config.json", description);
  write_json("preprocessor_config.json", hugging_face_json(preprocessing_of(config)));

  std::vector<float> values(trainer.layout().elements);
  trainer.read(parameters_buffer, values);
  std::vector<TensorToWrite> tensors;
  for (const auto& [parameter, first] : trainer.layout().places) {
    const auto dims = parameter.shape.dims();
    tensors.push_back({.name = parameter.name,
                       .shape = {dims.begin(), dims.end()},
                       .data = std::as_bytes(std::span(values).subspan(first, parameter.shape.elements()))});
  }
  write_safetensors(folder / "model.safetensors", tensors);
}

}  // namespace vitrine

#include "train/trainer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "model/files/parameter_values.h"
#include "model/files/weights.h"
#include "model/run/weight_range.h"
#include "runtime/tune/choice_store.h"
#include "runtime/util/error.h"
#include "runtime/util/four_digits.h"
#include "shaders/lib/step_state.h"
#include "train/augmentation_graph.h"
#include "train/batch_parts.h"
#include "train/f16_range.h"
#include "train/lora.h"
#include "train/recipes/recipe_graph.h"
#include "train/step_inputs.h"
#include "train/training_graph.h"

namespace vitrine {
namespace {

std::vector<float> output_of(const Executable& executable, std::string_view name, uint32_t set) {
  const std::span<const std::byte> bytes = executable.output(executable.output_index(name), set);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

Trainer::Trainer(PipelineStore& pipelines, TrainConfig config, uint64_t total_updates,
                 const TrainerOptions& options)
    : pipelines_(pipelines),
      parts_(parts_of(config)),
      config_(config_of_part(config)),
      images_(options.images),
      values_(images_ == StepImages::numbers ? std::vector<float>{}
                                             : preprocessing_of(config_).values(config_.model.channels)),
      total_updates_(total_updates),
      plan_(with_stored_choices(options.plan, pipelines.device().capabilities())),
      role_(options.role),
      go_on_(options.go_on),
      preparing_(options.preparing),
      layout_(layout_of(config_)),
      states_(pipelines.device()),
      from_features_(options.from_features),
      on_host_(options.pictures_on_host.value_or(prepares_on_host(pipelines.device().capabilities()))),
      drawn_(options.frozen ? nullptr : random_weights(config_.model, config_.seed)),
      frozen_(options.frozen ? *options.frozen : *drawn_),
      rows_(trains_low_rank(config_) ? with_rows(frozen_, config_.model) : nullptr),
      teacher_(open_teacher(config_)),
      with_teacher_(teacher_ ? with_teacher(rows_ ? *rows_ : frozen_, *teacher_) : nullptr),
      weights_(std::make_unique<WeightStore>(pipelines, with_teacher_ ? *with_teacher_
                                                        : rows_       ? *rows_
                                                                      : frozen_)),
      pending_(Executable::io_sets),
      sample_weights_(config_.batch_size, 1.0f) {
  results_.reserve(16);
  const bool alone = role_ == TrainerRole::alone, helps = role_ == TrainerRole::helper;
  const bool accumulates = alone && (config_.accumulation > 1 || parts_.count() > 1);
  // All plans come before the first buffer: how far behind its end one may be read depends on the model's
  // sizes and on the kernels that were chosen, and is the most that any plan says.
  StepGraphOptions of_step{.update = alone && !accumulates,
                           .recompute = options.recompute,
                           .images = given_images(images_, on_host_),
                           .from_features = from_features_};
  if (teacher_) of_step.teacher = teacher_->model;
  Plan step = plan_of(make_step_graph(config_, layout_, of_step));
  uint64_t tail = step.tail_bytes;
  if (!helps) {
    test_plan_ =
        plan_of(make_test_graph(config_, layout_, config_.batch_size, given_images(images_, on_host_)));
    tail = std::max(tail, test_plan_->tail_bytes);
  }
  std::vector<std::pair<std::unique_ptr<Executable>*, Plan>> others;
  if (accumulates) {
    others.emplace_back(&first_sum_, plan_of(make_first_sum_graph(layout_)));
    others.emplace_back(&add_sum_, plan_of(make_add_sum_graph(layout_)));
  }
  if (!alone) others.emplace_back(&gradients_out_, plan_of(make_gradients_graph(layout_)));
  if (accumulates || role_ == TrainerRole::first)
    others.emplace_back(&update_, plan_of(make_update_graph(config_, layout_)));
  for (const auto& [executable, plan] : others) tail = std::max(tail, plan.tail_bytes);

  const uint64_t bytes = layout_.elements * sizeof(float);
  for (const std::string& buffer : buffers()) states_.make(buffer, bytes, tail);
  states_.make(std::string(gradients_buffer), bytes, tail);
  if (accumulates || role_ == TrainerRole::first) states_.make(std::string(sums_buffer), bytes, tail);
  states_.make(std::string(updates_buffer), sizeof(uint32_t), tail);

  if (images_ == StepImages::pictures) {
    const uint64_t pixels = config_.batch_size * config_.model.image_height * config_.model.image_width;
    if (!on_host_) states_.make(std::string(pictures_buffer), pixels * sizeof(uint32_t), tail);
    pictures_ = std::make_unique<PictureFeed>(
        pipelines_, *weights_, states_, config_, plan_, options.pixels_at_once, on_host_,
        [this](Executable& executable, uint32_t set) { hand_over(executable, set); });
  }

  step_ = prepare(std::move(step));
  for (auto& [executable, plan] : others) *executable = prepare(std::move(plan));
}

Plan Trainer::plan_of(std::shared_ptr<const Graph> graph) const {
  return make_plan(std::move(graph), pipelines_.device().capabilities(), plan_);
}

std::unique_ptr<Executable> Trainer::prepare(Plan plan) {
  const double all = config_.accumulation > 1 || parts_.count() > 1 ? 5 : 2;  // with the one that tests
  GoOn preparing;
  if (preparing_) preparing = [&](double share) { return preparing_((prepared_ + share) / all); };
  auto made = std::make_unique<Executable>(*weights_, std::move(plan), &states_, preparing);
  ++prepared_;
  return made;
}

Trainer::~Trainer() = default;

bool Trainer::rounds() const {
  return std::ranges::any_of(step_plan().dispatches(), [](const Dispatch* dispatch) {
    return dispatch->shader->variant.starts_with("rounded");
  });
}

void Trainer::initialize(ConstantSource& weights) {
  finish();
  std::vector<float> values(layout_.elements);
  for (const auto& [parameter, first] : layout_.places) {
    const std::span<float> into = std::span(values).subspan(first, parameter.shape.elements());
    if (!init_low_rank(parameter, config_.seed, into)) read_floats(weights, parameter, into);
  }
  const std::vector<float> zeros(layout_.elements);
  for (const std::string& buffer : buffers()) {
    write(buffer, buffer == parameters_buffer || buffer == average_buffer ? values : zeros);
  }
  set_counts({});
  group_begins_ = true;
}

void Trainer::set_counts(const TrainerCounts& counts) {
  finish();
  counts_ = counts;
  known_updates_ = counts.updates;
  const auto made = static_cast<uint32_t>(counts.updates - counts.skipped);
  states_.write(updates_buffer, 0, std::as_bytes(std::span(&made, 1)));
}

std::vector<float> Trainer::parameter(const Parameter& parameter) {
  std::vector<float> values(parameter.shape.elements());
  const auto found = std::ranges::find(layout_.places, parameter.name,
                                       [](const ParameterPlace& place) { return place.parameter.name; });
  if (found == layout_.places.end()) {
    read_floats(frozen_, parameter, values);
  } else {
    finish();
    states_.read(result_buffer(config_), found->first * sizeof(float),
                 std::as_writable_bytes(std::span(values)));
  }
  return values;
}

uint64_t Trainer::base_checksum() const { return base_checksum_of(frozen_, config_); }

Trainer::FeatureSlot Trainer::feature_slot() {
  collect(set_);
  return {input_as<float>(*step_, "features", set_), input_as<uint32_t>(*step_, "labels", set_)};
}

Trainer::Slot Trainer::slot_of(Executable& executable, uint32_t set, std::span<uint32_t> labels) {
  Slot slot{.labels = labels};
  if (images_ == StepImages::numbers) {
    slot.images = input_as<float>(executable, "image", set);
    return slot;
  }
  if (pictures_ && on_host_) {
    slot.pictures = pictures_.get();
    slot.pictures->write_to(input_as<float>(executable, "image", set));
    return slot;
  }
  std::ranges::copy(values_, input_as<float>(executable, "values", set).begin());
  if (images_ == StepImages::bytes) {
    const ViTConfig& c = config_.model;
    slot.bytes = input_as<uint8_t>(executable, "bytes", set)
                     .first(config_.batch_size * c.channels * c.image_height * c.image_width);
  } else {
    slot.pictures = pictures_.get();
  }
  return slot;
}

Trainer::Slot Trainer::slot() {
  collect(set_);
  Slot slot = slot_of(*step_, set_, input_as<uint32_t>(*step_, "labels", set_));
  slot.weights = sample_weights_;
  return slot;
}

void Trainer::complete(const Slot& slot, uint64_t samples) {
  const auto clear = [&](auto images) {
    using Number = typename decltype(images)::value_type;
    std::ranges::fill(images.subspan(samples * (images.size() / config_.batch_size)), Number{0});
  };
  clear(slot.images);
  clear(slot.bytes);
  if (slot.pictures) slot.pictures->flush();
}

void Trainer::write_step(Executable& executable, uint32_t set, uint64_t pass, uint64_t part) {
  static_assert(Executable::io_sets <= VITRINE_STEP_CANDIDATE_COUNT);
  const std::span<uint32_t> step = input_as<uint32_t>(executable, "step", set);
  const uint64_t made = known_updates_ - counts_.skipped, open = counts_.updates - known_updates_;
  if (open >= VITRINE_STEP_CANDIDATE_COUNT) {
    throw Error(ErrorCode::failed, std::to_string(open) + " updates are under way, fewer were expected");
  }
  const auto correction = [](double beta, uint64_t before) {
    return std::bit_cast<uint32_t>(
        static_cast<float>(1 / (1 - std::pow(beta, static_cast<double>(before + 1)))));
  };
  std::ranges::fill(step, 0u);
  step[VITRINE_STEP_SEED_LOW] = static_cast<uint32_t>(config_.seed);
  step[VITRINE_STEP_SEED_HIGH] = static_cast<uint32_t>(config_.seed >> 32);
  step[VITRINE_STEP_NUMBER] = static_cast<uint32_t>(pass * parts_.count() + part);
  step[VITRINE_STEP_RATE] =
      std::bit_cast<uint32_t>(static_cast<float>(learning_rate(config_, counts_.updates, total_updates_)));
  step[VITRINE_STEP_MOMENT1] = correction(config_.beta1, made + open);
  step[VITRINE_STEP_MOMENT2] = correction(config_.beta2, made + open);
  step[VITRINE_STEP_UPDATES] = static_cast<uint32_t>(made);
  for (uint32_t i = 0; i < VITRINE_STEP_CANDIDATE_COUNT; ++i) {
    step[VITRINE_STEP_CANDIDATES + 2 * i] = correction(config_.beta1, made + i);
    step[VITRINE_STEP_CANDIDATES + 2 * i + 1] = correction(config_.beta2, made + i);
  }
}

void Trainer::hand_over(Executable& executable, uint32_t set) {
  if (!go_on_ || executable.plan().slice_count <= 1) {
    executable.submit(set);
  } else if (!executable.run_sliced([&](double) { return go_on_(); }, set)) {
    throw Interrupted();
  }
}

void Trainer::submit_step(const PartShare& share, uint64_t pass) {
  const auto [samples, group_samples] = std::pair{share.samples, share.group_samples};
  if (samples == 0 || samples > config_.batch_size || group_samples < samples) {
    throw Error(ErrorCode::usage, "a batch of " + std::to_string(samples) + " samples out of " +
                                      std::to_string(group_samples) + " was submitted, 1 to " +
                                      std::to_string(config_.batch_size) + " were expected");
  }
  // What lies behind the samples that count has weight 0, and must be finite for that to be nothing.
  if (from_features_) {
    const FeatureSlot filled = feature_slot();
    std::ranges::fill(filled.features.subspan(samples * (filled.features.size() / config_.batch_size)), 0.0f);
    std::ranges::fill(filled.labels.subspan(samples), 0u);
  } else {
    const Slot filled = slot();
    complete(filled, samples);
    if (pictures_ && !on_host_ && config_.augmentation.on())
      std::ranges::copy(pictures_->operations(), input_as<uint32_t>(*step_, operations_input, set_).begin());
    std::ranges::fill(filled.labels.subspan(samples), 0u);
  }
  const std::span<float> weights = input_as<float>(*step_, "weights", set_);
  const auto weight = static_cast<float>(1.0 / static_cast<double>(group_samples));
  for (uint64_t i = 0; i < samples; ++i) weights[i] = weight * sample_weights_[i];
  std::ranges::fill(sample_weights_, 1.0f);
  std::ranges::fill(weights.subspan(samples), 0.0f);
  write_recipe_inputs(*step_, set_, config_, pass,
                      {.samples = samples,
                       .batch_samples = share.batch_samples ? share.batch_samples : samples,
                       .number = share.part,
                       .parts = parts_});
  write_step(*step_, set_, pass, share.part);
  hand_over(*step_, set_);
}

void Trainer::submit(const PartShare& share) {
  submit_step(share, counts_.passes);
  const bool last = share.last;
  Pending& pending = pending_[set_];
  pending = {.active = true, .samples = share.samples, .ends_batch = share.ends_batch};
  counts_.passes += share.ends_batch;
  if (update_) hand_over(group_begins_ ? *first_sum_ : *add_sum_, set_);
  group_begins_ = last;
  if (last) {
    pending.update = set_;
    if (update_) {
      update_->wait(update_set_);
      write_step(*update_, update_set_, counts_.passes, 0);
      hand_over(*update_, update_set_);
      pending.update = update_set_;
      update_set_ = (update_set_ + 1) % Executable::io_sets;
    }
    ++counts_.updates;
  }
  set_ = (set_ + 1) % Executable::io_sets;
}

void Trainer::submit_part(const PartShare& share, uint64_t pass) {
  if (open_parts_.size() >= Executable::io_sets)
    throw Error(ErrorCode::usage, "a part was submitted before those under way were taken");
  submit_step(share, pass);
  hand_over(*gradients_out_, set_);
  open_parts_.emplace_back(set_, share.samples);
  set_ = (set_ + 1) % Executable::io_sets;
}

PartResult Trainer::take_part(double& loss_sum) {
  const auto [set, samples] = open_parts_.at(0);
  gradients_out_->wait(set);
  step_->wait(set);
  PartResult result{.samples = samples};
  add_losses(set, samples, loss_sum);
  const std::span<const std::byte> bytes =
      gradients_out_->output(gradients_out_->output_index("gradients"), set);
  result.gradients = {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
  open_parts_.erase(open_parts_.begin());
  return result;
}

UpdateResult Trainer::update(std::span<const float> sums) {
  write(sums_buffer, sums);
  write_step(*update_, update_set_, counts_.passes, 0);
  hand_over(*update_, update_set_);
  ++counts_.updates;
  return updated(*update_, update_set_);
}

// Sample by sample, so that where a batch is cut changes nothing. Nothing is allocated from step to step.
void Trainer::add_losses(uint32_t set, uint64_t samples, double& sum) const {
  const std::span<const std::byte> losses = step_->output(step_->output_index("losses"), set);
  for (uint64_t i = 0; i < samples; ++i) {
    float loss = 0;
    std::memcpy(&loss, losses.data() + i * sizeof loss, sizeof loss);
    sum += loss;
  }
}

// What the update gave that this set has written.
UpdateResult Trainer::updated(Executable& executable, uint32_t set) {
  executable.wait(set);
  const std::span<const std::byte> clipping = executable.output(executable.output_index("clipping"), set);
  float norm = 0;
  std::memcpy(&norm, clipping.data() + sizeof norm, sizeof norm);
  ++known_updates_;
  const UpdateResult result{norm};
  counts_.skipped += result.skipped();
  return result;
}

void Trainer::collect(uint32_t set) {
  Pending& pending = pending_[set];
  if (!pending.active) return;
  step_->wait(set);
  pending.active = false;
  add_losses(set, pending.samples, batch_loss_sum_);
  batch_samples_ += pending.samples;
  if (!pending.ends_batch) return;
  const uint64_t samples = std::exchange(batch_samples_, 0);
  BatchResult& result = results_.emplace_back(
      BatchResult{std::exchange(batch_loss_sum_, 0) / static_cast<double>(samples), samples});
  if (pending.update) result.update = updated(update_ ? *update_ : *step_, *pending.update);
}

void Trainer::take_results(std::vector<BatchResult>& into) {
  into.assign(results_.begin(), results_.end());
  results_.clear();
}

void Trainer::finish() {
  // The older submission first.
  for (uint32_t i = 0; i < Executable::io_sets; ++i) collect((set_ + i) % Executable::io_sets);
  if (update_) {
    for (uint32_t i = 0; i < Executable::io_sets; ++i) update_->wait(i);
  }
}

Profile Trainer::profile_step() {
  finish();
  Profile profile = step_->profile();
  set_counts(counts_);
  return profile;
}

TestResult Trainer::test(const Fill& fill, const TakeResults& take) {
  finish();
  if (!test_) {
    test_ = prepare(*test_plan_);  // a copy: whoever stops this may ask for another test
    test_plan_.reset();
  }
  TestSums sums;
  go_through(*test_, "result", fill, [&](std::span<const float> results, std::span<const uint32_t> labels) {
    sums.add(results, labels);
    if (take) take(results, labels);
  });
  return sums.result();
}

Trainer::InF32 Trainer::in_f32(const Fill& fill, uint64_t pass) {
  finish();
  StepGraphOptions of_step{.images = given_images(images_, on_host_)};
  if (teacher_) of_step.teacher = teacher_->model;
  const F16RangeGraph range = make_f16_range_graph(config_, layout_, of_step);
  // Not preparing_: whoever stops a training that is under way wants to keep it.
  GoOn go_on;
  if (go_on_) go_on = [this](double) { return go_on_(); };
  Executable executable(*weights_, plan_of(range.graph), &states_, go_on);
  const std::span<uint32_t> labels = input_as<uint32_t>(executable, "labels", 0);
  const Slot slot = slot_of(executable, 0, labels);
  const auto samples = fill(slot);
  if (!samples) return {};
  complete(slot, *samples);
  if (pictures_ && !on_host_ && config_.augmentation.on())
    std::ranges::copy(pictures_->operations(), input_as<uint32_t>(executable, operations_input, 0).begin());
  std::ranges::fill(labels.subspan(*samples), 0u);
  write_recipe_inputs(executable, 0, config_, pass,
                      {.samples = *samples, .batch_samples = *samples, .parts = parts_});
  write_step(executable, 0, pass, 0);
  hand_over(executable, 0);
  executable.wait(0);
  const auto finite = [](float value) { return std::isfinite(value); };
  InF32 result;
  const std::vector<float> losses = output_of(executable, "losses", 0);
  result.finite = std::ranges::all_of(std::span(losses).first(*samples), finite);
  if (range.products.empty()) return result;
  const std::vector<float> magnitudes = output_of(executable, magnitudes_output, 0);
  const auto first = std::ranges::find_if(magnitudes, [](float value) { return !(value <= f16_safe); });
  if (first == magnitudes.end()) return result;
  result.product = range.products.at(static_cast<size_t>(first - magnitudes.begin()));
  result.largest = *first;
  return result;
}

std::string sentence_of(const Trainer::InF32& in_f32, uint64_t batch, uint64_t epoch) {
  std::string sentence = "f16 is why: in f32 the loss of batch " + std::to_string(batch) + " in epoch " +
                         std::to_string(epoch) + " is finite";
  if (!in_f32.product.empty()) {
    sentence += ", and " + in_f32.product + " multiplies numbers up to " + four_digits(in_f32.largest) +
                ", where f16 ends at 65504";
  }
  return sentence + "; a training with --precision f32 holds them";
}

void Trainer::features(const Fill& fill, const TakeResults& take) {
  finish();
  Executable executable(
      *weights_,
      plan_of(make_features_graph(config_, layout_, config_.batch_size, given_images(images_, on_host_))),
      &states_, preparing_);
  go_through(executable, "features", fill, take);
}

void Trainer::go_through(Executable& executable, std::string_view output, const Fill& fill,
                         const TakeResults& take) {
  const uint64_t batch = config_.batch_size;
  // The labels of what each set works on.
  std::vector<std::vector<uint32_t>> labels(Executable::io_sets);
  const auto collect_rows = [&](uint32_t set) {
    if (labels[set].empty()) return;
    executable.wait(set);
    const std::vector<float> rows = output_of(executable, output, set);
    take(std::span(rows).first(labels[set].size() * (rows.size() / batch)), labels[set]);
    labels[set].clear();
  };
  uint32_t set = 0;
  while (true) {
    collect_rows(set);
    std::vector<uint32_t> filled(batch);
    const Slot slot = slot_of(executable, set, filled);
    const auto samples = fill(slot);
    if (!samples) break;
    complete(slot, *samples);
    hand_over(executable, set);
    filled.resize(*samples);
    labels[set] = std::move(filled);
    set = (set + 1) % Executable::io_sets;
  }
  for (uint32_t i = 0; i < Executable::io_sets; ++i) collect_rows((set + i) % Executable::io_sets);
}

std::vector<std::string> Trainer::buffers() const {
  std::vector<std::string> names{std::string(parameters_buffer)};
  if (role_ == TrainerRole::helper) return names;
  const bool sgd = config_.optimizer == Optimizer::sgd;
  if (!sgd || config_.momentum > 0) names.emplace_back(moment1_buffer);
  if (!sgd) names.emplace_back(moment2_buffer);
  if (config_.ema_decay > 0) names.emplace_back(average_buffer);
  return names;
}

std::string_view Trainer::gradients() const { return update_ ? sums_buffer : gradients_buffer; }

void Trainer::read(std::string_view buffer, std::span<float> values) {
  finish();
  states_.read(buffer, 0, std::as_writable_bytes(values));
}

void Trainer::write(std::string_view buffer, std::span<const float> values) {
  finish();
  states_.write(buffer, 0, std::as_bytes(values));
}

}  // namespace vitrine

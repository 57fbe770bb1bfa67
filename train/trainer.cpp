#include "train/trainer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "model/files/weights.h"
#include "runtime/tune/choice_store.h"
#include "runtime/util/error.h"
#include "shaders/lib/step_state.h"
#include "train/training_graph.h"

namespace vitrine {
namespace {

template <typename T>
std::span<T> input_as(Executable& executable, std::string_view name, uint32_t set) {
  const std::span<std::byte> bytes = executable.input(executable.input_index(name), set);
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

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
      config_(std::move(config)),
      images_(options.images),
      values_(images_ == StepImages::numbers ? std::vector<float>{}
                                             : preprocessing_of(config_).values(config_.model.channels)),
      total_updates_(total_updates),
      plan_(with_stored_choices(options.plan, pipelines.device().capabilities())),
      go_on_(options.go_on),
      preparing_(options.preparing),
      layout_(layout_of(config_.model)),
      states_(pipelines.device()),
      constants_(random_weights(config_.model, config_.seed)),
      weights_(std::make_unique<WeightStore>(pipelines, *constants_)),
      pending_(Executable::io_sets) {
  results_.reserve(16);
  const bool accumulates = config_.accumulation > 1;
  // All plans come before the first buffer: how far behind its end one may be read depends on the model's
  // sizes and on the kernels that were chosen, and is the most that any plan says.
  Plan step = plan_of(make_step_graph(
      config_, layout_, {.update = !accumulates, .recompute = options.recompute, .images = images_}));
  test_plan_ = plan_of(make_test_graph(config_, layout_, config_.batch_size, images_));
  uint64_t tail = std::max(step.tail_bytes, test_plan_->tail_bytes);
  std::vector<Plan> others;
  if (accumulates) {
    others = {plan_of(make_first_sum_graph(layout_)), plan_of(make_add_sum_graph(layout_)),
              plan_of(make_update_graph(config_, layout_))};
  }
  for (const Plan& plan : others) tail = std::max(tail, plan.tail_bytes);

  const uint64_t bytes = layout_.elements * sizeof(float);
  for (const std::string& buffer : buffers()) states_.make(buffer, bytes, tail);
  states_.make(std::string(gradients_buffer), bytes, tail);
  if (accumulates) states_.make(std::string(sums_buffer), bytes, tail);

  if (images_ == StepImages::pictures) {
    const uint64_t pixels = config_.batch_size * config_.model.image_height * config_.model.image_width;
    states_.make(std::string(pictures_buffer), pixels * sizeof(uint32_t), tail);
    pictures_ = std::make_unique<PictureFeed>(
        pipelines_, *weights_, states_, config_, plan_, options.pixels_at_once,
        [this](Executable& executable, uint32_t set) { hand_over(executable, set); });
  }

  step_ = prepare(std::move(step));
  if (accumulates) {
    first_sum_ = prepare(std::move(others[0]));
    add_sum_ = prepare(std::move(others[1]));
    update_ = prepare(std::move(others[2]));
  }
}

Plan Trainer::plan_of(std::shared_ptr<const Graph> graph) const {
  return make_plan(std::move(graph), pipelines_.device().capabilities(), plan_);
}

std::unique_ptr<Executable> Trainer::prepare(Plan plan) {
  const double all = config_.accumulation > 1 ? 5 : 2;  // with the one that tests
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
    std::byte* to = reinterpret_cast<std::byte*>(values.data() + first);
    uint64_t room = parameter.shape.elements() * sizeof(float);
    for (const ConstantPart& part : weights.find(parameter.name, parameter.shape, DType::f32)) {
      if (part.dtype != DType::f32 || part.bytes.size() > room) {
        throw Error(ErrorCode::bad_file, "'" + parameter.name + "' is stored as " +
                                             std::string(name_of(part.dtype)) +
                                             ", training begins with f32 weights");
      }
      std::memcpy(to, part.bytes.data(), part.bytes.size());
      to += part.bytes.size();
      room -= part.bytes.size();
    }
  }
  write(parameters_buffer, values);
  std::ranges::fill(values, 0.0f);
  for (const std::string& buffer : buffers()) {
    if (buffer != parameters_buffer) write(buffer, values);
  }
  counts_ = {};
  group_begins_ = true;
}

Trainer::Slot Trainer::slot_of(Executable& executable, uint32_t set, std::span<uint32_t> labels) {
  Slot slot{.labels = labels};
  if (images_ == StepImages::numbers) {
    slot.images = input_as<float>(executable, "image", set);
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
  return slot_of(*step_, set_, input_as<uint32_t>(*step_, "labels", set_));
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

void Trainer::write_step(Executable& executable, uint32_t set) {
  const std::span<uint32_t> step = input_as<uint32_t>(executable, "step", set);
  const auto update = static_cast<double>(counts_.updates + 1);
  const auto correction = [&](double beta) {
    return std::bit_cast<uint32_t>(static_cast<float>(1 / (1 - std::pow(beta, update))));
  };
  std::ranges::fill(step, 0u);
  step[VITRINE_STEP_SEED_LOW] = static_cast<uint32_t>(config_.seed);
  step[VITRINE_STEP_SEED_HIGH] = static_cast<uint32_t>(config_.seed >> 32);
  step[VITRINE_STEP_NUMBER] = static_cast<uint32_t>(counts_.passes);
  step[VITRINE_STEP_RATE] =
      std::bit_cast<uint32_t>(static_cast<float>(learning_rate(config_, counts_.updates, total_updates_)));
  step[VITRINE_STEP_MOMENT1] = correction(config_.beta1);
  step[VITRINE_STEP_MOMENT2] = correction(config_.beta2);
}

void Trainer::hand_over(Executable& executable, uint32_t set) {
  if (!go_on_ || executable.plan().slice_count <= 1) {
    executable.submit(set);
  } else if (!executable.run_sliced([&](double) { return go_on_(); }, set)) {
    throw Interrupted();
  }
}

void Trainer::submit(uint64_t samples, uint64_t group_samples, bool last) {
  if (samples == 0 || samples > config_.batch_size || group_samples < samples) {
    throw Error(ErrorCode::usage, "a batch of " + std::to_string(samples) + " samples out of " +
                                      std::to_string(group_samples) + " was submitted, 1 to " +
                                      std::to_string(config_.batch_size) + " were expected");
  }
  const Slot filled = slot();
  // What lies behind the samples that count has weight 0, and must be finite for that to be nothing.
  complete(filled, samples);
  std::ranges::fill(filled.labels.subspan(samples), 0u);
  const std::span<float> weights = input_as<float>(*step_, "weights", set_);
  const auto weight = static_cast<float>(1.0 / static_cast<double>(group_samples));
  std::ranges::fill(weights.first(samples), weight);
  std::ranges::fill(weights.subspan(samples), 0.0f);
  write_step(*step_, set_);
  hand_over(*step_, set_);
  pending_[set_] = {.active = true, .samples = samples};
  ++counts_.passes;
  if (update_) hand_over(group_begins_ ? *first_sum_ : *add_sum_, set_);
  set_ = (set_ + 1) % Executable::io_sets;
  group_begins_ = last;
  if (!last) return;
  if (update_) {
    update_->wait(update_set_);
    write_step(*update_, update_set_);
    hand_over(*update_, update_set_);
    update_set_ = (update_set_ + 1) % Executable::io_sets;
  }
  ++counts_.updates;
}

void Trainer::collect(uint32_t set) {
  Pending& pending = pending_[set];
  if (!pending.active) return;
  step_->wait(set);
  pending.active = false;
  // Nothing is allocated from step to step.
  const std::span<const std::byte> losses = step_->output(step_->output_index("losses"), set);
  double sum = 0;
  for (uint64_t i = 0; i < pending.samples; ++i) {
    float loss = 0;
    std::memcpy(&loss, losses.data() + i * sizeof loss, sizeof loss);
    sum += loss;
  }
  results_.push_back({sum / static_cast<double>(pending.samples), pending.samples});
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
  return step_->profile();
}

TestResult Trainer::test(const std::function<std::optional<uint64_t>(const Slot&)>& fill,
                         const TakeResults& take) {
  finish();
  const uint64_t batch = config_.batch_size, classes = config_.model.classes;
  if (!test_) {
    test_ = prepare(*test_plan_);  // a copy: whoever stops this may ask for another test
    test_plan_.reset();
  }
  // The labels of what each set works on.
  std::vector<std::vector<uint32_t>> labels(Executable::io_sets);
  TestSums sums;
  const auto collect_test = [&](uint32_t set) {
    if (labels[set].empty()) return;
    test_->wait(set);
    const std::vector<float> results = output_of(*test_, "result", set);
    const auto counted = std::span(results).first(labels[set].size() * classes);
    sums.add(counted, labels[set]);
    if (take) take(counted, labels[set]);
    labels[set].clear();
  };
  uint32_t set = 0;
  while (true) {
    collect_test(set);
    std::vector<uint32_t> filled(batch);
    const Slot slot = slot_of(*test_, set, filled);
    const auto samples = fill(slot);
    if (!samples) break;
    complete(slot, *samples);
    hand_over(*test_, set);
    filled.resize(*samples);
    labels[set] = std::move(filled);
    set = (set + 1) % Executable::io_sets;
  }
  for (uint32_t i = 0; i < Executable::io_sets; ++i) collect_test((set + i) % Executable::io_sets);
  return sums.result();
}

std::vector<std::string> Trainer::buffers() const {
  std::vector<std::string> names{std::string(parameters_buffer)};
  const bool sgd = config_.optimizer == Optimizer::sgd;
  if (!sgd || config_.momentum > 0) names.emplace_back(moment1_buffer);
  if (!sgd) names.emplace_back(moment2_buffer);
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

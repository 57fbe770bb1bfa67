#include "model/run/picture_runner.h"

#include <algorithm>
#include <utility>

#include "model/run/runner.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

// Batches of other sizes and pictures of other sizes ask for recordings of their own, each with memory of
// its own.
constexpr size_t most_recordings = 4;

}  // namespace

PictureRunner::PictureRunner(PipelineStore& pipelines, const Model& model, Preprocess preprocess,
                             PictureRunnerOptions options, Take take)
    : pipelines_(pipelines),
      model_(model),
      preprocess_(std::move(preprocess)),
      options_(std::move(options)),
      take_(std::move(take)),
      weights_(pipelines, *model.constants),
      largest_(PictureCapacity::largest(pipelines.device().capabilities(), preprocess_.width())),
      probed_(PictureCapacity::covering({}, largest_)),
      guard_(
          pipelines, model, [this](uint64_t batch) { return graph_options(batch, probed_); }, options_.plan,
          options_.warn),
      values_(preprocess_.values(model.config.channels)) {
  require_size(preprocess_, model.config.image_height, model.config.image_width);
  options_.batch = fitting_batch(weights_, std::max<uint64_t>(options_.batch, 1), [&](uint64_t batch) {
    return plan(batch, PictureCapacity::covering({}, largest_));
  });
}

PictureRunner::~PictureRunner() = default;

ViTGraphOptions PictureRunner::graph_options(uint64_t batch, const PictureCapacity& capacity) const {
  ViTGraphOptions options{
      .batch = batch, .dtype = options_.dtype, .result = options_.result, .layers = options_.layers};
  options.image = [this, batch, capacity](Graph& graph) {
    return add_picture_input(graph, preprocess_, model_.config.channels, batch, capacity).image;
  };
  return options;
}

Plan PictureRunner::plan(uint64_t batch, const PictureCapacity& capacity) {
  return guard_.plan(graph_options(batch, capacity));
}

PictureRunner::Recording& PictureRunner::recording(uint64_t batch, const ResampleNeeds& needs) {
  const PictureCapacity wanted = PictureCapacity::covering(needs, largest_);
  // One with up to four times the room does: what isn't used costs little.
  const auto suits = [&](const Recording& r) {
    return r.batch == batch && r.promoted == guard_.promoted() && r.capacity.holds(needs) &&
           r.capacity.pixels <= 4 * wanted.pixels && r.capacity.blocks <= 4 * wanted.blocks;
  };
  auto found = std::ranges::find_if(recordings_, suits);
  if (found == recordings_.end()) {
    if (recordings_.size() >= most_recordings) drop_oldest_recording();
    auto made = std::make_unique<Executable>(weights_, plan(batch, wanted));
    recordings_.push_back({batch, wanted, std::move(made), 0, guard_.promoted()});
    found = recordings_.end() - 1;
  }
  found->last_use = ++uses_;
  return *found;
}

void PictureRunner::drop_oldest_recording() {
  const auto oldest = std::ranges::min_element(recordings_, {}, &Recording::last_use);
  for (uint32_t i = 0; i < Executable::io_sets; ++i) {
    const uint32_t set = (next_set_ + i) % Executable::io_sets;
    if (flights_[set].executable == oldest->executable.get()) land(set);
  }
  recordings_.erase(oldest);
}

PicturePart PictureRunner::prepare(Picture picture, const std::string& name) const {
  return prepare_part(preprocess_, std::move(picture), largest_, name);
}

uint64_t PictureRunner::add(PicturePart part) {
  const ResampleNeeds needs = resample_needs(part.prepared.resample);
  ResampleNeeds together = pending_needs_;
  together += needs;
  if (!pending_.empty() && !largest_.holds(together)) {
    submit();
    together = needs;
  }
  pending_.push_back(std::move(part));
  pending_needs_ = together;
  const uint64_t number = added_++;
  if (pending_.size() >= options_.batch) submit();
  return number;
}

void PictureRunner::submit() {
  if (pending_.empty()) return;
  // The other set's batch stays with the device meanwhile: it has work while the host copies.
  const uint32_t set = next_set_;
  land(set);
  if (options_.check_range) {
    check_range(PictureCapacity::covering(pending_needs_, largest_), pending_.size(),
                [&](Executable& probe) { write_picture_input(probe, 0, pending_, values_); });
  }
  const Recording& next = recording(pending_.size(), pending_needs_);
  write_picture_input(*next.executable, set, pending_, values_);
  next.executable->submit(set);
  flights_[set] = {next.executable.get(), added_ - pending_.size(), pending_.size(), next.capacity,
                   next.promoted};
  next_set_ = (set + 1) % Executable::io_sets;
  pending_.clear();
  pending_needs_ = {};
}

bool PictureRunner::check_range(const PictureCapacity& capacity, uint64_t batch,
                                const RangeGuard::Fill& fill) {
  if (!(capacity == probed_)) guard_.release();
  probed_ = capacity;
  return guard_.check(batch, fill);
}

// A batch whose results aren't finite, with the layers in f32 that f16 can't hold; null where that changes
// nothing. Its pictures are still where the device read them.
std::unique_ptr<Executable> PictureRunner::again(const Flight& flight, uint32_t set) {
  const auto copy_inputs = [&](Executable& to) {
    for (const ValueId id : flight.executable->plan().inputs) {
      const std::string& name = flight.executable->plan().graph->value(id).name;
      std::ranges::copy(flight.executable->input(flight.executable->input_index(name), set),
                        to.input(to.input_index(name)).begin());
    }
  };
  const bool promoted = check_range(flight.capacity, flight.count, copy_inputs);
  guard_.release();
  if (!promoted && flight.promoted == guard_.promoted()) return nullptr;
  auto executable = std::make_unique<Executable>(weights_, plan(flight.count, flight.capacity));
  copy_inputs(*executable);
  executable->run();
  return executable;
}

void PictureRunner::land(uint32_t set) {
  const Flight flight = std::exchange(flights_[set], {});
  if (!flight.executable) return;
  flight.executable->wait(set);
  const auto numbers_of = [](const Executable& executable, uint32_t of_set) {
    const auto bytes = executable.output(0, of_set);
    return std::span(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
  };
  std::span<const float> numbers = numbers_of(*flight.executable, set);
  std::unique_ptr<Executable> repeated;
  if (options_.dtype == DType::f16 && !all_finite(numbers)) repeated = again(flight, set);
  if (repeated) numbers = numbers_of(*repeated, 0);
  const uint64_t each = numbers.size() / flight.count;
  for (uint64_t i = 0; i < flight.count; ++i) take_(flight.first + i, numbers.subspan(i * each, each));
}

void PictureRunner::finish() {
  submit();
  for (uint32_t i = 0; i < Executable::io_sets; ++i) land((next_set_ + i) % Executable::io_sets);
}

}  // namespace vitrine

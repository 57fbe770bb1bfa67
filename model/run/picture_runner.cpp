#include "model/run/picture_runner.h"

#include <algorithm>
#include <utility>

#include "model/run/runner.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

// Batches of other sizes and pictures of other sizes ask for recordings of their own, each with memory of
// its own.
constexpr size_t most_recordings = 4, most_recordings_of_shapes = 8;

// Batches of pictures that wait for others of their shape.
constexpr uint64_t most_waiting = 8;

// Of pictures that keep their shape, a row of patches is the widest.
uint64_t largest_width(const Preprocess& p) {
  return p.kept_shape ? p.kept_shape->patch * p.kept_shape->most_patches : p.width();
}

}  // namespace

PictureRunner::PictureRunner(PipelineStore& pipelines, const Model& model, Preprocess preprocess,
                             PictureRunnerOptions options, Take take)
    : model_(model),
      preprocess_(std::move(preprocess)),
      options_(std::move(options)),
      take_(std::move(take)),
      weights_(options_.weights ? options_.weights
                                : std::make_shared<WeightStore>(pipelines, *model.constants)),
      largest_(PictureCapacity::largest(pipelines.device().capabilities(), largest_width(preprocess_))),
      probed_(PictureCapacity::covering({}, largest_)),
      probed_grid_(own_grid()),
      guard_(
          pipelines, model, [this](uint64_t batch) { return graph_options(batch, probed_, probed_grid_); },
          options_.plan, options_.warn),
      values_(preprocess_.values(model.config.channels)) {
  require_size(preprocess_, model.config.image_height, model.config.image_width);
  if (preprocess_.kept_shape && result() == Result::tokens) {
    throw Error(ErrorCode::usage, preprocess_.profile +
                                      ": pictures that keep their shape have different numbers of tokens, "
                                      "expected a result that is one row a picture");
  }
  // As many patches as any picture may have, whose shape hardly matters to a plan's memory.
  const Grid grid = preprocess_.kept_shape ? Grid{1, preprocess_.kept_shape->most_patches} : own_grid();
  options_.batch = fitting_batch(*weights_, std::max<uint64_t>(options_.batch, 1), [&](uint64_t batch) {
    return plan(batch, PictureCapacity::covering({}, largest_), grid);
  });
}

PictureRunner::~PictureRunner() = default;

Grid PictureRunner::own_grid() const { return vitrine::grid_of(model_.config); }

Grid PictureRunner::grid_of(const PicturePart& part) const {
  if (!preprocess_.kept_shape) return own_grid();
  const ResamplePicture& resample = part.prepared.resample;
  return {resample.rows.lines.size() / preprocess_.kept_shape->patch,
          resample.columns.lines.size() / preprocess_.kept_shape->patch};
}

ViTGraphOptions PictureRunner::graph_options(uint64_t batch, const PictureCapacity& capacity,
                                             Grid grid) const {
  ViTGraphOptions options{
      .batch = batch, .dtype = options_.dtype, .result = options_.result, .layers = options_.layers};
  Preprocess preprocess = preprocess_;
  if (!(grid == own_grid())) {
    options.grid = grid;
    preprocess = preprocess.with_size(grid.height * model_.config.patch_height,
                                      grid.width * model_.config.patch_width);
  }
  options.image = [this, batch, capacity, preprocess](Graph& graph) {
    return add_picture_input(graph, preprocess, model_.config.channels, batch, capacity).image;
  };
  return options;
}

Plan PictureRunner::plan(uint64_t batch, const PictureCapacity& capacity, Grid grid) {
  return guard_.plan(graph_options(batch, capacity, grid));
}

PictureRunner::Recording& PictureRunner::recording(uint64_t batch, const ResampleNeeds& needs, Grid grid) {
  const PictureCapacity wanted = PictureCapacity::covering(needs, largest_);
  // One with up to four times the room does: what isn't used costs little.
  const auto suits = [&](const Recording& r) {
    return r.batch == batch && r.grid == grid && r.promoted == guard_.promoted() && r.capacity.holds(needs) &&
           r.capacity.pixels <= 4 * wanted.pixels && r.capacity.blocks <= 4 * wanted.blocks;
  };
  auto found = std::ranges::find_if(recordings_, suits);
  if (found == recordings_.end()) {
    const size_t most = preprocess_.kept_shape ? most_recordings_of_shapes : most_recordings;
    if (recordings_.size() >= most) drop_oldest_recording();
    auto made = std::make_unique<Executable>(*weights_, plan(batch, wanted, grid));
    recordings_.push_back({batch, wanted, grid, std::move(made), 0, guard_.promoted()});
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
  const Preprocess preprocess = preprocess_.of_picture(picture.height, picture.width);
  return prepare_part(preprocess, std::move(picture), largest_, name);
}

uint64_t PictureRunner::add(PicturePart part) {
  const ResampleNeeds needs = resample_needs(part.prepared.resample);
  const Grid grid = grid_of(part);
  const auto with = [&](ResampleNeeds sum) { return sum += needs; };
  if (!pending_[grid].parts.empty() && !largest_.holds(with(pending_[grid].needs))) submit(grid);
  Pending& pending = pending_[grid];
  pending.needs = with(pending.needs);
  pending.parts.push_back(std::move(part));
  const uint64_t number = added_++;
  pending.numbers.push_back(number);
  ++waiting_;
  if (pending.parts.size() >= options_.batch) {
    submit(grid);
  } else if (waiting_ >= most_waiting * options_.batch) {
    submit_oldest();
  }
  return number;
}

void PictureRunner::submit_oldest() {
  if (pending_.empty()) return;
  submit(std::ranges::min_element(pending_, {}, [](const auto& of_grid) {
           return of_grid.second.numbers.front();
         })->first);
}

void PictureRunner::submit(Grid grid) {
  Pending pending = std::move(pending_.at(grid));
  pending_.erase(grid);
  waiting_ -= pending.parts.size();
  // The other set's batch stays with the device meanwhile: it has work while the host copies.
  const uint32_t set = next_set_;
  land(set);
  if (options_.check_range) {
    check_range(PictureCapacity::covering(pending.needs, largest_), grid, pending.parts.size(),
                [&](Executable& probe) { write_picture_input(probe, 0, pending.parts, values_); });
  }
  const Recording& next = recording(pending.parts.size(), pending.needs, grid);
  write_picture_input(*next.executable, set, pending.parts, values_);
  next.executable->submit(set);
  flights_[set] = {next.executable.get(), std::move(pending.numbers), next.capacity, grid, next.promoted};
  next_set_ = (set + 1) % Executable::io_sets;
}

bool PictureRunner::check_range(const PictureCapacity& capacity, Grid grid, uint64_t batch,
                                const RangeGuard::Fill& fill) {
  if (!(capacity == probed_ && grid == probed_grid_)) guard_.release();
  probed_ = capacity;
  probed_grid_ = grid;
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
  const bool promoted = check_range(flight.capacity, flight.grid, flight.numbers.size(), copy_inputs);
  guard_.release();
  if (!promoted && flight.promoted == guard_.promoted()) return nullptr;
  auto executable =
      std::make_unique<Executable>(*weights_, plan(flight.numbers.size(), flight.capacity, flight.grid));
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
  const uint64_t each = numbers.size() / flight.numbers.size();
  for (size_t i = 0; i < flight.numbers.size(); ++i)
    deliver(flight.numbers[i], numbers.subspan(i * each, each));
}

void PictureRunner::deliver(uint64_t number, std::span<const float> result) {
  if (number != delivered_) {
    early_.emplace(number, std::vector<float>(result.begin(), result.end()));
    return;
  }
  take_(delivered_++, result);
  for (auto next = early_.find(delivered_); next != early_.end(); next = early_.find(delivered_)) {
    take_(delivered_++, next->second);
    early_.erase(next);
  }
}

void PictureRunner::finish() {
  while (!pending_.empty()) submit_oldest();
  for (uint32_t i = 0; i < Executable::io_sets; ++i) land((next_set_ + i) % Executable::io_sets);
}

}  // namespace vitrine

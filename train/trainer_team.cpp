#include "train/trainer_team.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/util/error.h"

namespace vitrine {
namespace {

// A run of numbers that compilers make vectors of.
constexpr size_t run = 64;
// Less than this a thread is not worth its beginning.
constexpr size_t least_a_thread = size_t{1} << 18;
// What a host's memory gives is spent by so many.
constexpr size_t most_threads = 8;

void add_range(float* __restrict sums, const float* __restrict part, size_t count) {
  size_t i = 0;
  for (; i + run <= count; i += run) {
    for (size_t k = 0; k < run; ++k) sums[i + k] += part[i + k];
  }
  for (; i < count; ++i) sums[i] += part[i];
}

}  // namespace

void add_gradients(std::span<float> sums, std::span<const float> part, bool first) {
  if (part.size() != sums.size()) {
    throw Error(ErrorCode::failed, std::to_string(part.size()) + " gradients were given, " +
                                       std::to_string(sums.size()) + " were expected");
  }
  const auto work = [&](size_t begin, size_t end) {
    if (first) {
      std::copy(part.begin() + static_cast<ptrdiff_t>(begin), part.begin() + static_cast<ptrdiff_t>(end),
                sums.begin() + static_cast<ptrdiff_t>(begin));
    } else {
      add_range(sums.data() + begin, part.data() + begin, end - begin);
    }
  };
  const size_t wanted = std::min<size_t>(most_threads, std::max(1u, std::thread::hardware_concurrency()));
  const size_t count = std::clamp<size_t>(sums.size() / least_a_thread, 1, wanted);
  const size_t each = (sums.size() / count + run) / run * run;
  std::vector<std::jthread> threads;
  size_t begin = 0;
  for (size_t i = 1; i < count && begin + each < sums.size(); ++i, begin += each) {
    try {
      threads.emplace_back(work, begin, begin + each);
    } catch (const std::system_error&) {
      break;  // the system gives no more threads; the rest is done here
    }
  }
  work(begin, sums.size());
}

// Says of which device an error is, where there are several.
template <typename Work>
auto TrainerTeam::on(size_t device, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (names_.size() <= 1 || error.code() != ErrorCode::failed) throw;
    throw Error(error.code(), names_[device] + ": " + error.what());
  }
}

TrainerTeam::TrainerTeam(PipelineStore& pipelines, std::span<PipelineStore* const> devices,
                         const TrainConfig& config, uint64_t total_updates, const TrainerOptions& options) {
  if (devices.empty()) {
    trainers_.push_back(std::make_unique<Trainer>(pipelines, config, total_updates, options));
    return;
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    TrainerOptions of_device = options;
    of_device.role = i == 0 ? TrainerRole::first : TrainerRole::helper;
    names_.push_back("device " + std::to_string(i + 1) + " of " + std::to_string(devices.size()) + ", " +
                     devices[i]->device().capabilities().name);
    trainers_.push_back(
        on(i, [&] { return std::make_unique<Trainer>(*devices[i], config, total_updates, of_device); }));
  }
  sums_.resize(first().layout().elements);
  if (devices.size() > 1) parameters_.resize(sums_.size());
}

PictureCapacity TrainerTeam::largest_picture() const {
  PictureCapacity least = first().largest_picture();
  for (const auto& trainer : trainers_) {
    const PictureCapacity& one = trainer->largest_picture();
    least.pixels = std::min(least.pixels, one.pixels);
    least.blocks = std::min(least.blocks, one.blocks);
    least.words = std::min(least.words, one.words);
  }
  return least;
}

Trainer& TrainerTeam::next() {
  if (alone()) return first();
  if (!std::exchange(up_to_date_, true)) bring_up_to_date();
  Trainer& trainer = *trainers_[next_];
  while (trainer.parts_under_way() >= Executable::io_sets) take_part();
  return trainer;
}

void TrainerTeam::submit(const PartShare& share) {
  if (alone()) return first().submit(share);
  Trainer& trainer = next();
  on(next_, [&] { trainer.submit_part(share, first().counts().passes); });
  parts_.push_back({next_, share});
  next_ = (next_ + 1) % trainers_.size();
  if (share.ends_batch) first().count_pass();
  if (!share.last) return;
  while (taken_ < parts_.size()) take_part();
  parts_.clear();
  taken_ = 0;
  next_ = 0;
  up_to_date_ = false;
  results_.back().update = on(0, [&] { return first().update(sums_); });
}

// Of all parts under way the oldest: the order in which they are added up is that in which they were cut.
void TrainerTeam::take_part() {
  const auto& [device, share] = parts_[taken_];
  const PartResult result = on(device, [&] { return trainers_[device]->take_part(loss_sum_); });
  add_gradients(sums_, result.gradients, taken_ == 0);
  ++taken_;
  samples_ += result.samples;
  if (!share.ends_batch) return;
  const uint64_t samples = std::exchange(samples_, 0);
  results_.push_back({std::exchange(loss_sum_, 0) / static_cast<double>(samples), samples});
}

void TrainerTeam::bring_up_to_date() {
  if (trainers_.size() < 2) return;
  on(0, [&] { first().read(parameters_buffer, parameters_); });
  for (size_t i = 1; i < trainers_.size(); ++i)
    on(i, [&] { trainers_[i]->write(parameters_buffer, parameters_); });
}

void TrainerTeam::take_results(std::vector<BatchResult>& into) {
  if (alone()) return first().take_results(into);
  into.assign(results_.begin(), results_.end());
  results_.clear();
}

void TrainerTeam::finish() {
  if (alone()) first().finish();
}

}  // namespace vitrine

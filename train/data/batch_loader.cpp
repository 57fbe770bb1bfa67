#include "train/data/batch_loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/util/error.h"
#include "train/data/epoch_order.h"

namespace vitrine {
namespace {

// What a thread takes at a time: enough that fetching the next is no work, few enough that a batch of
// photographs keeps all threads busy.
constexpr uint32_t rows_at_a_time = 8;

struct Slot {
  std::vector<uint8_t> pixels;
  std::vector<uint32_t> labels;
  Batch batch;
  std::shared_ptr<const EpochOrder> order;
  uint32_t rows_begun = 0, rows_done = 0;
  std::exception_ptr error;
  uint32_t error_row = 0;
};

SamplesOfClasses samples_of_classes(const Dataset& dataset) {
  SamplesOfClasses classes(dataset.classes());
  for (uint64_t i = 0; i < dataset.count(); ++i)
    classes[dataset.label(i)].push_back(static_cast<uint32_t>(i));
  std::erase_if(classes, [](const std::vector<uint32_t>& samples) { return samples.empty(); });
  return classes;
}

struct Rows {
  Slot* slot;
  uint32_t begin, end;
};

}  // namespace

struct BatchLoader::State {
  const Dataset& dataset;
  const LoaderOptions options;
  const BatchSizes sizes;
  const uint64_t sample_bytes;
  const bool moves;
  const SamplesOfClasses classes;  // where they are sampled from

  std::mutex mutex;
  std::condition_variable finished;  // a batch is there
  std::condition_variable room;      // another may be begun, or it is time to stop
  std::vector<Slot> ring;
  // Batches counted over all epochs.
  uint64_t begun, taken, end;
  std::shared_ptr<const EpochOrder> order;
  bool stop = false;
  std::vector<std::thread> threads;

  State(const Dataset& set, LoaderOptions given)
      : dataset(set),
        options(std::move(given)),
        sizes{set.count(), options.batch_size, options.drop_last},
        sample_bytes(set.shape().bytes()),
        moves(options.augmentation != Augmentation{}),
        classes(options.balanced ? samples_of_classes(set) : SamplesOfClasses()) {
    check();
    begun = taken = options.first_epoch * sizes.batches() + options.first_batch;
    end = options.end_epoch * sizes.batches();
    const uint64_t slots = std::max(1u, options.batches_ahead);
    ring.resize(std::min(slots, end - std::min(begun, end)));
    for (Slot& slot : ring) {
      slot.pixels.resize(sizes.size(0) * sample_bytes);
      slot.labels.resize(sizes.size(0));
    }
  }

  void check() const {
    const auto require = [&](bool holds, const std::string& found, const std::string& expected) {
      if (!holds)
        throw Error(ErrorCode::usage, dataset.name() + ": found " + found + ", expected " + expected);
    };
    const auto number = [](uint64_t n) { return std::to_string(n); };
    require(options.repeats != 0, "0 repeats", "at least 1");
    require(options.batch_size != 0, "a batch size of 0", "at least 1");
    require(sizes.batches() != 0, number(dataset.count()) + " samples, which make no whole batch",
            "at least " + number(options.batch_size));
    const size_t values = size_t{dataset.shape().channels} * 256;
    require(options.values.size() == values, number(options.values.size()) + " numbers for the bytes",
            number(values));
    require(options.first_batch < sizes.batches(), "a start at batch " + number(options.first_batch),
            "one below " + number(sizes.batches()));
    constexpr uint32_t most_padding = 65535;
    require(options.augmentation.crop_padding <= most_padding,
            "a padding of " + number(options.augmentation.crop_padding), "at most " + number(most_padding));
  }

  Slot& slot_of(uint64_t batch) { return ring[batch % ring.size()]; }

  // Under the mutex. Batches and rows are begun in order, so whoever waits for the oldest waits for work that
  // some thread is at.
  std::optional<Rows> next_rows() {
    if (ring.empty()) return std::nullopt;
    // begun is the batch that rows are taken from; the one before may still be in work.
    if (begun >= end || begun - taken >= ring.size()) return std::nullopt;
    Slot& slot = slot_of(begun);
    if (slot.rows_begun == 0) begin(slot, begun);
    const uint32_t first = slot.rows_begun, last = std::min(first + rows_at_a_time, slot.batch.size);
    slot.rows_begun = last;
    if (last == slot.batch.size) ++begun;
    return Rows{&slot, first, last};
  }

  void begin(Slot& slot, uint64_t number) {
    const auto epoch = static_cast<uint32_t>(number / sizes.batches());
    const uint64_t index = number % sizes.batches();
    if (!order || index == 0) order = make_order(epoch);
    slot.order = order;
    slot.batch = {epoch, index, sizes.size(index)};
  }

  EpochOrder order_of(uint32_t epoch) const {
    if (!options.shuffle) return EpochOrder::as_stored(dataset.count());
    if (options.balanced) return EpochOrder::balanced(classes, options.seed, epoch);
    return {dataset.count(), options.seed, epoch};
  }

  // Nothing if there is no memory for it.
  std::shared_ptr<const EpochOrder> make_order(uint32_t epoch) const {
    try {
      return std::make_shared<const EpochOrder>(order_of(epoch).repeated(options.repeats));
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  void work() {
    std::vector<uint8_t> sample;
    while (true) {
      std::unique_lock lock(mutex);
      std::optional<Rows> rows;
      room.wait(lock, [&] { return stop || (rows = next_rows()) || begun >= end; });
      if (!rows) return;
      lock.unlock();
      std::exception_ptr error;
      uint32_t row = rows->begin;
      try {
        for (; row < rows->end; ++row) read_row(*rows->slot, row, sample);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      Slot& slot = *rows->slot;
      if (error && (!slot.error || row < slot.error_row)) {
        slot.error = error;
        slot.error_row = row;
      }
      slot.rows_done += rows->end - rows->begin;
      if (slot.rows_done == slot.batch.size) finished.notify_one();
    }
  }

  void read_row(Slot& slot, uint32_t row, std::vector<uint8_t>& sample) const {
    if (!slot.order) throw std::bad_alloc();
    const uint64_t place_in_order = sizes.first(slot.batch.index) + row;
    const uint32_t i = slot.order->samples()[place_in_order];
    const std::span<uint8_t> pixels = std::span(slot.pixels).subspan(row * sample_bytes, sample_bytes);
    slot.labels[row] = dataset.label(i);
    if (!moves) return dataset.read(i, pixels);
    sample.resize(sample_bytes);
    dataset.read(i, sample);
    const uint32_t draw = slot.order->draw_number(place_in_order);
    place(sample, dataset.shape(), draw_placement(options.augmentation, options.seed, slot.batch.epoch, draw),
          pixels);
  }

  void write(const Slot& slot, std::span<float> images, std::span<uint32_t> labels) const {
    const uint64_t plane = dataset.shape().pixels();
    const uint8_t* from = slot.pixels.data();
    float* to = images.data();
    for (uint32_t row = 0; row < slot.batch.size; ++row) {
      for (uint32_t c = 0; c < dataset.shape().channels; ++c) {
        const float* values = &options.values[size_t{c} * 256];
        for (uint64_t p = 0; p < plane; ++p) *to++ = values[*from++];
      }
    }
    std::fill(to, images.data() + images.size(), 0.0f);
    const auto rest = std::copy_n(slot.labels.begin(), slot.batch.size, labels.begin());
    std::fill(rest, labels.end(), no_label);
  }

  void finish() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    room.notify_all();
    for (std::thread& thread : threads) thread.join();
  }
};

BatchLoader::BatchLoader(const Dataset& dataset, LoaderOptions options)
    : state_(std::make_unique<State>(dataset, std::move(options))) {
  const unsigned wanted = state_->options.threads;
  const unsigned count = wanted != 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
  try {
    for (unsigned i = 0; i < count; ++i)
      state_->threads.emplace_back([state = state_.get()] { state->work(); });
  } catch (const std::system_error&) {
    // The system gives no more threads; one is enough.
    if (state_->threads.empty()) {
      throw Error(ErrorCode::failed, "no thread for reading the data set could be started");
    }
  }
}

BatchLoader::~BatchLoader() { state_->finish(); }

uint64_t BatchLoader::batches() const { return state_->sizes.batches(); }

std::optional<Batch> BatchLoader::next(std::span<float> images, std::span<uint32_t> labels) {
  State& s = *state_;
  const size_t floats = s.options.batch_size * s.sample_bytes;
  if (images.size() != floats || labels.size() != s.options.batch_size) {
    throw Error(ErrorCode::usage, s.dataset.name() + ": found room for " + std::to_string(images.size()) +
                                      " numbers and " + std::to_string(labels.size()) + " labels, expected " +
                                      std::to_string(floats) + " and " +
                                      std::to_string(s.options.batch_size));
  }
  std::unique_lock lock(s.mutex);
  if (s.taken >= s.end) return std::nullopt;
  Slot& slot = s.slot_of(s.taken);
  s.finished.wait(lock, [&] { return slot.rows_done != 0 && slot.rows_done == slot.batch.size; });
  // Kept, so that whoever asks again hears it again.
  if (slot.error) std::rethrow_exception(slot.error);
  lock.unlock();
  s.write(slot, images, labels);
  const Batch batch = slot.batch;
  lock.lock();
  slot.rows_begun = slot.rows_done = 0;
  slot.order = nullptr;
  ++s.taken;
  lock.unlock();
  s.room.notify_all();
  return batch;
}

}  // namespace vitrine

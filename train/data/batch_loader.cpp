#include "train/data/batch_loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "model/pictures/host_resample.h"
#include "runtime/ops/pictures/host_operation.h"
#include "runtime/util/error.h"
#include "train/data/epoch_order.h"
#include "train/data/pixel_buffers.h"

namespace vitrine {
namespace {

// What a thread takes at a time: enough that fetching the next is no work, few enough that a batch of
// photographs keeps all threads busy.
constexpr uint32_t rows_at_a_time = 8;

struct Slot {
  std::vector<uint8_t> pixels;
  std::vector<std::optional<PicturePart>> parts;  // those that are there
  std::vector<uint32_t> labels;
  Batch batch;
  std::shared_ptr<const EpochOrder> order;
  uint32_t rows_begun = 0, rows_done = 0;
  uint32_t rows_taken = 0;  // of pictures
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

// What a thread needs for one picture after the other.
struct HostPixels {
  std::vector<uint32_t> resized, memory;
};

struct Rows {
  Slot* slot;
  uint32_t begin, end;
};

}  // namespace

struct BatchLoader::State {
  const Dataset& dataset;
  const LoaderOptions options;
  const uint32_t batch_rows;  // of a batch as it is given
  const PartSizes sizes;
  const uint64_t sample_bytes;
  const bool moves;
  const SamplesOfClasses classes;  // where they are sampled from
  const std::shared_ptr<PixelBuffers> results = std::make_shared<PixelBuffers>();

  std::mutex mutex;
  std::condition_variable finished;  // a batch is there
  std::condition_variable room;      // another may be begun, or it is time to stop
  std::vector<Slot> ring;
  // Batches counted over all epochs.
  uint64_t begun, taken, end;
  std::shared_ptr<const EpochOrder> order;
  uint64_t held_bytes = 0;  // of pictures that are there
  bool stop = false;
  std::chrono::steady_clock::duration waited{};  // by next(), of one thread at a time
  std::vector<std::thread> threads;

  State(const Dataset& set, LoaderOptions given)
      : dataset(set),
        options(std::move(given)),
        batch_rows(static_cast<uint32_t>(options.parts ? options.parts->part : options.batch_size)),
        sizes({set.count(), options.batch_size, options.drop_last},
              options.parts.value_or(BatchParts{.batch = options.batch_size, .part = options.batch_size})),
        sample_bytes(set.shape().bytes()),
        moves(options.augmentation.crop_padding != 0 || options.augmentation.flip),
        classes(options.balanced ? samples_of_classes(set) : SamplesOfClasses()) {
    check();
    begun = taken = options.first_epoch * sizes.parts() + options.first_batch;
    end = options.end_epoch * sizes.parts();
    const uint64_t slots = std::max(1u, options.batches_ahead);
    ring.resize(std::min(slots, end - std::min(begun, end)));
    for (Slot& slot : ring) {
      if (options.pictures) {
        slot.parts.resize(sizes.size(0));
      } else {
        slot.pixels.resize(sizes.size(0) * sample_bytes);
      }
      slot.labels.resize(sizes.size(0));
    }
  }

  void check() const {
    const auto number = [](uint64_t n) { return std::to_string(n); };
    require(options.repeats != 0, "0 repeats", "at least 1");
    require(options.batch_size != 0, "a batch size of 0", "at least 1");
    require(sizes.parts() != 0, number(dataset.count()) + " samples, which make no whole batch",
            "at least " + number(options.batch_size));
    require(options.first_batch < sizes.parts(), "a start at batch " + number(options.first_batch),
            "one below " + number(sizes.parts()));
    constexpr uint32_t most_padding = 65535;
    require(options.augmentation.crop_padding <= most_padding,
            "a padding of " + number(options.augmentation.crop_padding), "at most " + number(most_padding));
    require(options.pictures || !options.augmentation.resized_crop, "a random resized crop of bytes",
            "it of pictures");
    require(options.pictures || !options.augmentation.operations.on(), "an augmentation of bytes",
            "it of pictures");
  }

  // Until what next() gives is there.
  void wait_for(std::unique_lock<std::mutex>& lock, const std::function<bool()>& there) {
    if (there()) return;
    const auto start = std::chrono::steady_clock::now();
    finished.wait(lock, there);
    waited += std::chrono::steady_clock::now() - start;
  }

  Slot& slot_of(uint64_t batch) { return ring[batch % ring.size()]; }

  // Under the mutex. Batches and rows are begun in order, so whoever waits for the oldest waits for work that
  // some thread is at.
  std::optional<Rows> next_rows() {
    if (ring.empty()) return std::nullopt;
    // begun is the batch that rows are taken from; the one before may still be in work.
    if (begun >= end || begun - taken >= ring.size()) return std::nullopt;
    // Who waits for a picture that nobody has begun has taken all that were there.
    if (options.pictures && held_bytes > options.bytes_ahead) return std::nullopt;
    Slot& slot = slot_of(begun);
    if (slot.rows_begun == 0) begin(slot, begun);
    const uint32_t first = slot.rows_begun,
                   last = std::min(first + (options.pictures ? 1 : rows_at_a_time), slot.batch.size);
    slot.rows_begun = last;
    if (last == slot.batch.size) ++begun;
    return Rows{&slot, first, last};
  }

  void begin(Slot& slot, uint64_t number) {
    const auto epoch = static_cast<uint32_t>(number / sizes.parts());
    const uint64_t index = number % sizes.parts();
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
    HostPixels on_host;
    while (true) {
      std::unique_lock lock(mutex);
      std::optional<Rows> rows;
      room.wait(lock, [&] { return stop || (rows = next_rows()) || begun >= end; });
      if (!rows) return;
      lock.unlock();
      std::exception_ptr error;
      uint32_t row = rows->begin;
      std::optional<PicturePart> part;
      try {
        for (; row < rows->end; ++row) {
          if (options.pictures) {
            part = read_picture(*rows->slot, row, on_host);
          } else {
            read_row(*rows->slot, row, sample);
          }
        }
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      Slot& slot = *rows->slot;
      if (error && (!slot.error || row < slot.error_row)) {
        slot.error = error;
        slot.error_row = row;
      }
      if (part) {
        held_bytes += bytes_of(*part);
        slot.parts[rows->begin] = std::move(part);
      }
      slot.rows_done += rows->end - rows->begin;
      if (options.pictures || slot.rows_done == slot.batch.size) finished.notify_one();
    }
  }

  static uint64_t bytes_of(const PicturePart& part) { return part.picture->pixels.size(); }

  uint32_t sample_of(const Slot& slot, uint32_t row) const {
    if (!slot.order) throw std::bad_alloc();
    return slot.order->samples()[sizes.place(slot.batch.index, row)];
  }
  // What its crop and its mirroring are drawn by: a sample that comes again is drawn anew.
  uint32_t draw_of(const Slot& slot, uint32_t row) const {
    return slot.order->draw_number(sizes.place(slot.batch.index, row));
  }

  void read_row(Slot& slot, uint32_t row, std::vector<uint8_t>& sample) const {
    const uint32_t i = sample_of(slot, row);
    const std::span<uint8_t> pixels = std::span(slot.pixels).subspan(row * sample_bytes, sample_bytes);
    slot.labels[row] = dataset.label(i);
    if (!moves) return dataset.read(i, pixels);
    sample.resize(sample_bytes);
    dataset.read(i, sample);
    const CropPlacement placement =
        draw_placement(options.augmentation, options.seed, slot.batch.epoch, draw_of(slot, row));
    place(sample, dataset.shape(), placement, pixels);
  }

  PreparedPicture prepare(uint32_t height, uint32_t width, uint32_t epoch, uint32_t draw) const {
    if (const auto& crop = options.augmentation.resized_crop) {
      const PictureBox box = draw_box(*crop, height, width, options.seed, epoch, draw);
      return prepare_box(box, crop->filter, dataset.shape().height, dataset.shape().width);
    }
    const std::optional<Preprocess>& p = dataset.preprocess();
    return p ? prepare_picture(p->of_picture(height, width), height, width, dataset.name())
             : unchanged_picture(height, width);
  }

  std::vector<PictureOperation> operations_of(uint32_t epoch, uint32_t draw) const {
    const PictureAugmentation& augmentation = options.augmentation.operations;
    if (!augmentation.on()) return {};
    const SampleShape& shape = dataset.shape();
    return draw_picture_operations(augmentation, shape.width, shape.height, options.augmentation.fill,
                                   options.seed, epoch, draw);
  }

  // All that the device would do.
  PicturePart ready(const Picture& picture, const PreparedPicture& prepared,
                    std::span<const PictureOperation> operations, HostPixels& host) const {
    const SampleShape& shape = dataset.shape();
    resample_on_host(picture.pixels, picture.width, prepared, host.resized);
    for (const PictureOperation& operation : operations)
      apply_on_host(operation, host.resized, shape.width, shape.height, host.memory);
    return {.picture = results->share(picture_of(host.resized, shape.width, results->take()))};
  }

  PicturePart read_picture(Slot& slot, uint32_t row, HostPixels& host) const {
    const uint32_t i = sample_of(slot, row);
    slot.labels[row] = dataset.label(i);
    const uint32_t draw = draw_of(slot, row);
    PreparedPicture prepared;
    PicturePatch patch = dataset.patch(i, [&](uint32_t height, uint32_t width) -> ImageArea {
      prepared = prepare(height, width, slot.batch.epoch, draw);
      return {prepared.top, prepared.left, prepared.resample.height, prepared.resample.width};
    });
    prepared.top -= patch.top;
    prepared.left -= patch.left;
    if (moves) {
      prepared = placed(std::move(prepared),
                        draw_placement(options.augmentation, options.seed, slot.batch.epoch, draw));
    }
    const std::vector<PictureOperation> operations = operations_of(slot.batch.epoch, draw);
    if (options.on_host) return ready(*patch.picture, prepared, operations, host);
    PicturePart part = part_of(std::move(patch.picture), std::move(prepared), options.largest);
    const PictureAugmentation& augmentation = options.augmentation.operations;
    if (augmentation.on()) {
      const SampleShape& shape = dataset.shape();
      part.operations = operation_words(operations, augmentation.operations(), shape.width, shape.height);
    }
    return part;
  }

  void write(const Slot& slot, std::span<uint8_t> images) const {
    const auto rest = std::copy_n(slot.pixels.begin(), slot.batch.size * sample_bytes, images.begin());
    std::fill(rest, images.end(), uint8_t{0});
  }

  void write_labels(const Slot& slot, std::span<uint32_t> labels) const {
    const auto rest = std::copy_n(slot.labels.begin(), slot.batch.size, labels.begin());
    std::fill(rest, labels.end(), no_label);
  }

  void require(bool holds, const std::string& found, const std::string& expected) const {
    if (!holds) throw Error(ErrorCode::usage, dataset.name() + ": found " + found + ", expected " + expected);
  }

  // Under the mutex: the next batch is taken. Its slot is free for another.
  Batch give_back(Slot& slot) {
    const Batch batch = slot.batch;
    slot.rows_begun = slot.rows_done = slot.rows_taken = 0;
    slot.order = nullptr;
    ++taken;
    return batch;
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

uint64_t BatchLoader::batches() const { return state_->sizes.parts(); }

double BatchLoader::waited_seconds() const { return std::chrono::duration<double>(state_->waited).count(); }

std::optional<Batch> BatchLoader::next(std::span<uint8_t> images, std::span<uint32_t> labels) {
  State& s = *state_;
  const size_t bytes = s.batch_rows * s.sample_bytes;
  s.require(
      !s.options.pictures && images.size() == bytes && labels.size() == s.batch_rows,
      "room for " + std::to_string(images.size()) + " bytes and " + std::to_string(labels.size()) + " labels",
      s.options.pictures ? "pictures to be taken"
                         : std::to_string(bytes) + " and " + std::to_string(s.batch_rows));
  std::unique_lock lock(s.mutex);
  if (s.taken >= s.end) return std::nullopt;
  Slot& slot = s.slot_of(s.taken);
  s.wait_for(lock, [&] { return slot.rows_done != 0 && slot.rows_done == slot.batch.size; });
  // Kept, so that whoever asks again hears it again.
  if (slot.error) std::rethrow_exception(slot.error);
  lock.unlock();
  s.write(slot, images);
  s.write_labels(slot, labels);
  lock.lock();
  const Batch batch = s.give_back(slot);
  lock.unlock();
  s.room.notify_all();
  return batch;
}

std::optional<Batch> BatchLoader::next(const TakePicture& take, std::span<uint32_t> labels) {
  State& s = *state_;
  s.require(s.options.pictures && labels.size() == s.batch_rows,
            "pictures asked for with room for " + std::to_string(labels.size()) + " labels",
            s.options.pictures ? std::to_string(s.batch_rows) : "bytes to be taken");
  std::unique_lock lock(s.mutex);
  if (s.taken >= s.end) return std::nullopt;
  Slot& slot = s.slot_of(s.taken);
  // The batch has a size as soon as its first row is begun.
  for (uint32_t& row = slot.rows_taken; row == 0 || row < slot.batch.size; ++row) {
    const auto failed = [&] { return slot.error && slot.error_row <= row; };
    s.wait_for(lock, [&] { return slot.rows_begun > row && (slot.parts[row] || failed()); });
    if (failed()) std::rethrow_exception(slot.error);  // and so for whoever asks again
    PicturePart part = std::move(*slot.parts[row]);
    slot.parts[row].reset();
    s.held_bytes -= State::bytes_of(part);
    lock.unlock();
    s.room.notify_all();
    take(std::move(part));
    lock.lock();
  }
  s.write_labels(slot, labels);
  const Batch batch = s.give_back(slot);
  lock.unlock();
  s.room.notify_all();
  return batch;
}

}  // namespace vitrine

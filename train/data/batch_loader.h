// Batches ahead of whoever trains on them, made by several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "train/data/augmentation.h"
#include "train/data/batch_parts.h"
#include "train/data/dataset.h"

namespace vitrine {

struct LoaderOptions {
  uint32_t batch_size = 128;
  // Each batch comes in these parts, one after the other: what is said of batches below is said of them then.
  std::optional<BatchParts> parts;
  bool pictures = false;  // samples as pictures with what is to be done with them, not as bytes of one size
  bool drop_last = false;
  bool shuffle = true;    // anew each epoch; off takes the samples as they are stored
  bool balanced = false;  // see EpochOrder; with shuffle alone
  uint64_t repeats = 1;
  uint64_t seed = 0;
  Augmentation augmentation;

  // Where to begin, so that training can be taken up again, and the epoch to end before.
  uint32_t first_epoch = 0;
  uint64_t first_batch = 0;  // of that epoch
  uint32_t end_epoch = std::numeric_limits<uint32_t>::max();

  unsigned threads = 0;        // 0: as many as the machine has
  uint32_t batches_ahead = 4;  // that are in work or finished
  // Of pictures: how many bytes of them are held at once. The one that next() waits for is read whatever its
  // size.
  uint64_t bytes_ahead = uint64_t{512} << 20;
  // Pictures are resized, and what chance does to them is done, here: parts have the results alone.
  bool on_host = false;
  // What a device takes of one picture; one that needs more is resized here.
  PictureCapacity largest{.pixels = std::numeric_limits<uint64_t>::max(),
                          .blocks = std::numeric_limits<uint64_t>::max(),
                          .words = std::numeric_limits<uint64_t>::max()};
};

struct Batch {
  uint32_t epoch = 0;
  uint64_t index = 0;  // in the epoch
  uint32_t size = 0;   // its samples; fewer than batch_size in an epoch's last batch
};

// The label of rows that have no sample.
constexpr uint32_t no_label = std::numeric_limits<uint32_t>::max();

// The same batches in the same order, whatever the number of threads. Samples are read ahead, and they stay
// bytes: those of one size are moved and mirrored here; of pictures it is only decided what becomes of them.
class BatchLoader {
 public:
  // The data set must outlive the loader. Error(usage) where the options make no sense.
  BatchLoader(const Dataset& dataset, LoaderOptions options);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  uint64_t batches() const;  // of an epoch
  // That next() has waited so far for what was still being read and decoded.
  double waited_seconds() const;

  // Waits for the next batch and writes it: [batch_size, channels, height, width] bytes and [batch_size]
  // labels. Both are written once, from front to back, and never read, as mapped memory of a device
  // wants it. Rows past a small last batch become 0 and no_label. After an epoch's last batch comes the next
  // epoch's first; nothing after the last. A sample that cannot be read throws its error, in place of its
  // batch and of all that follow. To be called from one thread at a time.
  std::optional<Batch> next(std::span<uint8_t> images, std::span<uint32_t> labels);

  // The same of pictures, each given to `take` in its turn, as soon as it is there. Whatever was given before
  // an error is of a batch that will never be whole.
  using TakePicture = std::function<void(PicturePart part)>;
  std::optional<Batch> next(const TakePicture& take, std::span<uint32_t> labels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vitrine

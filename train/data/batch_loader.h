// Batches ahead of whoever trains on them, made by several threads.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "train/data/augmentation.h"
#include "train/data/dataset.h"

namespace vitrine {

struct LoaderOptions {
  uint32_t batch_size = 128;
  bool drop_last = false;
  bool shuffle = true;    // anew each epoch; off takes the samples as they are stored
  bool balanced = false;  // see EpochOrder; with shuffle alone
  uint64_t repeats = 1;
  uint64_t seed = 0;
  Augmentation augmentation;
  std::vector<float> values;  // [channels][256], of normalized_values() or Preprocess::values()

  // Where to begin, so that training can be taken up again, and the epoch to end before.
  uint32_t first_epoch = 0;
  uint64_t first_batch = 0;  // of that epoch
  uint32_t end_epoch = std::numeric_limits<uint32_t>::max();

  unsigned threads = 0;        // 0: as many as the machine has
  uint32_t batches_ahead = 4;  // that are in work or finished
};

struct Batch {
  uint32_t epoch = 0;
  uint64_t index = 0;  // in the epoch
  uint32_t size = 0;   // its samples; fewer than batch_size in an epoch's last batch
};

// The label of rows that have no sample.
constexpr uint32_t no_label = std::numeric_limits<uint32_t>::max();

// The same batches in the same order, whatever the number of threads. Samples are read, moved and mirrored
// ahead, as bytes; they become numbers when a batch is taken, where the caller wants them.
class BatchLoader {
 public:
  // The data set must outlive the loader. Error(usage) where the options make no sense.
  BatchLoader(const Dataset& dataset, LoaderOptions options);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  uint64_t batches() const;  // of an epoch

  // Waits for the next batch and writes it: images [batch_size, channels, height, width], labels
  // [batch_size]. Both are written once, from front to back, and never read, as mapped memory of a device
  // wants it. Rows past a small last batch become 0 and no_label. After an epoch's last batch comes the next
  // epoch's first; nothing after the last. A sample that cannot be read throws its error, in place of its
  // batch and of all that follow. To be called from one thread at a time.
  std::optional<Batch> next(std::span<float> images, std::span<uint32_t> labels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vitrine

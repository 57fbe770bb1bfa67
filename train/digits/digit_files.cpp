#include "train/digits/digit_files.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"
#include "train/digits/digit_colors.h"
#include "train/digits/digit_renderer.h"

namespace vitrine {
namespace {

void write_numbers(AtomicFile& file, std::initializer_list<uint32_t> numbers) {
  for (const uint32_t n : numbers) {
    const std::array bytes{static_cast<std::byte>(n >> 24), static_cast<std::byte>(n >> 16),
                           static_cast<std::byte>(n >> 8), static_cast<std::byte>(n)};
    file.write(bytes);
  }
}

// A part of a set, drawn by several threads; each takes the next picture that nobody has taken.
void draw_part(std::span<const FaceGroup> groups, const DigitSet& set, uint32_t which, uint64_t first,
               std::span<uint8_t> pictures, std::span<uint8_t> labels) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      DigitRenderer renderer(groups, set.size, set.seed, which, set.distortion);
      const size_t bytes = size_t{set.size} * set.size;
      for (size_t i = next++; i < labels.size(); i = next++)
        labels[i] = static_cast<uint8_t>(renderer.draw(first + i, pictures.subspan(i * bytes, bytes)));
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
      next = labels.size();
    }
  };
  const unsigned threads = set.threads != 0 ? set.threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  try {
    for (unsigned t = 1; t < threads; ++t) others.emplace_back(work);
  } catch (const std::system_error&) {
    // The system gives no more threads; this one is enough.
  }
  work();
  for (std::thread& thread : others) thread.join();
  if (error) std::rethrow_exception(error);
}

// The files of a split while they grow.
class SplitFiles {
 public:
  virtual ~SplitFiles() = default;
  virtual void write(std::span<const uint8_t> pictures, std::span<const uint8_t> labels) = 0;
  virtual void commit() = 0;
};

class MnistFiles : public SplitFiles {
 public:
  MnistFiles(const std::filesystem::path& folder, const std::string& prefix, uint32_t count, uint32_t size)
      : pictures_(folder / (prefix + "-images-idx3-ubyte")),
        labels_(folder / (prefix + "-labels-idx1-ubyte")) {
    write_numbers(pictures_, {0x803, count, size, size});
    write_numbers(labels_, {0x801, count});
  }

  void write(std::span<const uint8_t> pictures, std::span<const uint8_t> labels) override {
    pictures_.write(std::as_bytes(pictures));
    labels_.write(std::as_bytes(labels));
  }

  void commit() override {
    pictures_.commit();
    labels_.commit();
  }

 private:
  AtomicFile pictures_, labels_;
};

constexpr uint32_t cifar_training_files = 5;

// Records of a label and the pixels of three colors.
class CifarFiles : public SplitFiles {
 public:
  CifarFiles(const std::filesystem::path& folder, const DigitSet& set, uint32_t which)
      : set_(set), which_(which) {
    if (which == 1) {
      files_.emplace_back(folder / "test_batch.bin");
      ends_ = {set.test};
      return;
    }
    for (uint32_t i = 0; i < cifar_training_files; ++i) {
      files_.emplace_back(folder / ("data_batch_" + std::to_string(i + 1) + ".bin"));
      ends_.push_back(uint64_t{set.train} * (i + 1) / cifar_training_files);
    }
  }

  void write(std::span<const uint8_t> pictures, std::span<const uint8_t> labels) override {
    const size_t bytes = pictures.size() / labels.size();
    std::vector<uint8_t> record(1 + 3 * bytes);
    for (size_t i = 0; i < labels.size(); ++i, ++written_) {
      record[0] = labels[i];
      color_digit(pictures.subspan(i * bytes, bytes), set_.size, written_, labels[i],
                  {set_.seed, which_, set_.distortion, set_.tinted}, std::span(record).subspan(1));
      const auto file = std::ranges::upper_bound(ends_, written_) - ends_.begin();
      files_[static_cast<size_t>(file)].write(std::as_bytes(std::span(record)));
    }
  }

  void commit() override {
    for (AtomicFile& file : files_) file.commit();
  }

 private:
  DigitSet set_;
  uint32_t which_;
  std::deque<AtomicFile> files_;  // which can't be moved
  std::vector<uint64_t> ends_;    // the number of the first picture behind each file
  uint64_t written_ = 0;
};

void require_possible(const std::filesystem::path& folder, const DigitSet& set) {
  const bool cifar = set.format == DigitFormat::cifar10;
  if (const uint32_t side = fixed_size(set.format); side != 0 && set.size != side) {
    throw Error(ErrorCode::usage, "digits in CIFAR-10's format have 32 pixels a side, " +
                                      std::to_string(set.size) + " were asked for");
  }
  if (set.tinted && !cifar) {
    throw Error(ErrorCode::usage, "only digits in colors can be tinted, expected CIFAR-10's format");
  }
  if (cifar && set.train != 0 && set.train < cifar_training_files) {
    throw Error(ErrorCode::usage,
                "CIFAR-10's format has five training files, expected at least as many "
                "training pictures, or none, and not " +
                    std::to_string(set.train));
  }
  for (const char* other : cifar ? std::array{"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"}
                                 : std::array{"data_batch_1.bin", "test_batch.bin"}) {
    std::error_code ignored;
    if (std::filesystem::exists(folder / other, ignored)) {
      throw Error(ErrorCode::usage,
                  shown(folder / other) + " is of a data set in another format, expected another folder");
    }
  }
}

std::unique_ptr<SplitFiles> make_files(const std::filesystem::path& folder, const DigitSet& set,
                                       uint32_t which) {
  if (set.format == DigitFormat::cifar10) return std::make_unique<CifarFiles>(folder, set, which);
  return std::make_unique<MnistFiles>(folder, which == 0 ? "train" : "t10k",
                                      which == 0 ? set.train : set.test, set.size);
}

}  // namespace

void write_digits(const std::filesystem::path& folder, const DigitFonts& fonts, const DigitSet& set,
                  const std::function<void(uint64_t)>& progress) {
  require_possible(folder, set);
  make_folders(folder);
  std::vector<std::unique_ptr<SplitFiles>> files;
  uint64_t done = 0;
  for (const uint32_t which : {0u, 1u}) {
    const uint32_t count = which == 0 ? set.train : set.test;
    const std::vector<FaceGroup>& groups = which == 0 ? fonts.train : fonts.test;
    if (count == 0) continue;
    files.push_back(make_files(folder, set, which));
    constexpr uint64_t part_bytes = 200 << 10;  // a fraction of a second
    const uint64_t picture_bytes = uint64_t{set.size} * set.size;
    const uint64_t part = std::max<uint64_t>(part_bytes / picture_bytes, 1);
    for (uint64_t first = 0; first < count; first += part) {
      std::vector<uint8_t> labels(std::min(part, count - first)), pictures(labels.size() * picture_bytes);
      draw_part(groups, set, which, first, pictures, labels);
      files.back()->write(pictures, labels);
      done += labels.size();
      if (progress) progress(done);
    }
  }
  for (const std::unique_ptr<SplitFiles>& split : files) split->commit();
  if (set.format == DigitFormat::cifar10) {
    constexpr std::string_view names = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    write_file_atomically(folder / "batches.meta.txt", std::as_bytes(std::span(names)));
  }
}

}  // namespace vitrine

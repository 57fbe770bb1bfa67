#include "train/digits/digit_files.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "images/png_writer.h"
#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"
#include "train/data/random_streams.h"
#include "train/digits/digit_colors.h"
#include "train/digits/digit_renderer.h"

namespace vitrine {
namespace {

std::string_view names_of(const DigitSet& set) {
  return set.characters.empty() ? std::string_view("0123456789") : set.characters;
}

void write_numbers(AtomicFile& file, std::initializer_list<uint32_t> numbers) {
  for (const uint32_t n : numbers) {
    const std::array bytes{static_cast<std::byte>(n >> 24), static_cast<std::byte>(n >> 16),
                           static_cast<std::byte>(n >> 8), static_cast<std::byte>(n)};
    file.write(bytes);
  }
}

// Work for each number below `count`, by several threads; each takes the next that nobody has taken.
// `worker()` makes what a thread calls with its numbers.
template <typename MakeWorker>
void share_out(size_t count, unsigned threads, const MakeWorker& worker) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      auto work_on = worker();
      for (size_t i = next++; i < count; i = next++) work_on(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
      next = count;
    }
  };
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
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

std::shared_ptr<DigitRenderer> renderer_of(std::span<const FaceGroup> groups, const DigitSet& set,
                                           uint32_t which) {
  return std::make_shared<DigitRenderer>(groups, set.size, set.seed, which, set.distortion);
}

// A part of a set whose pictures have one size.
void draw_part(std::span<const FaceGroup> groups, const DigitSet& set, uint32_t which, uint64_t first,
               std::span<uint8_t> pictures, std::span<uint8_t> labels) {
  const size_t bytes = size_t{set.size} * set.size;
  share_out(labels.size(), set.threads, [&] {
    return [&, renderer = renderer_of(groups, set, which)](size_t i) {
      labels[i] = static_cast<uint8_t>(renderer->draw(first + i, pictures.subspan(i * bytes, bytes)));
    };
  });
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

// Pictures in folders beside where they belong, until all are there.
class PictureFolders {
 public:
  PictureFolders(const std::filesystem::path& folder, const char* name)
      : target_(folder / name), temporary_(temporary_name(target_)) {}
  ~PictureFolders() {
    std::error_code ignored;
    if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
  }
  PictureFolders(const PictureFolders&) = delete;
  PictureFolders& operator=(const PictureFolders&) = delete;

  void draw_part(std::span<const FaceGroup> groups, const DigitSet& set, uint32_t which, uint64_t first,
                 uint64_t count) {
    for (const char name : names_of(set)) make_folders(temporary_ / std::string(1, name));
    const RandomStream stream = stream_for(set.seed, RandomUse::picture_sizes, which);
    share_out(count, set.threads, [&] {
      return [&, renderer = renderer_of(groups, set, which),
              picture = std::vector<uint8_t>()](size_t i) mutable {
        const Philox::Block random = stream.block(first + i);
        const uint32_t width = set.size + below(set.size + 1, random[0], random[1]),
                       height = set.size + below(set.size + 1, random[2], random[3]);
        picture.resize(size_t{width} * height);
        const char name = names_of(set)[renderer->draw(first + i, width, height, picture)];
        char number[32];
        std::snprintf(number, sizeof number, "%06llu.png", static_cast<unsigned long long>(first + i));
        write(temporary_ / std::string(1, name) / number, width, height, picture);
      };
    });
  }

  void commit() {
    std::error_code error;
    std::filesystem::rename(temporary_, target_, error);
    if (error) throw Error(ErrorCode::failed, "cannot make " + shown(target_) + ": " + error.message());
    temporary_.clear();
  }

 private:
  // Thousands of files are not brought to the disk one by one: none of them is in its place yet.
  void write(const std::filesystem::path& file, uint32_t width, uint32_t height,
             std::span<const uint8_t> picture) const {
    const std::vector<std::byte> png = png_of(width, height, 1, picture, shown(file));
    std::ofstream stream(file, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(png.data()), static_cast<std::streamsize>(png.size()));
    stream.close();
    if (!stream) {
      throw Error(ErrorCode::failed, "cannot write the pictures of " + shown(target_) + ": " +
                                         std::generic_category().message(errno));
    }
  }

  std::filesystem::path target_, temporary_;
};

void require_characters(const DigitSet& set) {
  for (size_t i = 0; i < set.characters.size(); ++i) {
    const char c = set.characters[i];
    const bool known = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (!known || set.characters.find(c) != i) {
      throw Error(ErrorCode::usage, "characters to draw are " + in_quotes(set.characters) +
                                        ", expected letters A to Z or a to z and digits, each once");
    }
  }
  if (set.characters.size() == 1) {
    throw Error(ErrorCode::usage,
                "one character was asked for, " + in_quotes(set.characters) + ", expected two or more");
  }
}

void require_possible(const std::filesystem::path& folder, const DigitSet& set) {
  const bool cifar = set.format == DigitFormat::cifar10;
  require_characters(set);
  if (cifar && names_of(set).size() != 10) {
    throw Error(ErrorCode::usage, "CIFAR-10's format has ten classes, " +
                                      std::to_string(set.characters.size()) + " characters were asked for");
  }
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
  constexpr std::array<std::pair<DigitFormat, const char*>, 6> signs{
      {{DigitFormat::mnist, "train-images-idx3-ubyte"},
       {DigitFormat::mnist, "t10k-images-idx3-ubyte"},
       {DigitFormat::cifar10, "data_batch_1.bin"},
       {DigitFormat::cifar10, "test_batch.bin"},
       {DigitFormat::folders, "train"},
       {DigitFormat::folders, "test"}}};
  for (const auto& [format, name] : signs) {
    // Files are replaced, but a folder may hold more than comes now.
    std::error_code ignored;
    const bool matters =
        set.format == DigitFormat::folders || (format != set.format && format != DigitFormat::folders);
    if (!matters || !std::filesystem::exists(folder / name, ignored)) continue;
    throw Error(ErrorCode::usage,
                shown(folder / name) +
                    (format == set.format ? " is there already" : " is of a data set in another format") +
                    ", expected another folder");
  }
}

void write_folders(const std::filesystem::path& folder, const DigitFonts& fonts, const DigitSet& set,
                   const std::function<void(uint64_t)>& progress) {
  PictureFolders train(folder, "train"), test(folder, "test");
  uint64_t done = 0;
  for (const uint32_t which : {0u, 1u}) {
    const uint64_t count = which == 0 ? set.train : set.test;
    constexpr uint64_t part = 200;  // a fraction of a second
    for (uint64_t first = 0; first < count; first += part) {
      const uint64_t many = std::min(part, count - first);
      (which == 0 ? train : test).draw_part(which == 0 ? fonts.train : fonts.test, set, which, first, many);
      done += many;
      if (progress) progress(done);
    }
  }
  if (set.train > 0) train.commit();
  if (set.test > 0) test.commit();
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
  for (const std::vector<FaceGroup>* groups : {&fonts.train, &fonts.test}) {
    if (!groups->empty() && groups->front().faces.front().drawn().size() != names_of(set).size())
      throw Error(ErrorCode::usage, "the fonts were found for other characters than are to be drawn");
  }
  make_folders(folder);
  if (set.format == DigitFormat::folders) return write_folders(folder, fonts, set, progress);
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
    std::string names;
    for (const char name : names_of(set)) names += std::string(1, name) + "\n";
    write_file_atomically(folder / "batches.meta.txt", std::as_bytes(std::span(names)));
  }
}

}  // namespace vitrine

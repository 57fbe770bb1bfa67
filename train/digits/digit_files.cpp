#include "train/digits/digit_files.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
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

class SplitFiles {
 public:
  SplitFiles(const std::filesystem::path& folder, const std::string& prefix, uint32_t count, uint32_t size)
      : pictures_(folder / (prefix + "-images-idx3-ubyte")),
        labels_(folder / (prefix + "-labels-idx1-ubyte")) {
    write_numbers(pictures_, {0x803, count, size, size});
    write_numbers(labels_, {0x801, count});
  }

  void write(std::span<const uint8_t> pictures, std::span<const uint8_t> labels) {
    pictures_.write(std::as_bytes(pictures));
    labels_.write(std::as_bytes(labels));
  }

  void commit() {
    pictures_.commit();
    labels_.commit();
  }

 private:
  AtomicFile pictures_, labels_;
};

}  // namespace

void write_digits(const std::filesystem::path& folder, const DigitFonts& fonts, const DigitSet& set,
                  const std::function<void(uint64_t)>& progress) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(ErrorCode::failed, "cannot make the folder " + shown(folder) + ": " + error.message());
  std::vector<std::unique_ptr<SplitFiles>> files;
  uint64_t done = 0;
  for (const uint32_t which : {0u, 1u}) {
    const uint32_t count = which == 0 ? set.train : set.test;
    const std::vector<FaceGroup>& groups = which == 0 ? fonts.train : fonts.test;
    if (count == 0) continue;
    files.push_back(std::make_unique<SplitFiles>(folder, which == 0 ? "train" : "t10k", count, set.size));
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
}

}  // namespace vitrine

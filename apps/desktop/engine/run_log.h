// The curves of a training that `vitrine train` writes, or has written, to a folder: read from its log.csv,
// which may grow meanwhile. Nothing is written there, and nothing is locked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/desktop/engine/curve.h"
#include "runtime/util/system.h"

namespace vitrine::desktop {

struct ValidationPoint {
  uint64_t step = 0, epoch = 0;
  double loss = 0, accuracy = 0, top5 = 0;
  bool best = false;  // better than all before it
  bool operator==(const ValidationPoint&) const = default;
};

struct RunCurves {
  uint64_t step = 0, epoch = 0;                                                   // of the newest line
  std::vector<CurvePoint> loss, learning_rate, gradient_norm, images_per_second;  // of every update, thinned
  std::vector<ValidationPoint> validations;  // thinned to 2000, the best ones stay
  uint64_t skipped = 0;                      // updates that were left out
  std::vector<uint64_t> skips;               // steps in whose lines their number grew, the first 2000
  double newest_loss = 0;                    // of the newest update

  // The one of the highest accuracy, and of equal ones of the lowest loss, as `vitrine train` keeps it.
  const ValidationPoint* best() const;
};

// Takes the lines of a log.csv, and keeps bounded memory of any number of them. Columns are known by their
// names in the first line; those that nobody knows are skipped.
class RunLog {
 public:
  explicit RunLog(std::string name) : name_(std::move(name)) {}

  // The next bytes of the file, cut anywhere: what stands behind the last line's end waits for the rest.
  // Error(bad_file) for what is no training's log, in a sentence that has the line's number.
  void add(std::string_view bytes);
  RunCurves curves() const;
  uint64_t lines() const { return lines_; }

 private:
  void add_line(std::string_view line);
  void read_heading(std::string_view line);
  void add_update(uint64_t step, const std::vector<std::optional<double>>& cells);
  void add_validation(uint64_t step, uint64_t epoch, const std::vector<std::optional<double>>& cells);
  [[noreturn]] void refuse(const std::string& found, const std::string& expected) const;

  std::string name_;  // for sentences
  std::string rest_;  // of a line that hasn't ended
  uint64_t lines_ = 0;
  std::vector<int> columns_;  // which of the known ones each of the file's is; -1: none
  std::vector<std::optional<double>> cells_;
  RunCurves state_;  // all but the curves' points
  Curve loss_, learning_rate_, gradient_norm_, images_per_second_;
  uint64_t updated_at_ = 0;
};

// Follows a log.csv.
class RunFollower {
 public:
  explicit RunFollower(std::filesystem::path folder);
  ~RunFollower();
  RunFollower(const RunFollower&) = delete;
  RunFollower& operator=(const RunFollower&) = delete;

  // Reads what has come, a few megabytes at most; true where there was something. A file that is another, is
  // shorter than what was read of it, or ends otherwise there than it did, is read anew from its beginning: a
  // training that goes on from a checkpoint cuts off what it had written behind that. Error(bad_file) for
  // what is no log, and Error(failed) where it can't be read; the next call begins anew.
  bool read_more();
  // All that there is was read.
  bool at_end() const { return at_end_; }
  // There is something of the file that was read.
  bool read_any() const { return read_ > 0; }
  RunCurves curves() const;

 private:
  bool same_as_before(const system::File& file, uint64_t size) const;
  void begin_anew();

  std::filesystem::path path_;
  std::unique_ptr<RunLog> log_;
  uint64_t device_ = 0, number_ = 0, read_ = 0;
  std::string tail_;  // the last bytes that were read
  bool at_end_ = false;
  // Of the file that was refused, and why: it is read again when it has changed.
  using Stamp = std::array<uint64_t, 4>;
  std::optional<std::pair<Stamp, std::string>> refused_;
};

// Whether `vitrine train` has this folder as its --out: it holds a log or a training's settings.
bool is_run_folder(const std::filesystem::path& folder);
// The same for folders that may be of pictures: a log alone has to begin as one does.
bool looks_like_run_folder(const std::filesystem::path& folder);

}  // namespace vitrine::desktop

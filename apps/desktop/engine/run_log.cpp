#include "apps/desktop/engine/run_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/split.h"
#include "runtime/util/system.h"
#include "runtime/util/text.h"
#include "train/logs/training_log.h"
#include "train/run/run_folder.h"

namespace vitrine::desktop {
namespace {

enum Column : int {
  step,
  epoch,
  loss,
  learning_rate,
  gradient_norm,
  skipped_steps,
  images_per_second,
  val_loss,
  val_accuracy,
  val_top5,
  best,
  count
};
constexpr std::array<std::string_view, Column::count> column_names{"step",
                                                                   "epoch",
                                                                   "loss",
                                                                   "learning_rate",
                                                                   "gradient_norm",
                                                                   "skipped_steps",
                                                                   "images_per_second",
                                                                   "val_loss",
                                                                   "val_accuracy",
                                                                   "val_top5",
                                                                   "best"};

// No line of a log is nearly as long: what has none is another file.
constexpr size_t longest_line = 4096;
constexpr size_t most_points = 2000;
constexpr size_t chunk_bytes = size_t{1} << 20, most_chunks = 4, tail_bytes = 256;

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // What is too large or small for a double is still a number.
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return std::nullopt;
  return value;
}

bool better(const ValidationPoint& a, const ValidationPoint& b) {
  // As BestValidation has it (train/run/validation.h); any number is better than none.
  if (std::isnan(a.accuracy) != std::isnan(b.accuracy)) return std::isnan(b.accuracy);
  return a.accuracy > b.accuracy ||
         (!(b.accuracy > a.accuracy) && (a.loss < b.loss || (std::isnan(b.loss) && !std::isnan(a.loss))));
}

}  // namespace

const ValidationPoint* RunCurves::best() const {
  const ValidationPoint* found = nullptr;
  for (const ValidationPoint& point : validations) {
    if (!found || better(point, *found)) found = &point;
  }
  return found;
}

void RunLog::refuse(const std::string& found, const std::string& expected) const {
  throw Error(ErrorCode::bad_file,
              name_ + ", line " + std::to_string(lines_ + 1) + ": found " + found + ", expected " + expected);
}

void RunLog::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (rest_.size() + part.size() > longest_line)
      refuse("a line of more than " + std::to_string(longest_line) + " bytes", "a training's log.csv");
    if (end == std::string_view::npos) {
      rest_ += part;
      return;
    }
    bytes.remove_prefix(end + 1);
    if (rest_.empty()) {
      add_line(part);
    } else {
      rest_ += part;
      add_line(rest_);
      rest_.clear();
    }
    ++lines_;
  }
}

void RunLog::read_heading(std::string_view line) {
  for (const std::string_view name : split(line, ',')) {
    const auto known = std::ranges::find(column_names, name);
    columns_.push_back(known == column_names.end() ? -1 : static_cast<int>(known - column_names.begin()));
  }
  for (const Column needed : {step, epoch, loss}) {
    if (std::ranges::count(columns_, static_cast<int>(needed)) != 1) {
      refuse(in_quotes(line.substr(0, 100)),
             "the names of a training's log.csv, which begin with step,epoch,loss");
    }
  }
}

void RunLog::add_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (columns_.empty()) return read_heading(line);
  cells_.assign(Column::count, std::nullopt);
  size_t number = 0;
  for (size_t at = 0; at <= line.size(); ++number) {
    const size_t end = std::min(line.find(',', at), line.size());
    const std::string_view text = line.substr(at, end - at);
    at = end + 1;
    if (number >= columns_.size()) continue;
    const int column = columns_[number];
    if (column < 0 || text.empty()) continue;
    cells_[static_cast<size_t>(column)] = number_of(text);
    if (!cells_[static_cast<size_t>(column)])
      refuse(in_quotes(text.substr(0, 40)) + " for " + std::string(column_names[static_cast<size_t>(column)]),
             "a number");
  }
  if (number != columns_.size()) refuse(std::to_string(number) + " values", std::to_string(columns_.size()));
  const auto whole = [&](Column column) {
    const double value = cells_[column].value_or(-1);
    if (!(value >= 0 && value <= 9e15) || value != static_cast<double>(static_cast<uint64_t>(value)))
      refuse("no whole number for " + std::string(column_names[column]), "one from 0");
    return static_cast<uint64_t>(value);
  };
  const uint64_t at_step = whole(step), at_epoch = whole(epoch);
  if (at_step < state_.step)
    refuse("step " + std::to_string(at_step) + " behind step " + std::to_string(state_.step),
           "steps that grow");
  const bool is_validation = !cells_[loss] && cells_[val_loss];
  if (is_validation) {
    add_validation(at_step, at_epoch, cells_);
  } else {
    add_update(at_step, cells_);
  }
  state_.step = at_step;
  state_.epoch = at_epoch;
}

void RunLog::add_update(uint64_t at, const std::vector<std::optional<double>>& cells) {
  if (at <= updated_at_)
    refuse("step " + std::to_string(at) + " behind step " + std::to_string(updated_at_), "steps that grow");
  updated_at_ = at;
  const auto take = [&](Curve& curve, Column column) {
    if (cells[column]) curve.add(at, *cells[column]);
  };
  take(loss_, loss);
  take(learning_rate_, learning_rate);
  take(gradient_norm_, gradient_norm);
  take(images_per_second_, images_per_second);
  if (cells[loss]) state_.newest_loss = *cells[loss];
  const double skipped = cells[skipped_steps].value_or(0);
  if (skipped > static_cast<double>(state_.skipped) && skipped <= 9e15) {
    state_.skipped = static_cast<uint64_t>(skipped);
    if (state_.skips.size() < most_points) state_.skips.push_back(at);
  }
}

void RunLog::add_validation(uint64_t at, uint64_t at_epoch, const std::vector<std::optional<double>>& cells) {
  constexpr double none = 0;
  std::vector<ValidationPoint>& points = state_.validations;
  points.push_back({at, at_epoch, *cells[val_loss], cells[val_accuracy].value_or(none),
                    cells[val_top5].value_or(none), cells[best].value_or(0) != 0});
  if (points.size() <= most_points) return;
  // Every second one goes, but for the best that there was.
  const size_t kept = static_cast<size_t>(state_.best() - points.data());
  std::vector<ValidationPoint> fewer;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i % 2 == 0 || i == kept || i + 1 == points.size()) fewer.push_back(points[i]);
  }
  points = std::move(fewer);
}

RunCurves RunLog::curves() const {
  RunCurves curves = state_;
  curves.loss = loss_.points();
  curves.learning_rate = learning_rate_.points();
  curves.gradient_norm = gradient_norm_.points();
  curves.images_per_second = images_per_second_.points();
  return curves;
}

RunFollower::RunFollower(std::filesystem::path folder) : path_(log_in(folder)) { begin_anew(); }
RunFollower::~RunFollower() = default;

void RunFollower::begin_anew() {
  log_ = std::make_unique<RunLog>(shown(path_));
  device_ = number_ = read_ = 0;
  tail_.clear();
  at_end_ = false;
}

RunCurves RunFollower::curves() const { return log_->curves(); }

bool RunFollower::same_as_before(const system::File& file, uint64_t size) const {
  if (size < read_) return false;
  std::string now(tail_.size(), '\0');
  size_t got = 0;
  return !file.read(read_ - tail_.size(), std::as_writable_bytes(std::span(now)), got) && got == now.size() &&
         now == tail_;
}

bool RunFollower::read_more() {
  const auto fail = [&](const char* doing, std::error_code error) {
    throw Error(ErrorCode::failed,
                std::string("cannot ") + doing + " " + shown(path_) + ": " + error.message());
  };
  system::File file;
  if (const std::error_code error = file.open(path_)) {
    if (error != std::errc::no_such_file_or_directory) fail("open", error);
    // A training that has just begun has none yet.
    refused_.reset();
    const bool was_there = read_ > 0;
    if (was_there) begin_anew();
    at_end_ = true;
    return was_there;
  }
  system::FileStatus status;
  if (const std::error_code error = file.status(status)) fail("look at", error);
  if (status.kind != system::FileKind::regular) {
    throw Error(ErrorCode::bad_file, shown(path_) + " is no regular file, expected a training's log");
  }
  const uint64_t size = status.bytes;
  const Stamp stamp{status.device, status.number, size, status.modified};
  if (refused_ && refused_->first == stamp) throw Error(ErrorCode::bad_file, refused_->second);
  refused_.reset();
  const bool another =
      read_ > 0 && (device_ != status.device || number_ != status.number || !same_as_before(file, size));
  if (another) begin_anew();
  device_ = status.device;
  number_ = status.number;
  std::string chunk;
  bool read_any = another;
  try {
    for (size_t i = 0; i < most_chunks && read_ < size; ++i) {
      chunk.resize(std::min<uint64_t>(chunk_bytes, size - read_));
      size_t got = 0;
      const std::error_code error = file.read(read_, std::as_writable_bytes(std::span(chunk)), got);
      if (error) fail("read", error);
      if (got == 0) break;  // it was cut meanwhile
      chunk.resize(got);
      log_->add(chunk);
      read_ += chunk.size();
      tail_ += chunk;
      if (tail_.size() > tail_bytes) tail_.erase(0, tail_.size() - tail_bytes);
      read_any = true;
    }
  } catch (const Error& error) {
    begin_anew();
    if (error.code() == ErrorCode::bad_file) refused_.emplace(stamp, error.what());
    throw;
  }
  at_end_ = read_ >= size;
  return read_any;
}

bool looks_like_run_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(settings_in(folder), ignored)) return true;
  if (!std::filesystem::is_regular_file(log_in(folder), ignored)) return false;
  constexpr std::string_view heading = "step,epoch,";
  std::array<char, heading.size()> first{};
  system::File file;
  size_t got = 0;
  return !file.open(log_in(folder)) && !file.read(0, std::as_writable_bytes(std::span(first)), got) &&
         heading.starts_with({first.data(), got});
}

bool is_run_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(log_in(folder), ignored) ||
         std::filesystem::is_regular_file(settings_in(folder), ignored);
}

}  // namespace vitrine::desktop

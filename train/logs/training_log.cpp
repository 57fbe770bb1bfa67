#include "train/logs/training_log.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <system_error>
#include <vector>

#include "images/png_writer.h"
#include "runtime/util/error.h"
#include "runtime/util/system.h"
#include "runtime/util/text.h"
#include "train/logs/event_file.h"

namespace vitrine {
namespace {

constexpr std::string_view heading =
    "step,epoch,loss,learning_rate,gradient_norm,skipped_steps,images_per_second,val_loss,val_accuracy,val_"
    "top5,"
    "best\n";

std::string text_of(double value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

// A file that grows at its end.
class TrainingLog::File {
 public:
  // What is behind `size` goes. A file that doesn't begin with `first` is another's.
  File(std::filesystem::path path, uint64_t size, std::string_view first) : path_(std::move(path)) {
    if (const std::error_code error = file_.open_or_create(path_)) fail("open", error);
    system::FileStatus status;
    if (const std::error_code error = file_.status(status)) fail("look at", error);
    std::string beginning(std::min<uint64_t>(status.bytes, first.size()), '\0');
    size_t count = 0;
    const std::error_code error = file_.read(0, std::as_writable_bytes(std::span(beginning)), count);
    if (error) fail("read", error);
    if (!first.starts_with(beginning)) {
      throw Error(ErrorCode::usage, shown(path_) +
                                        " is there already and is no training's log, expected another folder "
                                        "to write to");
    }
    size_ = std::min(status.bytes, size);
    if (const std::error_code cut = file_.cut(size_)) fail("shorten", cut);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  uint64_t size() const { return size_; }
  void append(std::string_view text) {
    pending_ += text;
    size_ += text.size();
  }
  void write() {
    if (const std::error_code error = file_.write(std::as_bytes(std::span(pending_)))) fail("write", error);
    pending_.clear();
  }
  void bring_to_the_disk() {
    write();
    if (const std::error_code error = file_.sync()) fail("write", error);
  }

 private:
  [[noreturn]] void fail(const char* doing, std::error_code error) const {
    throw Error(ErrorCode::failed,
                std::string("cannot ") + doing + " " + shown(path_) + ": " + error.message());
  }

  std::filesystem::path path_;
  system::File file_;
  uint64_t size_ = 0;
  std::string pending_;
};

std::filesystem::path log_in(const std::filesystem::path& out) { return out / "log.csv"; }
// TensorBoard takes every file with "tfevents" in its name. There is one, which can be shortened.
std::filesystem::path events_in(const std::filesystem::path& out) {
  return out / "events.out.tfevents.0.vitrine";
}

TrainingLog::TrainingLog(const std::filesystem::path& out, bool tensorboard, const LogSizes& sizes)
    : before_(sizes), csv_(std::make_unique<File>(log_in(out), sizes.csv, heading)) {
  if (csv_->size() == 0) csv_->append(heading);
  if (!tensorboard) return;
  // The length of the first record, which is always the same.
  const std::string first = event_record(version_event(0)).substr(0, 8);
  events_ = std::make_unique<File>(events_in(out), sizes.events, first);
  if (events_->size() == 0) events_->append(event_record(version_event(wall_time())));
}

TrainingLog::~TrainingLog() = default;

void TrainingLog::add(const UpdateLine& line) {
  csv_->append(std::to_string(line.update) + "," + std::to_string(line.epoch) + "," + text_of(line.loss) +
               "," + text_of(line.learning_rate) + "," + text_of(line.gradient_norm) + "," +
               std::to_string(line.skipped) + "," + text_of(line.images_per_second) + ",,,,\n");
  if (events_) {
    const Scalar scalars[] = {{"train/loss", line.loss},
                              {"train/learning_rate", line.learning_rate},
                              {"train/gradient_norm", line.gradient_norm},
                              {"train/skipped_steps", static_cast<double>(line.skipped)},
                              {"train/images_per_second", line.images_per_second}};
    events_->append(event_record(scalar_event(wall_time(), line.update, scalars)));
  }
  write_sometimes();
}

void TrainingLog::add(const ValidationResult& validation) {
  const TestResult& result = validation.result;
  csv_->append(std::to_string(validation.update) + "," + std::to_string(validation.epoch) + ",,,,,," +
               text_of(result.loss) + "," + text_of(result.accuracy) + "," + text_of(result.top5) + "," +
               (validation.best ? "1" : "0") + "\n");
  if (events_) {
    const Scalar scalars[] = {
        {"val/loss", result.loss}, {"val/accuracy", result.accuracy}, {"val/top5", result.top5}};
    events_->append(event_record(scalar_event(wall_time(), validation.update, scalars)));
  }
  write_sometimes();
}

void TrainingLog::add_pictures(const Dataset& data) {
  if (!events_) return;
  constexpr uint64_t most = 8;
  const SampleShape& shape = data.shape();
  if (shape.channels != 1 && shape.channels != 3) return;
  std::vector<uint8_t> planes(shape.bytes()), pixels(shape.bytes());
  for (uint64_t i = 0; i < std::min(most, data.count()); ++i) {
    data.read(i, planes);
    for (size_t p = 0; p < pixels.size(); ++p) {
      pixels[p] = planes[p % shape.channels * shape.pixels() + p / shape.channels];
    }
    const std::vector<std::byte> png = png_of(shape.width, shape.height, shape.channels, pixels, data.name());
    const uint32_t label = data.label(i);
    const std::string name =
        label < data.class_names().size() ? data.class_names()[label] : std::to_string(label);
    const EventPicture picture{"samples/" + std::to_string(i) + " " + name, shape.width, shape.height,
                               shape.channels, png};
    events_->append(event_record(picture_event(wall_time(), 0, {&picture, 1})));
  }
}

// Whoever looks on sees it within a second.
void TrainingLog::write_sometimes() {
  const auto now = std::chrono::steady_clock::now();
  if (now - written_ < std::chrono::seconds(1)) return;
  written_ = now;
  csv_->write();
  if (events_) events_->write();
}

LogSizes TrainingLog::flush() {
  csv_->bring_to_the_disk();
  if (events_) events_->bring_to_the_disk();
  return {csv_->size(), events_ ? events_->size() : before_.events};
}

}  // namespace vitrine

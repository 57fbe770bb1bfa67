#include "apps/desktop/script/frame_log.h"

#include <cstdio>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine::desktop {
namespace {

std::string formatted(const char* format, auto... values) {
  char text[256];
  const int length = std::snprintf(text, sizeof text, format, values...);
  return std::string(text, static_cast<size_t>(length));
}

double milliseconds(FrameTimer::Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

}  // namespace

FrameLog::FrameLog(std::filesystem::path path) : path_(std::move(path)) {
  if (path_.empty()) return;
  file_.open(path_, std::ios::binary | std::ios::trunc);
  if (!file_) throw Error(ErrorCode::failed, shown(path_) + ": can't be written");
  file_ << "frame,seconds,turn_ms,interface_ms,submit_ms,display_ms,busy\n";
}

void FrameLog::add(const Frame& frame) {
  ++summary_.frames;
  if (frame.turn > summary_.longest) {
    summary_.longest = frame.turn;
    summary_.longest_frame = summary_.frames;
  }
  if (frame.busy) {
    ++summary_.busy_frames;
    if (frame.turn > summary_.longest_busy) {
      summary_.longest_busy = frame.turn;
      summary_.longest_busy_frame = summary_.frames;
    }
  }
  if (path_.empty()) return;
  file_ << formatted("%llu,%.4f,%.3f,%.3f,%.3f,%.3f,%d\n", static_cast<unsigned long long>(summary_.frames),
                     frame.seconds, frame.turn, frame.interface, frame.submit, frame.display,
                     frame.busy ? 1 : 0);
}

std::string FrameLog::sentence() const {
  const auto longest = [](uint64_t frames, double time, uint64_t which) {
    return frames == 0 ? std::string()
                       : formatted(", the longest %.1f ms (frame %llu)", time,
                                   static_cast<unsigned long long>(which));
  };
  return std::to_string(summary_.frames) + (summary_.frames == 1 ? " frame" : " frames") +
         longest(summary_.frames, summary_.longest, summary_.longest_frame) + "; " +
         std::to_string(summary_.busy_frames) + " while a model ran" +
         longest(summary_.busy_frames, summary_.longest_busy, summary_.longest_busy_frame);
}

void FrameLog::finish() {
  if (path_.empty()) return;
  file_.close();
  if (!file_) throw Error(ErrorCode::failed, shown(path_) + ": can't be written");
}

void FrameTimer::begin() {
  begin_ = last_ = Clock::now();
  frame_ = {};
  frame_.seconds = milliseconds(begin_ - log_begin_) / 1000;
}

void FrameTimer::did(Part part) {
  const Clock::time_point now = Clock::now();
  const double time = milliseconds(now - last_);
  last_ = now;
  switch (part) {
    case Part::interface:
      frame_.interface += time;
      break;
    case Part::submit:
      frame_.submit += time;
      break;
    case Part::display:
      frame_.display += time;
      break;
    case Part::other:
      break;
  }
}

FrameLog::Frame FrameTimer::end(bool busy) {
  frame_.turn = milliseconds(Clock::now() - begin_);
  frame_.busy = busy;
  return frame_;
}

}  // namespace vitrine::desktop

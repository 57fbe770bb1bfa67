// How long each frame kept the UI's thread: a CSV file, and the longest ones.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace vitrine::desktop {

class FrameLog {
 public:
  struct Frame {
    double seconds = 0;  // since the log was begun
    // Milliseconds of one turn of the loop, without waiting for events: the whole, and what parts took.
    double turn = 0, interface = 0, submit = 0, display = 0;
    bool busy = false;  // a model runs meanwhile
  };
  struct Summary {
    uint64_t frames = 0, longest_frame = 0, busy_frames = 0, longest_busy_frame = 0;  // frames count from 1
    double longest = 0, longest_busy = 0;                                             // milliseconds
  };

  // Without a path only the summary is kept. Error(failed) where the file can't be written.
  explicit FrameLog(std::filesystem::path path = {});

  void add(const Frame& frame);
  const Summary& summary() const { return summary_; }
  // "412 frames, the longest 23.1 ms (frame 17); 96 while a model ran, the longest 19.0 ms (frame 201)"
  std::string sentence() const;
  // Error(failed) where not everything reached the file.
  void finish();

 private:
  std::filesystem::path path_;
  std::ofstream file_;
  Summary summary_;
};

// Takes the times of a turn of the loop: begin() after the wait for events, then what was done, in any order
// and as often as it is.
class FrameTimer {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Part : uint8_t { other, interface, submit, display };

  void begin();
  // What was done since begin() or the last call was this.
  void did(Part part);
  // The whole turn.
  FrameLog::Frame end(bool busy);

 private:
  Clock::time_point log_begin_ = Clock::now(), begin_ = log_begin_, last_ = log_begin_;
  FrameLog::Frame frame_;
};

}  // namespace vitrine::desktop

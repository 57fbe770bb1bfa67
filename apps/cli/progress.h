// How far a command is, on one line of the terminal that is written over; nothing where stderr is none.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace vitrine::cli {

class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // Whether anybody sees it now: it is written ten times a second at most. Ask before making the text.
  bool due() const;
  void show(const std::string& text);
  // Takes the line away, so that something else can be written; show() brings it back.
  void clear();

 private:
  bool terminal_, shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

class Progress {
 public:
  // `what` is counted: "pictures".
  Progress(std::string what, uint64_t total) : what_(std::move(what)), total_(total) {}

  void show(uint64_t done);
  void clear() { line_.clear(); }

 private:
  std::string what_;
  uint64_t total_;
  StatusLine line_;
};

}  // namespace vitrine::cli

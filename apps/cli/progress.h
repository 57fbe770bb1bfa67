// How far a command is, on one line of the terminal that is written over; nothing where stderr is none.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace vitrine::cli {

class Progress {
 public:
  // `what` is counted: "pictures".
  Progress(std::string what, uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(uint64_t done);
  // Takes the line away, so that something else can be written; show() brings it back.
  void clear();

 private:
  std::string what_;
  uint64_t total_;
  bool terminal_, shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace vitrine::cli

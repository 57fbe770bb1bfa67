// What lies unfinished on the disk, and goes when a signal ends the process.
#pragma once

#include <cstddef>
#include <filesystem>

namespace vitrine {

// Names a file that means nothing unless this process finishes it, or a folder of nothing but such files, as
// long as it lives. Made before the file is, so that no moment is left out.
class Unfinished {
 public:
  explicit Unfinished(const std::filesystem::path& path);
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

 private:
  std::filesystem::path::value_type* path_;
  size_t slot_;
};

// From now on Ctrl-C, a polite kill and a terminal that is closed remove what is unfinished and then end the
// process as they would have. For a program's main(): signals belong to the process. What it was started to
// ignore (nohup) stays ignored.
void remove_unfinished_on_signals();
// The same for one signal, whatever was done with it before. May be called while a signal is handled.
void remove_unfinished_on(int signal);

}  // namespace vitrine

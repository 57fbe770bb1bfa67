// What is written into files of what the window shows: pictures of it, and the numbers behind it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apps/desktop/engine/export.h"
#include "apps/desktop/engine/worker.h"
#include "apps/desktop/notices.h"
#include "apps/desktop/screen.h"
#include "images/image.h"

namespace vitrine::desktop {

class Exports {
 public:
  // Takes the next frame's pixels, in a later turn of the loop.
  using Capture = std::function<void(std::function<void(Image)>)>;
  Exports(Screen& screen, Notices& notices, Capture capture, Worker::Task wake)
      : screen_(screen), notices_(notices), capture_(std::move(capture)), worker_(std::move(wake)) {}

  // `path`, and where that is empty a name after the view that nothing has yet.
  std::filesystem::path file(const std::filesystem::path& path, const std::string& extension) const;
  // The part of the window that shows what is looked at.
  void write_picture(const std::filesystem::path& to);
  void write_numbers(const std::filesystem::path& to, std::vector<CsvRow> rows);
  // The whole window. `done` is given what went wrong, or nothing.
  void write_window(const std::filesystem::path& to, std::function<void(const std::string& error)> done);

  Worker& worker() { return worker_; }

 private:
  void write(const std::filesystem::path& to, std::function<void()> write_it);

  Screen& screen_;
  Notices& notices_;
  Capture capture_;
  Worker worker_;  // the last one: its jobs use the others
};

}  // namespace vitrine::desktop

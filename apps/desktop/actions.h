// What panels, shortcuts and scripts call alike, for those who see nothing of what it acts on.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/desktop/desk.h"

namespace vitrine::desktop {

class Actions {
 public:
  explicit Actions(Desk& desk) : desk_(desk) {}

  void open(std::vector<std::filesystem::path> paths);
  void open_text(const std::string& text);  // paths as people paste them
  void paste() { open_text(desk_.window.clipboard()); }
  void select(size_t index);
  void next();
  void previous();
  void choose_model(const std::string& name_or_path);
  void choose_device(size_t index);
  void show(View view);
  void show_tab(const Tab& tab);
  void set_dark(bool dark);
  void set_help(bool shown) { desk_.screen.help = shown; }
  void turn_by_exif(bool on);
  void start_training(const std::string& config, const std::filesystem::path& data);
  void go_on_training(const std::string& folder, const std::filesystem::path& data);
  void export_picture(const std::filesystem::path& path);
  void export_numbers(const std::filesystem::path& path);
  void cancel();
  void close() { desk_.screen.closing = true; }

 private:
  Desk& desk_;
};

}  // namespace vitrine::desktop

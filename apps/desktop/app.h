// The desktop app: its window, what is open, and the actions that panels, shortcuts and scripts call alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/desktop/drawing.h"
#include "apps/desktop/engine/model_list.h"
#include "apps/desktop/engine/picture_library.h"
#include "apps/desktop/engine/training_session.h"
#include "apps/desktop/engine/worker.h"
#include "apps/desktop/gpu/gpu.h"
#include "apps/desktop/gpu/window.h"
#include "apps/desktop/looking.h"
#include "apps/desktop/script_host.h"
#include "apps/desktop/thumbnails.h"
#include "apps/desktop/training_samples.h"
#include "apps/desktop/view.h"

namespace vitrine::desktop {

struct AppOptions {
  std::vector<std::filesystem::path> open;  // pictures and folders
  std::string model;                        // a name or path; empty: the model that comes with Vitrine
  std::string device, dtype = "f32";
  int width = 1280, height = 800;
  bool dark = true, exif = false;
  ScriptOptions script;
};

class App {
 public:
  explicit App(AppOptions options);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  // Until the window is closed or the script ends; the process's exit status.
  int run();

  // ---- actions ----
  void open(std::vector<std::filesystem::path> paths);
  void open_text(const std::string& text);  // paths as people paste them
  void paste();                             // what is on the clipboard
  void select(size_t index);
  void next();
  void previous();
  void choose_model(const std::string& name_or_path);
  void choose_device(size_t index);
  void show(View view);
  void show_tab(const Tab& tab);
  void set_dark(bool dark);
  void turn_by_exif(bool on);
  void start_training(const std::string& config, const std::filesystem::path& data);
  void go_on_training(const std::string& folder, const std::filesystem::path& data);
  void set_help(bool shown) { help_ = shown; }
  void export_picture(const std::filesystem::path& path);
  void export_numbers(const std::filesystem::path& path);
  void cancel();
  void close() { closing_ = true; }

  // ---- what panels draw ----
  View view() const { return view_; }
  View last_picture_view() const { return last_picture_view_; }
  // True once after somebody asked for the list of files by a shortcut.
  bool take_open_request() { return std::exchange(open_requested_, false); }
  const std::vector<ModelChoice>& models() const { return models_; }
  const std::vector<DeviceFact>& device_facts() const { return facts_; }
  bool dark() const { return dark_; }
  bool turns_by_exif() const { return options_.exif; }
  bool help() const { return help_; }
  float scale() const { return scale_.layout; }
  Window& window() { return *window_; }
  Gpu& gpu() { return *gpu_; }
  const std::vector<WindowDevice>& devices() const { return devices_; }
  size_t device_index() const { return device_index_; }
  Worker& worker() { return *worker_; }
  Worker& export_worker() { return *export_worker_; }
  PictureLibrary& library() { return *library_; }
  Thumbnails& thumbnails() { return *thumbnails_; }
  Looking& looking() { return *looking_; }
  Drawing& drawing() { return *drawing_; }
  TrainingSession& training() { return *training_; }
  TrainingSamples& training_samples() { return *training_samples_; }
  const std::vector<std::string>& errors() const { return errors_; }
  void dismiss_error();
  void say_error(std::string sentence);
  void say(std::string sentence);  // shown for some seconds
  std::string said() const;
  // Something runs, or something that ran is not on the screen yet.
  bool busy() const;
  // The part of the window that export_picture() writes; panels set it in every frame.
  struct Area {
    float left = 0, top = 0, width = 0, height = 0;
  };
  void set_export_area(const Area& area) { export_area_ = area; }
  // Names a part of the window for scripts.
  void mark(const std::string& name, const Area& area);
  void show_next_frames(int count) { frames_wanted_ = std::max(frames_wanted_, count); }

 private:
  void make_gpu(std::unique_ptr<Device> device);
  void drop_gpu();
  void rescale(const DisplayScale& scale);
  void begin_training(const std::function<TrainingRequest()>& request);
  std::vector<CsvRow> device_rows() const;
  void loop();
  void update();
  void build_frame();
  void handle_shortcuts();
  void look_at_selected();
  void change_device();
  double frame_seconds() const;  // between one frame and the next, at least

  AppOptions options_;
  std::vector<std::string> validation_messages_;
  std::unique_ptr<Window> window_;
  // Cancelling what a model does must not cancel what is written, nor the other way round.
  std::unique_ptr<Worker> worker_, thumbnail_worker_, export_worker_;
  std::unique_ptr<Gpu> gpu_;
  std::vector<WindowDevice> devices_;
  size_t device_index_ = 0;
  std::unique_ptr<PictureLibrary> library_;
  std::unique_ptr<Thumbnails> thumbnails_;
  std::unique_ptr<Looking> looking_;
  std::unique_ptr<Drawing> drawing_;
  std::unique_ptr<TrainingSession> training_;
  std::unique_ptr<TrainingSamples> training_samples_;
  std::unique_ptr<ScriptHost> script_;

  View view_ = View::attention, last_picture_view_ = View::attention;
  bool dark_ = true, help_ = false, closing_ = false, open_requested_ = false;
  std::vector<ModelChoice> models_;
  std::optional<size_t> next_device_;
  std::vector<DeviceFact> facts_;
  std::string said_;
  double said_at_ = -100;
  uint64_t alive_at_end_ = 0;
  DisplayScale scale_{.layout = 0};
  std::vector<std::string> errors_;
  Area export_area_;
  int frames_wanted_ = 3;
};

}  // namespace vitrine::desktop

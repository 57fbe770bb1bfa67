// The desktop app: the window with its loop, and what lives as long as it.
#pragma once

#include <imgui.h>

#include <filesystem>
#include <string>
#include <vector>

#include "apps/desktop/actions.h"
#include "apps/desktop/desk.h"
#include "apps/desktop/devices.h"
#include "apps/desktop/gpu/window.h"
#include "apps/desktop/script_host.h"

namespace vitrine::desktop {

struct AppOptions {
  std::vector<std::filesystem::path> open;  // pictures, folders of them, and trainings' folders
  std::string model;                        // a name or path; empty: the model that comes with Vitrine
  std::string device, dtype = "f32";
  int width = 1280, height = 800;
  bool dark = true, exif = false;
  ScriptOptions script;
};

class App {
 public:
  explicit App(AppOptions options);
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  // Until the window is closed or the script ends; the process's exit status.
  int run();

 private:
  // Dear ImGui, with the window's input.
  struct Interface {
    explicit Interface(Window& window);
    ~Interface();
  };

  InstanceOptions instance_options();
  void loop();
  void update();
  void rescale(const DisplayScale& scale);
  void build_frame();
  void draw_view(OnDevice& here, ImVec2 space);
  double frame_seconds() const;  // between one frame and the next, at least

  const AppOptions options_;
  std::vector<std::string> validation_messages_;
  Window window_;
  Interface interface_;
  Screen screen_;
  bool dark_;  // the theme that is applied
  Notices notices_;
  Workers workers_;
  RunWatch runs_;
  PictureLibrary library_;
  std::vector<ModelChoice> models_;
  Devices devices_;
  Exports exports_;
  Desk desk_;
  Actions actions_;
  ScriptHost script_;
};

}  // namespace vitrine::desktop

#include "apps/desktop/app.h"

#include <GLFW/glfw3.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "apps/desktop/keyboard.h"
#include "apps/desktop/panels/panels.h"
#include "apps/desktop/theme.h"
#include "runtime/util/error.h"

namespace vitrine::desktop {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// From any thread: the loop takes what is new.
void wake() { glfwPostEmptyEvent(); }

}  // namespace

App::Interface::Interface(Window& window) {
  IMGUI_CHECKVERSION();
  ImGui::CreateContext();
  ImGui::GetIO().IniFilename = nullptr;
  // Of the curves of many trainings 16 bits can't count the corners.
  ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  ImGui_ImplGlfw_InitForOther(window.handle(), true);
}

App::Interface::~Interface() {
  ImGui_ImplGlfw_Shutdown();
  ImGui::DestroyContext();
}

App::App(AppOptions options)
    : options_(std::move(options)),
      window_({.width = options_.width, .height = options_.height}, instance_options()),
      interface_(window_),
      screen_(options_.dark),
      dark_(options_.dark),
      notices_(screen_),
      workers_(wake),
      runs_(wake),
      library_(workers_.thumbnails),
      models_(list_models()),
      devices_(window_, library_, workers_, options_.device, options_.dtype, wake),
      exports_(
          screen_, notices_, [this](auto take) { devices_.gpu().frames->capture(std::move(take)); }, wake),
      desk_{.screen = screen_,
            .window = window_,
            .notices = notices_,
            .exports = exports_,
            .workers = workers_,
            .runs = runs_,
            .library = library_,
            .models = models_,
            .devices = devices_.choice(),
            .on_device = devices_.on_device()},
      actions_(desk_),
      script_(desk_, actions_, options_.script) {
  window_.on_drop = [this](std::vector<std::string> paths) {
    actions_.perform(ActionId::drop, std::move(paths));
  };
  if (options_.exif) actions_.perform(ActionId::exif, {"on"});
  actions_.perform(ActionId::model, {options_.model});
  std::vector<std::string> paths;
  for (const std::filesystem::path& path : options_.open) paths.push_back(path.string());
  if (!paths.empty()) window_.on_drop(std::move(paths));
}

InstanceOptions App::instance_options() {
  InstanceOptions instance;
  // A validation message fails a run, as a crash would; it is printed as well.
  instance.sink = [this](const ValidationMessage& message) {
    std::fprintf(stderr, "vitrine-desktop: %s\n", message.text.c_str());
    if (!message.about_setup()) validation_messages_.push_back(message.text);
  };
  return instance;
}

void App::rescale(const DisplayScale& scale) {
  devices_.gpu().letters = scale;
  screen_.scale = scale.layout;
  load_fonts(scale);
  apply_theme(dark_ = screen_.dark, scale.layout);
  devices_.gpu().frames->upload_fonts();
}

void App::update() {
  try {
    devices_.change_if_chosen();
  } catch (const Error& error) {
    if (!devices_.opened()) throw;  // there is no device to go on with
    notices_.say_error(error.what());
  }
  try {
    OnDevice& here = *devices_.on_device();
    here.textures.collect();
    for (Worker* worker : {&workers_.models, &workers_.thumbnails, &exports_.worker()}) {
      worker->run_ui_tasks();
      while (auto error = worker->take_error()) notices_.say_error(std::move(*error));
    }
    // While a model is loaded thumbnails stay as they are: the next one turns them or not.
    if (here.looking.has_model() || here.looking.asked_exif())
      library_.turn_by_exif(here.looking.turns_by_exif());
    for (std::string& warning : here.looking.take_warnings()) notices_.say_error(std::move(warning));
    here.looking.update(screen_.view());
    here.words.update();
  } catch (const Error& error) {
    notices_.say_error(error.what());
  }
}

void App::build_frame() {
  ImGui_ImplGlfw_NewFrame();
  script_.feed_input();
  ImGui::NewFrame();
  const ImVec2 pixels = ImGui::GetIO().DisplayFramebufferScale;
  screen_.pixels_across = pixels.x;
  screen_.pixels_down = pixels.y;
  perform_struck(actions_, screen_);
  if (dark_ != screen_.dark) apply_theme(dark_ = screen_.dark, screen_.scale);
  OnDevice& here = *devices_.on_device();
  const ImGuiViewport& viewport = *ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport.Pos);
  ImGui::SetNextWindowSize(viewport.Size);
  ImGui::Begin("vitrine", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoScrollWithMouse);
  draw_top_bar(screen_, actions_, here.looking, models_, devices_.choice(), here.device);
  const float bottom = ImGui::GetFrameHeightWithSpacing() + 2 * screen_.scale;
  const ImVec2 space = ImGui::GetContentRegionAvail();
  draw_view(here, {space.x, space.y - bottom});
  draw_status(screen_, actions_, notices_, workers_.models.status(), here.looking.summary());
  ImGui::End();
  draw_help(screen_, actions_);
  here.thumbnails.end_frame();
  ImGui::Render();
}

void App::draw_view(OnDevice& here, ImVec2 space) {
  const bool busy = desk_.busy();
  const auto part = [&](const char* name, float width, const auto& draw) {
    ImGui::BeginChild(name, {width, space.y}, ImGuiChildFlags_AlwaysUseWindowPadding);
    draw();
    ImGui::EndChild();
  };
  if (shows_picture(screen_.view())) {
    const float gap = ImGui::GetStyle().ItemSpacing.x;
    const float left = std::min(210 * screen_.scale, space.x * 0.2f),
                right = std::min(290 * screen_.scale, space.x * 0.28f);
    part("library", left, [&] { draw_library(screen_, actions_, library_, here.thumbnails, here.words); });
    ImGui::SameLine();
    part("picture", space.x - left - right - 2 * gap,
         [&] { draw_picture(screen_, actions_, here.looking, library_, busy); });
    ImGui::SameLine();
    part("answers", right, [&] { draw_answers(screen_, actions_, here.looking, here.words, busy); });
    return;
  }
  part("view", space.x, [&] {
    switch (screen_.view()) {
      case View::structure:
        return draw_structure(screen_, actions_, here.looking, busy);
      case View::profile:
        return draw_profile(screen_, actions_, here.looking, busy);
      case View::device:
        return draw_device(screen_, here.device, here.facts);
      case View::draw:
        return draw_canvas(screen_, actions_, here.drawing);
      case View::runs:
        return draw_runs(screen_, actions_, runs_.states());
      default:
        return draw_training(screen_, actions_, here.training, here.training_samples);
    }
  });
}

double App::frame_seconds() const {
  // A display's rate where somebody watches something move, less where only a bar grows: the model needs the
  // time more.
  constexpr double moving = 1 / 60.0, waiting = 1 / 15.0, resting = 1;
  if (screen_.wants_frames()) return moving;
  return desk_.busy() || desk_.training().state()->busy() || script_.running() ? waiting : resting;
}

void App::loop() {
  Clock::time_point last_frame = Clock::now() - std::chrono::seconds(1);
  while (!screen_.closing && glfwWindowShouldClose(window_.handle()) == GLFW_FALSE) {
    const double left = frame_seconds() - seconds_since(last_frame);
    const bool in_flight = !devices_.gpu().frames->idle();
    const double limit = in_flight ? 0.003 : std::max(left, 0.001);
    const Clock::time_point waiting = Clock::now();
    glfwWaitEventsTimeout(limit);
    // Somebody did something: the screen follows for a few frames.
    if (seconds_since(waiting) < 0.9 * limit) screen_.show_next_frames(2);
    const bool due = seconds_since(last_frame) >= frame_seconds();

    using Part = FrameTimer::Part;
    FrameTimer& timer = script_.timer();
    timer.begin();
    update();
    // Where that fails there are no letters to say it with.
    if (const DisplayScale scale = window_.scale(); scale != devices_.gpu().letters) rescale(scale);
    timer.did(Part::other);
    devices_.gpu().frames->collect();
    // What nobody sees is not drawn: the display may keep the images of a hidden window for as long as it is.
    const bool hidden = window_.hidden();
    const bool ready = due && !hidden && devices_.gpu().frames->ready(window_.framebuffer());
    timer.did(Part::display);
    if (ready || hidden) script_.step();
    if (ready && !screen_.closing) {
      last_frame = Clock::now();
      try {
        build_frame();
      } catch (const Error& error) {
        // What a panel could not do is a sentence; the frame ends where it was.
        notices_.say_error(error.what());
        ImGui::ErrorCheckEndFrameRecover(nullptr);
        ImGui::Render();
      }
      timer.did(Part::interface);
      devices_.gpu().frames->draw(*ImGui::GetDrawData());
      timer.did(Part::submit);
      screen_.drew_frame();
    }
    const FrameLog::Frame times =
        timer.end(!workers_.models.idle() || desk_.drawing().busy() || desk_.training().state()->busy());
    // Turns in which there was nothing to draw are only worth a line when they kept the thread.
    constexpr double noticeable = 2;  // milliseconds
    if (ready || times.turn > noticeable) script_.log().add(times);
  }
}

int App::run() {
  int status = 0;
  try {
    loop();
  } catch (const Error& error) {
    // Before all is taken down: with a device that was lost, that may not come to its end.
    std::fprintf(stderr, "vitrine-desktop: %s\n", error.what());
    status = error.exit_status();
  }
  glfwHideWindow(window_.handle());
  script_.log().finish();
  if (options_.script.any()) std::printf("%s\n", script_.log().sentence().c_str());
  devices_.close();
  if (options_.script.any())
    std::printf("device memory at exit: %llu allocations\n",
                static_cast<unsigned long long>(devices_.alive_at_end()));
  if (!validation_messages_.empty()) {
    std::fprintf(stderr, "vitrine-desktop: %zu validation messages\n", validation_messages_.size());
    if (status == 0) status = 1;
  }
  return status;
}

}  // namespace vitrine::desktop

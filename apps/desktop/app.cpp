#include "apps/desktop/app.h"

#include <GLFW/glfw3.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "apps/desktop/engine/picture_paths.h"
#include "apps/desktop/panels/panels.h"
#include "apps/desktop/theme.h"
#include "images/png_writer.h"
#include "runtime/util/error.h"

namespace vitrine::desktop {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr size_t most_errors = 50;

// A name that nothing has yet: NAME.png, NAME-2.png, ...
std::filesystem::path free_name(const std::string& stem, const std::string& extension) {
  std::error_code none;
  for (int i = 1;; ++i) {
    std::filesystem::path path = stem + (i == 1 ? "" : "-" + std::to_string(i)) + extension;
    if (!std::filesystem::exists(path, none)) return path;
  }
}

}  // namespace

App::App(AppOptions options) : options_(std::move(options)), dark_(options_.dark) {
  InstanceOptions instance;
  // A validation message fails a run, as a crash would; it is printed as well.
  instance.sink = [this](const ValidationMessage& message) {
    std::fprintf(stderr, "vitrine-desktop: %s\n", message.text.c_str());
    if (!message.about_setup()) validation_messages_.push_back(message.text);
  };
  window_ = std::make_unique<Window>(WindowOptions{.width = options_.width, .height = options_.height},
                                     std::move(instance));
  devices_ = window_->devices();
  std::unique_ptr<Device> device = window_->open_device(options_.device);
  worker_ = std::make_unique<Worker>([] { glfwPostEmptyEvent(); });
  thumbnail_worker_ = std::make_unique<Worker>([] { glfwPostEmptyEvent(); });
  export_worker_ = std::make_unique<Worker>([] { glfwPostEmptyEvent(); });
  library_ = std::make_unique<PictureLibrary>(*thumbnail_worker_);
  library_->turn_by_exif(options_.exif);
  models_ = list_models();
  IMGUI_CHECKVERSION();
  ImGui::CreateContext();
  ImGui::GetIO().IniFilename = nullptr;
  ImGui_ImplGlfw_InitForOther(window_->handle(), true);
  make_gpu(std::move(device));
  window_->on_drop = [this](std::vector<std::string> paths) { open({paths.begin(), paths.end()}); };
  script_ = std::make_unique<ScriptHost>(*this, options_.script);
  choose_model(options_.model);
  if (!options_.open.empty()) open(options_.open);
}

App::~App() {
  script_.reset();
  drop_gpu();
  library_.reset();
  export_worker_.reset();
  thumbnail_worker_.reset();
  worker_.reset();
  ImGui_ImplGlfw_Shutdown();
  ImGui::DestroyContext();
}

void App::make_gpu(std::unique_ptr<Device> device) {
  const Capabilities& opened = device->capabilities();
  const auto same = [&](const WindowDevice& other) {
    return other.physical.capabilities.device_uuid == opened.device_uuid;
  };
  const auto found = std::ranges::find_if(devices_, same);
  device_index_ = found == devices_.end() ? 0 : static_cast<size_t>(found - devices_.begin());
  try {
    gpu_ = std::make_unique<Gpu>(*window_, std::move(device));
    facts_ = vitrine::device_facts(gpu_->device->capabilities());
    TextureStore& textures = gpu_->frames->textures();
    const auto wake = [] { glfwPostEmptyEvent(); };
    thumbnails_ = std::make_unique<Thumbnails>(textures, *library_);
    looking_ = std::make_unique<Looking>(*gpu_->pipelines, textures, *worker_, options_.dtype);
    looking_->turn_by_exif(options_.exif);
    drawing_ = std::make_unique<Drawing>(*gpu_->pipelines, textures, shipped_digit_model(), wake);
    training_ = std::make_unique<TrainingSession>(*gpu_->pipelines, wake);
    training_samples_ = std::make_unique<TrainingSamples>(textures);
  } catch (...) {
    drop_gpu();  // all of it is there, or nothing
    throw;
  }
  scale_ = {.layout = 0};  // the fonts belong to the textures
}

void App::drop_gpu() {
  if (!gpu_) return;
  // Jobs hold the model: they end first.
  worker_->cancel();
  worker_->wait();
  training_samples_.reset();
  training_.reset();
  drawing_.reset();
  looking_.reset();
  thumbnails_.reset();
  worker_->run_ui_tasks();
  gpu_->frames.reset();
  gpu_->pipelines.reset();
  const uint64_t alive = gpu_->device->allocations();
  gpu_.reset();
  alive_at_end_ = std::max(alive_at_end_, alive);
}

void App::rescale(const DisplayScale& scale) {
  scale_ = scale;
  load_fonts(scale);
  apply_theme(dark_, scale.layout);
  gpu_->frames->upload_fonts();
}

// ---- actions ----

void App::open(std::vector<std::filesystem::path> paths) {
  library_->open(std::move(paths), [this] { look_at_selected(); });
  if (!shows_picture(view_)) view_ = last_picture_view_;
  show_next_frames(3);
}

void App::open_text(const std::string& text) {
  try {
    std::vector<std::filesystem::path> paths = paths_in_text(text);
    if (!paths.empty()) open(std::move(paths));
  } catch (const Error& error) {
    say_error(error.what());
  }
}

void App::paste() {
  const char* text = glfwGetClipboardString(window_->handle());
  if (text) open_text(text);
}

void App::select(size_t index) {
  library_->select(index);
  look_at_selected();
}
void App::next() {
  if (library_->next()) look_at_selected();
}
void App::previous() {
  if (library_->previous()) look_at_selected();
}

void App::look_at_selected() {
  if (const auto selected = library_->selected()) looking_->look_at(library_->path(*selected));
}

void App::choose_model(const std::string& name_or_path) {
  try {
    const ModelChoice choice = model_choice(models_, name_or_path);
    if (std::ranges::find(models_, choice.name, &ModelChoice::name) == models_.end())
      models_.push_back(choice);
    looking_->choose_model(choice);
  } catch (const Error& error) {
    say_error(error.what());
  }
}

void App::choose_device(size_t index) {
  if (index >= devices_.size()) {
    throw Error(ErrorCode::usage, "there is no device " + std::to_string(index) + ", expected 0 to " +
                                      std::to_string(devices_.size() - 1));
  }
  const std::shared_ptr<const TrainingState> training = training_->state();
  if (training->busy() || training->stage == TrainingStage::paused)
    return say_error("a training runs on this device, stop it before another device is chosen");
  next_device_ = index;
  looking_->cancel(view_);
}

// Between frames: nothing of a frame under way may use what goes.
void App::change_device() {
  const WindowDevice& chosen = devices_[*next_device_];
  next_device_.reset();
  std::unique_ptr<Device> device;
  try {
    device = window_->open_device(chosen);
  } catch (const Error& error) {
    // What choose_device() cancelled, on the device of before.
    looking_->ask_again();
    if (!looking_->has_model()) {
      looking_->choose_model(looking_->model_choice());
    } else if (!looking_->seen()) {
      look_at_selected();
    }
    return say_error(error.what());
  }
  const ModelChoice model = looking_->model_choice();
  const MapSelection selection = looking_->selection();
  DigitCanvas canvas = std::move(drawing_->canvas);
  const size_t before = device_index_;
  drop_gpu();
  try {
    make_gpu(std::move(device));
  } catch (const Error& error) {
    // Another program may have what the chosen one lacks now. The one of before has just worked.
    make_gpu(window_->open_device(devices_[before]));
    say_error(error.what());
  }
  drawing_->canvas = std::move(canvas);
  looking_->choose_model(model);
  looking_->select(selection);
  look_at_selected();
}

void App::show_tab(const Tab& tab) { show(shows_picture(tab.view) ? last_picture_view_ : tab.view); }

void App::show(View view) {
  view_ = view;
  if (shows_picture(view)) last_picture_view_ = view;
  looking_->ask_again();
  show_next_frames(3);
}

void App::start_training(const std::string& config, const std::filesystem::path& data) {
  begin_training([&] { return training_of(config, data); });
}

void App::go_on_training(const std::string& folder, const std::filesystem::path& data) {
  begin_training([&] { return saved_training(folder, data); });
}

void App::begin_training(const std::function<TrainingRequest()>& request) {
  try {
    training_->start(request());
  } catch (const Error& error) {
    say_error(error.what());
  }
  show_next_frames(3);
}

void App::set_dark(bool dark) {
  dark_ = dark;
  apply_theme(dark_, scale());
  show_next_frames(3);
}

void App::turn_by_exif(bool on) {
  options_.exif = on;
  library_->turn_by_exif(on);
  looking_->turn_by_exif(on);
  show_next_frames(3);
}

void App::export_picture(const std::filesystem::path& path) {
  const std::filesystem::path to =
      path.empty() ? free_name("vitrine-" + std::string(name_of(view_).name), ".png") : path;
  gpu_->frames->capture([this, to, area = export_area_](const Image& whole) {
    const ImVec2 pixels = ImGui::GetIO().DisplayFramebufferScale;
    const auto at = [](float position, uint32_t limit) {
      return static_cast<uint32_t>(std::clamp(position, 0.0f, static_cast<float>(limit)));
    };
    const uint32_t left = at(area.left * pixels.x, whole.width), top = at(area.top * pixels.y, whole.height);
    const uint32_t right = at((area.left + area.width) * pixels.x, whole.width);
    const uint32_t bottom = at((area.top + area.height) * pixels.y, whole.height);
    if (right <= left || bottom <= top) return say_error("there is nothing to export in this view");
    Image part{right - left, bottom - top, {}};
    for (uint32_t y = top; y < bottom; ++y) {
      const auto row =
          whole.pixels.begin() + static_cast<std::ptrdiff_t>((uint64_t{y} * whole.width + left) * 4);
      part.pixels.insert(part.pixels.end(), row, row + static_cast<std::ptrdiff_t>(part.width) * 4);
    }
    export_worker_->start("Writing " + to.filename().string(), [this, to, part = std::move(part)](Progress&) {
      write_png(to, part.width, part.height, 4, part.pixels);
      export_worker_->post_to_ui([this, to] { say("Written: " + std::filesystem::absolute(to).string()); });
    });
  });
  show_next_frames(2);
}

void App::export_numbers(const std::filesystem::path& path) {
  const std::filesystem::path to =
      path.empty() ? free_name("vitrine-" + std::string(name_of(view_).name), ".csv") : path;
  const auto write = [this, to](std::vector<CsvRow> rows) {
    if (rows.empty()) return say_error("there are no numbers to export in this view");
    export_worker_->start("Writing " + to.filename().string(), [this, to, rows = std::move(rows)](Progress&) {
      write_csv(to, rows);
      export_worker_->post_to_ui([this, to] { say("Written: " + std::filesystem::absolute(to).string()); });
    });
  };
  if (view_ == View::train) {
    write(training_rows(*training_->state()));
  } else if (view_ == View::draw) {
    write(drawing_->rows());
  } else if (view_ == View::device) {
    write(device_rows());
  } else {
    looking_->read_numbers(view_, write);
  }
}

std::vector<CsvRow> App::device_rows() const {
  std::vector<CsvRow> rows{{"name", "value"}};
  for (const DeviceFact& fact : facts_of(*gpu_->device)) rows.push_back({fact.name, fact.value});
  return rows;
}

void App::cancel() {
  if (!worker_->idle() || looking_->busy())
    say("Cancelled. What is missing comes when its view, picture or model is chosen again.");
  looking_->cancel(view_);
  const TrainingStage stage = training_->state()->stage;
  if (stage >= TrainingStage::drawing && stage < TrainingStage::training) training_->stop();
}

void App::mark(const std::string& name, const Area& area) {
  script_->mark(name, {area.left, area.top, area.width, area.height});
}

void App::dismiss_error() {
  if (!errors_.empty()) errors_.erase(errors_.begin());
}
void App::say_error(std::string sentence) {
  std::fprintf(stderr, "vitrine-desktop: %s\n", sentence.c_str());
  // The thumbnail and the model complain of the same file in the same words.
  const bool known = std::ranges::find(errors_, sentence) != errors_.end();
  if (!known && errors_.size() < most_errors) errors_.push_back(std::move(sentence));
  show_next_frames(3);
}
void App::say(std::string sentence) {
  said_ = std::move(sentence);
  said_at_ = glfwGetTime();
  show_next_frames(3);
}
std::string App::said() const { return glfwGetTime() - said_at_ < 8 ? said_ : std::string(); }

bool App::busy() const {
  // Nobody draws the frame that something waits for while the window is hidden.
  const bool frame_comes = !window_->hidden();
  return next_device_ || !worker_->idle() || !thumbnail_worker_->idle() || !export_worker_->idle() ||
         looking_->busy() || drawing_->busy() ||
         (frame_comes && (looking_->copying() || gpu_->frames->textures().waits_for_new()));
}

// ---- the loop ----

void App::handle_shortcuts() {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.WantTextInput) return;
  const auto pressed = [](ImGuiKey key) { return ImGui::IsKeyPressed(key); };
  const auto typed = [&](ImWchar wanted) { return std::ranges::count(io.InputQueueCharacters, wanted) > 0; };
  MapSelection selection = looking_->selection();
  if (io.KeyCtrl) {
    if (pressed(ImGuiKey_O)) open_requested_ = true;
    if (pressed(ImGuiKey_V)) paste();
    if (pressed(ImGuiKey_S)) io.KeyShift ? export_numbers({}) : export_picture({});
    if (pressed(ImGuiKey_Z) && view_ == View::draw) drawing_->canvas.undo();
    if (pressed(ImGuiKey_Period)) cancel();
    if (pressed(ImGuiKey_Q)) close();
    return;
  }
  for (size_t i = 0; i < tabs.size(); ++i) {
    if (pressed(static_cast<ImGuiKey>(ImGuiKey_F1 + static_cast<int>(i)))) show_tab(tabs[i]);
  }
  for (int i = 0; i < 5; ++i) {
    if (pressed(static_cast<ImGuiKey>(ImGuiKey_1 + i))) show(static_cast<View>(i));
  }
  if (typed('?')) set_help(!help_);
  if (pressed(ImGuiKey_T)) set_dark(!dark_);
  if (view_ == View::draw && pressed(ImGuiKey_Delete)) drawing_->canvas.clear();
  if (view_ == View::train && pressed(ImGuiKey_Space)) training_->toggle_pause();
  if (pressed(ImGuiKey_Escape)) {
    if (help_) {
      set_help(false);
    } else {
      selection.token.reset();
    }
  }
  if (shows_picture(view_) && !ImGui::IsAnyItemActive()) {
    if (pressed(ImGuiKey_RightArrow)) next();
    if (pressed(ImGuiKey_LeftArrow)) previous();
    if (pressed(ImGuiKey_UpArrow)) ++selection.layer;
    if (pressed(ImGuiKey_DownArrow) && selection.layer > 0) --selection.layer;
    if (pressed(ImGuiKey_RightBracket)) selection.head = selection.head ? *selection.head + 1 : 0;
    if (pressed(ImGuiKey_LeftBracket) && selection.head)
      selection.head = *selection.head == 0 ? std::nullopt : std::optional(*selection.head - 1);
    if (pressed(ImGuiKey_Minus)) selection.opacity -= 0.1f;
    if (pressed(ImGuiKey_Equal) || typed('+')) selection.opacity += 0.1f;
    if (pressed(ImGuiKey_G)) selection.patch_grid = !selection.patch_grid;
    if (pressed(ImGuiKey_M)) selection.map = static_cast<ColorMap>((static_cast<int>(selection.map) + 1) % 3);
  }
  looking_->select(selection);
}

void App::update() {
  // The window goes on being drawn until what ran on the old device has ended.
  if (next_device_ && worker_->idle()) change_device();
  gpu_->frames->textures().collect();
  for (const auto& worker : {worker_.get(), thumbnail_worker_.get(), export_worker_.get()}) {
    worker->run_ui_tasks();
    while (auto error = worker->take_error()) say_error(std::move(*error));
  }
  for (std::string& warning : looking_->take_warnings()) say_error(std::move(warning));
  looking_->update(view_);
}

void App::build_frame() {
  ImGui_ImplGlfw_NewFrame();
  script_->feed_input();
  ImGui::NewFrame();
  handle_shortcuts();
  const ImGuiViewport& viewport = *ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport.Pos);
  ImGui::SetNextWindowSize(viewport.Size);
  ImGui::Begin("vitrine", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoScrollWithMouse);
  draw_top_bar(*this);
  const float bottom = ImGui::GetFrameHeightWithSpacing() + 2 * scale();
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const float height = space.y - bottom;
  const auto part = [&](const char* name, float width, void (*draw)(App&)) {
    ImGui::BeginChild(name, {width, height}, ImGuiChildFlags_AlwaysUseWindowPadding);
    draw(*this);
    ImGui::EndChild();
  };
  if (shows_picture(view_)) {
    const float gap = ImGui::GetStyle().ItemSpacing.x;
    const float left = std::min(210 * scale(), space.x * 0.2f),
                right = std::min(290 * scale(), space.x * 0.28f);
    part("library", left, draw_library);
    ImGui::SameLine();
    part("picture", space.x - left - right - 2 * gap, draw_picture);
    ImGui::SameLine();
    part("answers", right, draw_answers);
  } else {
    part("view", space.x,
         view_ == View::structure ? draw_structure
         : view_ == View::profile ? draw_profile
         : view_ == View::device  ? draw_device
         : view_ == View::draw    ? draw_canvas
                                  : draw_training);
  }
  draw_status(*this);
  ImGui::End();
  draw_help(*this);
  thumbnails_->end_frame();
  ImGui::Render();
}

double App::frame_seconds() const {
  // A display's rate where somebody watches something move, less where only a bar grows: the model needs the
  // time more.
  constexpr double moving = 1 / 60.0, waiting = 1 / 15.0, resting = 1;
  if (frames_wanted_ > 0) return moving;
  return busy() || training_->state()->busy() || script_->running() ? waiting : resting;
}

void App::loop() {
  Clock::time_point last_frame = Clock::now() - std::chrono::seconds(1);
  while (!closing_ && glfwWindowShouldClose(window_->handle()) == GLFW_FALSE) {
    const double left = frame_seconds() - seconds_since(last_frame);
    const bool in_flight = !gpu_->frames->idle();
    const double limit = in_flight ? 0.003 : std::max(left, 0.001);
    const Clock::time_point waiting = Clock::now();
    glfwWaitEventsTimeout(limit);
    // Somebody did something: the screen follows for a few frames.
    if (seconds_since(waiting) < 0.9 * limit) show_next_frames(2);
    const bool due = seconds_since(last_frame) >= frame_seconds();

    using Part = FrameTimer::Part;
    FrameTimer& timer = script_->timer();
    timer.begin();
    try {
      update();
    } catch (const Error& error) {
      if (!gpu_) throw;  // there is no device to go on with
      say_error(error.what());
    }
    // Where that fails there are no letters to say it with.
    if (const DisplayScale scale = window_->scale(); scale != scale_) rescale(scale);
    timer.did(Part::other);
    gpu_->frames->collect();
    // What nobody sees is not drawn: the display may keep the images of a hidden window for as long as it is.
    const bool hidden = window_->hidden();
    const bool ready = due && !hidden && gpu_->frames->ready(window_->framebuffer());
    timer.did(Part::display);
    if (ready || hidden) script_->step();
    if (ready && !closing_) {
      last_frame = Clock::now();
      try {
        build_frame();
      } catch (const Error& error) {
        // What a panel could not do is a sentence; the frame ends where it was.
        say_error(error.what());
        ImGui::ErrorCheckEndFrameRecover(nullptr);
        ImGui::Render();
      }
      timer.did(Part::interface);
      gpu_->frames->draw(*ImGui::GetDrawData());
      timer.did(Part::submit);
      frames_wanted_ = std::max(0, frames_wanted_ - 1);
    }
    const FrameLog::Frame times =
        timer.end(!worker_->idle() || drawing_->busy() || training_->state()->busy());
    // Turns in which there was nothing to draw are only worth a line when they kept the thread.
    constexpr double noticeable = 2;  // milliseconds
    if (ready || times.turn > noticeable) script_->log().add(times);
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
  glfwHideWindow(window_->handle());
  script_->log().finish();
  if (options_.script.any()) std::printf("%s\n", script_->log().sentence().c_str());
  drop_gpu();
  if (options_.script.any())
    std::printf("device memory at exit: %llu allocations\n", static_cast<unsigned long long>(alive_at_end_));
  if (!validation_messages_.empty()) {
    std::fprintf(stderr, "vitrine-desktop: %zu validation messages\n", validation_messages_.size());
    if (status == 0) status = 1;
  }
  return status;
}

}  // namespace vitrine::desktop

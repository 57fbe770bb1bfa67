// The app's state and its actions without a window.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/desktop/actions.h"
#include "apps/desktop/desk.h"
#include "runtime/graph/bound_dispatch.h"
#include "tests/support/test_device.h"

namespace vitrine::test {

struct RememberingWindow : desktop::WindowControl {
  void resize(int width, int height) override {
    asked.push_back("resize " + std::to_string(width) + " " + std::to_string(height));
  }
  void minimise() override { asked.emplace_back("minimise"); }
  void restore() override { asked.emplace_back("restore"); }
  std::string clipboard() const override { return text; }
  bool hidden() const override { return false; }

  std::vector<std::string> asked;
  std::string text;
};

struct WindowlessApp {
  TestDevice& device = test_device();
  desktop::SlowCalls calls{false};
  desktop::TextureStore textures{*device.device, calls};
  RememberingWindow window;
  desktop::Screen screen{true};
  desktop::Notices notices{screen};
  desktop::Workers workers{{}};
  desktop::RunWatch runs;
  desktop::PictureLibrary library{workers.thumbnails};
  std::vector<desktop::ModelChoice> models = desktop::list_models([](const char*) { return nullptr; });
  desktop::DeviceChoice devices{.devices = std::vector<desktop::WindowDevice>(2)};
  // What a frame shows: a pixel a unit.
  Image shown{4, 3, std::vector<uint8_t>(size_t{4} * 4 * 3, 255)};
  desktop::Exports exports{
      screen, notices, [this](const std::function<void(Image)>& take) { take(shown); }, {}};
  std::unique_ptr<desktop::OnDevice> on_device = std::make_unique<desktop::OnDevice>(
      *device.pipelines, textures, library, workers.models, "f32", desktop::Worker::Task{});
  desktop::Desk desk{.screen = screen,
                     .window = window,
                     .notices = notices,
                     .exports = exports,
                     .workers = workers,
                     .runs = runs,
                     .library = library,
                     .models = models,
                     .devices = devices,
                     .on_device = on_device};
  desktop::Actions actions{desk};

  WindowlessApp() = default;
  ~WindowlessApp() {
    workers.models.cancel();
    workers.models.wait();
    on_device.reset();
    workers.models.run_ui_tasks();
  }
  WindowlessApp(const WindowlessApp&) = delete;
  WindowlessApp& operator=(const WindowlessApp&) = delete;

  void draw_frame() {
    textures.collect();
    for (desktop::Worker* worker : {&workers.models, &workers.thumbnails, &exports.worker()}) {
      worker->run_ui_tasks();
      while (auto error = worker->take_error()) notices.say_error(std::move(*error));
    }
    on_device->looking.update(screen.view());
    on_device->words.update();
    ++frame_;
    run_once(*device.device, [&](VkCommandBuffer commands) { textures.record(commands, frame_); });
    textures.finished(frame_);
  }
  // Until nothing is left to do.
  void run() {
    for (int quiet = 0; quiet < 3; quiet = desk.busy() ? 0 : quiet + 1) {
      workers.models.wait();
      workers.thumbnails.wait();
      exports.worker().wait();
      draw_frame();
    }
  }

 private:
  uint64_t frame_ = 0;
};

}  // namespace vitrine::test

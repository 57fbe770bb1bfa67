// All that actions act on. Who performs them by their names (panels, keys) is not given it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "apps/desktop/engine/model_list.h"
#include "apps/desktop/engine/picture_library.h"
#include "apps/desktop/engine/run_watch.h"
#include "apps/desktop/engine/worker.h"
#include "apps/desktop/exports.h"
#include "apps/desktop/gpu/window.h"
#include "apps/desktop/notices.h"
#include "apps/desktop/on_device.h"
#include "apps/desktop/screen.h"

namespace vitrine::desktop {

// What is written has a third one, of Exports: cancelling what a model does must not cancel that, nor the
// other way round.
struct Workers {
  explicit Workers(const Worker::Task& wake) : models(wake), thumbnails(wake) {}
  Worker models, thumbnails;
};

struct DeviceChoice {
  std::vector<WindowDevice> devices;
  size_t used = 0;
  std::optional<size_t> next;  // takes its place as soon as nothing runs there
};

struct Desk {
  Screen& screen;
  WindowControl& window;
  Notices& notices;
  Exports& exports;
  Workers& workers;
  RunWatch& runs;
  PictureLibrary& library;
  std::vector<ModelChoice>& models;  // to choose from
  DeviceChoice& devices;
  const std::unique_ptr<OnDevice>& on_device;

  Looking& looking() const { return on_device->looking; }
  Words& words() const { return on_device->words; }
  Drawing& drawing() const { return on_device->drawing; }
  TrainingSession& training() const { return on_device->training; }

  // Something runs, or something that ran is not on the screen yet.
  bool busy() const {
    // Nobody draws the frame that something waits for while the window is hidden.
    const bool frame_comes = !window.hidden();
    return devices.next || runs.busy() || !workers.models.idle() || !workers.thumbnails.idle() ||
           !exports.worker().idle() || looking().busy() || words().busy() || drawing().busy() ||
           (frame_comes && (looking().copying() || on_device->textures.waits_for_new()));
  }
};

}  // namespace vitrine::desktop

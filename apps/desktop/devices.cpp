#include "apps/desktop/devices.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/util/error.h"

namespace vitrine::desktop {

Devices::Devices(Window& window, PictureLibrary& library, Workers& workers, const std::string& wanted,
                 std::string dtype, Worker::Task wake)
    : window_(window),
      library_(library),
      workers_(workers),
      dtype_(std::move(dtype)),
      wake_(std::move(wake)),
      choice_{.devices = window.devices()} {
  make(window.open_device(wanted));
}

Devices::~Devices() { close(); }

void Devices::make(std::unique_ptr<Device> device) {
  const auto same = [uuid = device->capabilities().device_uuid](const WindowDevice& other) {
    return other.physical.capabilities.device_uuid == uuid;
  };
  const auto found = std::ranges::find_if(choice_.devices, same);
  choice_.used = found == choice_.devices.end() ? 0 : static_cast<size_t>(found - choice_.devices.begin());
  try {
    gpu_ = std::make_unique<Gpu>(window_, std::move(device));
    on_device_ = std::make_unique<OnDevice>(*gpu_->pipelines, gpu_->frames->textures(), library_,
                                            workers_.models, dtype_, wake_);
  } catch (...) {
    close();  // all of it is there, or nothing
    throw;
  }
}

void Devices::close() {
  if (!gpu_) return;
  // Jobs hold the model: they end first.
  workers_.models.cancel();
  workers_.models.wait();
  on_device_.reset();
  workers_.models.run_ui_tasks();
  gpu_->frames.reset();
  gpu_->pipelines.reset();
  const uint64_t alive = gpu_->device->allocations();
  gpu_.reset();
  alive_at_end_ = std::max(alive_at_end_, alive);
}

void Devices::change_if_chosen() {
  // The window goes on being drawn until what ran on the old device has ended.
  if (!choice_.next || !workers_.models.idle()) return;
  const WindowDevice& chosen = choice_.devices[*std::exchange(choice_.next, std::nullopt)];
  Looking& looking = on_device_->looking;
  std::unique_ptr<Device> device;
  try {
    device = window_.open_device(chosen);
  } catch (const Error&) {
    // What was cancelled when it was chosen, on the device of before.
    looking.ask_again();
    on_device_->words.type(on_device_->words.typed());
    if (!looking.has_model()) {
      looking.choose_model(looking.model_choice());
    } else if (!looking.seen()) {
      on_device_->look_at_selected();
    }
    throw;
  }
  const ModelChoice model = looking.model_choice();
  const MapSelection selection = looking.selection();
  const std::optional<bool> exif = looking.asked_exif();
  Words::Typed typed = on_device_->words.typed();
  DigitCanvas canvas = std::move(on_device_->drawing.canvas);
  const size_t before = choice_.used;
  close();
  std::optional<Error> failed;
  try {
    make(std::move(device));
  } catch (const Error& error) {
    // Another program may have what the chosen one lacks now. The one of before has just worked.
    failed = error;
    make(window_.open_device(choice_.devices[before]));
  }
  on_device_->drawing.canvas = std::move(canvas);
  on_device_->words.type(std::move(typed));
  on_device_->looking.turn_by_exif(exif);
  on_device_->looking.choose_model(model);
  on_device_->looking.select(selection);
  on_device_->look_at_selected();
  if (failed) throw *failed;
}

}  // namespace vitrine::desktop

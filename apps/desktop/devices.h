// The device that the window and its models share, with all that lives on it, and the change to another one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "apps/desktop/desk.h"
#include "apps/desktop/gpu/gpu.h"

namespace vitrine::desktop {

class Devices {
 public:
  // Opens the one that `wanted` means, as Window::open_device() does. `dtype`: as --dtype.
  Devices(Window& window, PictureLibrary& library, Workers& workers, const std::string& wanted,
          std::string dtype, Worker::Task wake);
  ~Devices();
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  DeviceChoice& choice() { return choice_; }
  bool opened() const { return gpu_ != nullptr; }
  Gpu& gpu() { return *gpu_; }
  const std::unique_ptr<OnDevice>& on_device() const { return on_device_; }

  // Where another one was chosen and nothing runs on this one any more: takes it, with the model, the
  // selection and the drawing of before. Between frames: nothing of a frame under way may use what goes.
  // Where it can't be taken, Error(failed) says why, and the one of before goes on; without that nothing is
  // opened.
  void change_if_chosen();
  // Ends what runs on it, and lets all of it go.
  void close();
  // Device memory that was still in use when a device was let go; 0, or there is a leak.
  uint64_t alive_at_end() const { return alive_at_end_; }

 private:
  void make(std::unique_ptr<Device> device);

  Window& window_;
  PictureLibrary& library_;
  Workers& workers_;
  const std::string dtype_;
  const Worker::Task wake_;
  DeviceChoice choice_;
  std::unique_ptr<Gpu> gpu_;
  std::unique_ptr<OnDevice> on_device_;
  uint64_t alive_at_end_ = 0;
};

}  // namespace vitrine::desktop

// All that belongs to one device: when another device is chosen, this goes and a new one comes.
#pragma once

#include <memory>
#include <string>

#include "apps/desktop/gpu/frames.h"
#include "apps/desktop/gpu/window.h"
#include "runtime/graph/pipeline_store.h"
#include "runtime/vk/device.h"

namespace vitrine::desktop {

struct Gpu {
  Gpu(Window& window, std::unique_ptr<Device> opened)
      : device(std::move(opened)),
        pipelines(std::make_unique<PipelineStore>(*device)),
        frames(std::make_unique<Frames>(*device, window.surface(), window.framebuffer())) {}

  std::unique_ptr<Device> device;
  std::unique_ptr<PipelineStore> pipelines;
  std::unique_ptr<Frames> frames;
};

}  // namespace vitrine::desktop

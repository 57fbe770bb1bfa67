// A device that computes and draws: when another one is chosen, this goes and a new one comes.
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
  DisplayScale letters{.layout = 0};  // what they were drawn for; nothing yet
};

}  // namespace vitrine::desktop

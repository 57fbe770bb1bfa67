// What lives with one device, besides what draws the window: when another one is chosen, all of it goes.
#pragma once

#include <string>
#include <vector>

#include "apps/desktop/drawing.h"
#include "apps/desktop/engine/model_list.h"
#include "apps/desktop/engine/picture_library.h"
#include "apps/desktop/engine/training_session.h"
#include "apps/desktop/engine/worker.h"
#include "apps/desktop/gpu/texture.h"
#include "apps/desktop/looking.h"
#include "apps/desktop/thumbnails.h"
#include "apps/desktop/training_samples.h"
#include "apps/desktop/words.h"
#include "runtime/graph/pipeline_store.h"
#include "runtime/vk/device_facts.h"

namespace vitrine::desktop {

struct OnDevice {
  // `worker` runs the models. `wake` is called from their threads.
  OnDevice(PipelineStore& pipelines, TextureStore& store, PictureLibrary& pictures, Worker& worker,
           const std::string& dtype, const Worker::Task& wake)
      : device(pipelines.device()),
        textures(store),
        library(pictures),
        facts(device_facts(device.capabilities())),
        thumbnails(store, pictures),
        looking(pipelines, store, worker, dtype),
        words(looking, pictures, worker),
        drawing(pipelines, store, shipped_digit_model(), wake),
        training(pipelines, wake),
        training_samples(store) {}

  void look_at_selected() {
    if (const auto selected = library.selected()) looking.look_at(library.path(*selected));
  }

  Device& device;
  TextureStore& textures;
  PictureLibrary& library;  // stays when the device changes
  const std::vector<DeviceFact> facts;
  Thumbnails thumbnails;
  Looking looking;
  Words words;
  Drawing drawing;
  TrainingSession training;
  TrainingSamples training_samples;
};

}  // namespace vitrine::desktop

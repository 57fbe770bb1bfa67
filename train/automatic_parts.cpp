#include "train/automatic_parts.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <vector>

#include "model/run/runner.h"
#include "runtime/graph/executable.h"
#include "runtime/graph/plan.h"
#include "runtime/tune/choice_store.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/batch_parts.h"
#include "train/recipes/teacher.h"
#include "train/training_graph.h"

namespace vitrine {
namespace {

std::string size_text(uint64_t bytes) {
  char text[32];
  const bool many = bytes >= uint64_t{1} << 30;
  std::snprintf(text, sizeof text, "%.1f %s", static_cast<double>(bytes) / (uint64_t{1} << (many ? 30 : 20)),
                many ? "GiB" : "MiB");
  return text;
}

class Estimate {
 public:
  Estimate(const TrainConfig& config, const Dataset& data, const TrainingOptions& options)
      : config_(config),
        options_(options),
        layout_(layout_of(config)),
        images_(images_of(data, config)),
        on_features_(trains_on_features(config, data)) {
    if (std::optional<Teacher> teacher = open_teacher(config)) teacher_ = teacher->model;
  }

  // What a training of so many parts takes; nothing where a kernel refuses it.
  std::optional<uint64_t> bytes(const Device& device, uint64_t parts) const {
    TrainConfig config = config_;
    config.parts = parts;
    const bool several = !options_.devices.empty(), sums = parts > 1 || config.accumulation > 1 || several;
    config = config_of_part(config);
    const StepImages images = given_images(images_, pictures_on_host(options_, device));
    const PlanOptions options = with_stored_choices(options_.plan, device.capabilities());
    try {
      const Plan step = make_plan(make_step_graph(config, layout_,
                                                  {.update = !sums,
                                                   .recompute = options_.recompute,
                                                   .images = images,
                                                   .from_features = on_features_,
                                                   .teacher = teacher_}),
                                  device.capabilities(), options);
      const Plan test = make_plan(make_test_graph(config, layout_, config.batch_size, images),
                                  device.capabilities(), options);
      // Parameters and gradients, their sum or what the host gets of them, moments and an average.
      uint64_t buffers = 2 + (sums ? 1 : 0) + (several ? Executable::io_sets : 0);
      if (config.optimizer != Optimizer::sgd) {
        buffers += 2;
      } else if (config.momentum > 0) {
        buffers += 1;
      }
      if (config.ema_decay > 0) buffers += 1;
      uint64_t pictures = 0;
      if (images == StepImages::pictures)
        pictures =
            config.batch_size * config.model.image_height * config.model.image_width * sizeof(uint32_t);
      return run_bytes(step) + run_bytes(test) + std::max(step.constant_bytes(), test.constant_bytes()) +
             buffers * layout_.elements * sizeof(float) + pictures;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::failed && error.code() != ErrorCode::usage) throw;
      return std::nullopt;
    }
  }

 private:
  const TrainConfig& config_;
  const TrainingOptions& options_;
  ParameterLayout layout_;
  StepImages images_;
  bool on_features_;
  std::optional<TeacherModel> teacher_;
};

}  // namespace

FittingParts fitting_parts(const TrainConfig& config, const Dataset& data, std::span<Device* const> devices,
                           const TrainingOptions& options, uint64_t wanted) {
  if (std::max<uint64_t>(wanted, 1) >= config.batch_size) return {.parts = wanted};  // no part is smaller
  const Estimate estimate(config, data, options);
  // One that was opened several times has to hold as much.
  std::map<VkPhysicalDevice, uint64_t> shares;
  std::vector<const Device*> different;
  for (const Device* device : devices) {
    if (++shares[device->physical()] == 1) different.push_back(device);
  }
  std::string too_much;
  const auto fits = [&](uint64_t parts) {
    for (const Device* device : different) {
      const std::optional<uint64_t> needed = estimate.bytes(*device, parts);
      const uint64_t free = free_device_bytes(*device) / shares[device->physical()];
      if (needed && *needed + *needed / 8 <= free) continue;
      if (too_much.empty()) {
        const std::string& name = device->capabilities().name;
        const uint64_t samples = parts_of(TrainConfig{.batch_size = config.batch_size, .parts = parts}).part;
        too_much = "training on " + counted(samples, "picture") + " at once " +
                   (needed ? "takes " + size_text(*needed) + " of memory, and " + size_text(free) +
                                 " are free on " + name
                           : "is more than a kernel on " + name + " can be given");
      }
      return false;
    }
    return true;
  };
  uint64_t parts = std::max<uint64_t>(wanted, 1);
  while (!fits(parts)) {
    if (parts == config.batch_size) return {.parts = wanted};
    parts = std::min(2 * parts, config.batch_size);
  }
  if (parts == wanted) return {.parts = parts};
  TrainConfig cut = config;
  cut.parts = parts;
  return {.parts = parts,
          .said = too_much + "; so each batch of " + std::to_string(config.batch_size) +
                  " is cut into parts of " + std::to_string(parts_of(cut).part) +
                  ", whose gradients are added up (--parts says how many, --recompute takes less memory)"};
}

}  // namespace vitrine

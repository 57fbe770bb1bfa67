#include "model/look/look_once.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "model/run/range_guard.h"
#include "model/vit/vit_graph.h"

namespace vitrine {

std::unique_ptr<Executable> look_once(WeightStore& weights, PipelineStore& pipelines, const Model& model,
                                      const LookSubject& subject, DType dtype, const PlanOptions& plan,
                                      const BlockTaps& taps, const Warn& warn) {
  const ViTConfig& c = model.config;
  const Capabilities& device = pipelines.device().capabilities();
  ViTGraphOptions options;
  RangeGuard::Fill fill = [&](Executable& executable) {
    std::ranges::copy(std::as_bytes(subject.numbers), executable.input(0).begin());
  };
  PicturePart part;
  PictureCapacity capacity;
  if (subject.numbers.empty()) {
    const PictureCapacity largest = PictureCapacity::largest(device, model.preprocess.width());
    part = prepare_part(model.preprocess, subject.picture, largest, subject.name);
    capacity = PictureCapacity::covering(resample_needs(part.prepared.resample), largest);
    options.image = [&](Graph& graph) {
      return add_picture_input(graph, model.preprocess, c.channels, 1, capacity).image;
    };
    fill = [&](Executable& executable) {
      write_picture_input(executable, 0, {&part, 1}, model.preprocess.values(c.channels));
    };
  } else {
    options.batch = subject.numbers.size() / (c.channels * c.image_height * c.image_width);
  }
  const auto options_for = [&](uint64_t batch) {
    ViTGraphOptions probed = options;
    probed.batch = batch;
    return probed;
  };
  RangeGuard guard(pipelines, model, options_for, plan, warn);
  const auto run = [&] {
    ViTGraphOptions tapped = options;
    tapped.dtype = dtype;
    tapped.taps = taps;
    auto executable = std::make_unique<Executable>(weights, guard.plan(std::move(tapped)));
    fill(*executable);
    executable->run();
    return executable;
  };
  std::unique_ptr<Executable> executable = run();
  if (dtype != DType::f16) return executable;
  const auto bytes = executable->output(executable->output_index(name_of(natural_result(c))));
  std::vector<float> result(bytes.size() / sizeof(float));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  if (guard.overflowed(result, options.batch, fill)) executable = run();
  return executable;
}

}  // namespace vitrine

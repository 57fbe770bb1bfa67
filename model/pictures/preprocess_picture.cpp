#include "model/pictures/preprocess_picture.h"

#include <array>
#include <cstring>
#include <utility>

#include "runtime/graph/constants.h"
#include "runtime/graph/weight_store.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

class NoConstants : public ConstantSource {
 public:
  ConstantParts find(const std::string& name, const Shape&, DType) override {
    throw Error(ErrorCode::failed, "preprocessing has no constant '" + name + "'");
  }
};

// The elements of one of add_picture_input's results.
template <typename T>
std::vector<T> run(PipelineStore& pipelines, const Preprocess& preprocess, uint64_t channels, Picture picture,
                   const std::string& name, ValueId PictureInput::* which) {
  const Capabilities& device = pipelines.device().capabilities();
  const PictureCapacity largest = PictureCapacity::largest(device, preprocess.width());
  const std::array<PicturePart, 1> parts{prepare_part(preprocess, std::move(picture), largest, name)};
  const PictureCapacity capacity =
      PictureCapacity::covering(resample_needs(parts[0].prepared.resample), largest);
  const auto graph = std::make_shared<Graph>();
  const PictureInput input = add_picture_input(*graph, preprocess, channels, 1, capacity);
  graph->output(input.*which, "result");
  NoConstants constants;
  WeightStore weights(pipelines, constants);
  Executable executable(weights, make_plan(graph, device));
  write_picture_input(executable, 0, parts, preprocess.values(channels));
  executable.run();
  const auto bytes = executable.output(0);
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

}  // namespace

std::vector<uint8_t> resized_picture(PipelineStore& pipelines, const Preprocess& preprocess,
                                     uint64_t channels, Picture picture, const std::string& name) {
  const auto pixels =
      run<uint32_t>(pipelines, preprocess, channels, std::move(picture), name, &PictureInput::resized);
  std::vector<uint8_t> out;
  out.reserve(pixels.size() * channels);
  for (const uint32_t pixel : pixels) {
    for (uint64_t c = 0; c < channels; ++c) out.push_back(static_cast<uint8_t>(pixel >> (8 * c)));
  }
  return out;
}

std::vector<float> preprocessed_picture(PipelineStore& pipelines, const Preprocess& preprocess,
                                        uint64_t channels, Picture picture, const std::string& name) {
  return run<float>(pipelines, preprocess, channels, std::move(picture), name, &PictureInput::image);
}

}  // namespace vitrine

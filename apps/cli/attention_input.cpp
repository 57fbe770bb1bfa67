#include "apps/cli/attention_input.h"

#include <algorithm>
#include <filesystem>

#include "model/preprocess_files.h"
#include "model/vit_graph.h"
#include "runtime/util/error.h"
#include "runtime/util/npy.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

// The bytes whose numbers are nearest: what normalising made of a picture, undone.
Image picture_of(std::span<const float> tensor, const ViTConfig& c, const Preprocess& preprocess) {
  const std::vector<float> values = preprocess.values(c.channels);
  const uint64_t pixels = c.image_height * c.image_width;
  Image picture{to_u32(c.image_width), to_u32(c.image_height), std::vector<uint8_t>(4 * pixels, 255)};
  for (uint64_t channel = 0; channel < 3; ++channel) {
    const uint64_t from = c.channels == 1 ? 0 : channel;
    const std::span<const float> table = std::span(values).subspan(256 * from, 256);  // rising
    for (uint64_t i = 0; i < pixels; ++i) {
      const float value = tensor[from * pixels + i];
      const auto above = std::ranges::lower_bound(table, value);
      auto byte = static_cast<uint64_t>(above - table.begin());
      if (byte == 256 || (byte > 0 && value - table[byte - 1] < table[byte] - value)) --byte;
      picture.pixels[4 * i + channel] = static_cast<uint8_t>(byte);
    }
  }
  return picture;
}

}  // namespace

AttentionInput::AttentionInput(const std::string& path, const ModelFlags& model, const PictureFlags& pictures,
                               const CommonOptions& common, bool shown_as_picture)
    : path_(path) {
  if (std::filesystem::path(path).extension() == ".npy") {
    model_ = open_model(model, common);
    const ViTConfig& c = model_.config;
    const NpyFile file(path);
    require_images(file, c);
    if (file.header().shape[0] != 1) {
      throw Error(ErrorCode::usage, shown(path) + ": found " + std::to_string(file.header().shape[0]) +
                                        " images, expected one");
    }
    tensor_ = file.values<float>();
    if (shown_as_picture) {
      require_picture_channels(model_);
      const Preprocess preprocess = pictures.profile.empty()
                                        ? read_preprocess(model_.path, model_.family, c)
                                        : profile_named(pictures.profile, c.image_height, c.image_width);
      picture_ = picture_of(tensor_, c, preprocess);
      region_ = map_region(c, {.resized_height = picture_.height, .resized_width = picture_.width},
                           picture_.height, picture_.width);
    }
    return;
  }
  PictureModel opened = open_picture_model(model, pictures, common);
  model_ = std::move(opened.model);
  preprocess_ = std::move(opened.preprocess);
  picture_ = decode_image(path, decode_options(pictures));
  region_ =
      map_region(model_.config, picture_geometry(preprocess_, picture_.height, picture_.width, shown(path)),
                 picture_.height, picture_.width);
}

std::unique_ptr<Executable> AttentionInput::run(WeightStore& weights, const Device& device, DType dtype,
                                                const PlanOptions& plan, BlockTaps taps) const {
  const ViTConfig& c = model_.config;
  ViTGraphOptions options{.dtype = dtype, .taps = std::move(taps)};
  const auto executable = [&] {
    return std::make_unique<Executable>(weights,
                                        make_plan(make_vit_graph(c, options), device.capabilities(), plan));
  };
  std::unique_ptr<Executable> made;
  if (!tensor_.empty()) {
    made = executable();
    std::ranges::copy(std::as_bytes(std::span(tensor_)), made->input(0).begin());
  } else {
    const PictureCapacity largest = PictureCapacity::largest(device.capabilities(), preprocess_.width());
    const PicturePart part =
        prepare_part(preprocess_, picture_for(picture_, c.channels), largest, shown(path_));
    const PictureCapacity capacity =
        PictureCapacity::covering(resample_needs(part.prepared.resample), largest);
    options.image = [&](Graph& graph) {
      return add_picture_input(graph, preprocess_, c.channels, options.batch, capacity).image;
    };
    made = executable();
    write_picture_input(*made, 0, {&part, 1}, preprocess_.values(c.channels));
  }
  made->run();
  return made;
}

Image AttentionInput::overlay(const PatchMap& map) const {
  return vitrine::overlay(
      picture_, map.weights, to_u32(map.height), to_u32(map.width),
      {.region = OverlayOptions::Region{region_.left, region_.top, region_.width, region_.height}});
}

}  // namespace vitrine::cli

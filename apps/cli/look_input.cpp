#include "apps/cli/look_input.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "model/run/range_guard.h"
#include "model/vit/vit_graph.h"
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

void add_look_flags(CLI::App& command, LookFlags& flags) {
  command
      .add_option("image", flags.image,
                  "A JPEG, PNG or WebP file, or an .npy of float32 [1,C,H,W], already normalised")
      ->required();
  add_model_flags(command, flags.model);
  add_picture_flags(command, flags.picture);
}

LookInput::LookInput(const LookFlags& flags, const CommonOptions& common, bool shown_as_picture)
    : path_(flags.image) {
  if (std::filesystem::path(path_).extension() == ".npy") {
    ModelOptions options = model_options_of(flags.model, common);
    options.profile = flags.picture.profile;
    model_ = vitrine::open_model(options, warn);
    announce_random_weights(model_, flags.model, common);
    const ViTConfig& c = model_.config;
    const NpyFile file(path_);
    require_images(file, c);
    if (file.header().shape[0] != 1) {
      throw Error(ErrorCode::usage, shown(path_) + ": found " + std::to_string(file.header().shape[0]) +
                                        " images, expected one");
    }
    tensor_ = file.values<float>();
    if (shown_as_picture) {
      require_pictures(model_, warn);
      picture_ = picture_of(tensor_, c, model_.preprocess);
      region_ = map_region(c, {.resized_height = picture_.height, .resized_width = picture_.width},
                           picture_.height, picture_.width);
    }
    return;
  }
  model_ = open_picture_model(flags.model, flags.picture, common);
  picture_ = decode_image(path_, decode_options(flags.picture));
  region_ = map_region(model_.config,
                       picture_geometry(model_.preprocess, picture_.height, picture_.width, shown(path_)),
                       picture_.height, picture_.width);
}

std::unique_ptr<Executable> LookInput::run(WeightStore& weights, PipelineStore& pipelines, DType dtype,
                                           const PlanOptions& plan, const BlockTaps& taps) const {
  const ViTConfig& c = model_.config;
  const Capabilities& device = pipelines.device().capabilities();
  ViTGraphOptions options;
  RangeGuard::Fill fill = [&](Executable& executable) {
    std::ranges::copy(std::as_bytes(std::span(tensor_)), executable.input(0).begin());
  };
  PicturePart part;
  PictureCapacity capacity;
  if (tensor_.empty()) {
    const PictureCapacity largest = PictureCapacity::largest(device, model_.preprocess.width());
    part = prepare_part(model_.preprocess, picture_for(picture_, c.channels), largest, shown(path_));
    capacity = PictureCapacity::covering(resample_needs(part.prepared.resample), largest);
    options.image = [&](Graph& graph) {
      return add_picture_input(graph, model_.preprocess, c.channels, 1, capacity).image;
    };
    fill = [&](Executable& executable) {
      write_picture_input(executable, 0, {&part, 1}, model_.preprocess.values(c.channels));
    };
  }
  RangeGuard guard(pipelines, model_, [&](uint64_t) { return options; }, plan, warn);
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
  if (guard.overflowed(result, 1, fill)) executable = run();
  return executable;
}

Image LookInput::overlay(const PatchMap& map) const {
  return vitrine::overlay(
      picture_, map.weights, to_u32(map.height), to_u32(map.width),
      {.region = OverlayOptions::Region{region_.left, region_.top, region_.width, region_.height}});
}

}  // namespace vitrine::cli

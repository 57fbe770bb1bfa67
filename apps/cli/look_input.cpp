#include "apps/cli/look_input.h"

#include <algorithm>
#include <filesystem>

#include "model/files/model_pictures.h"
#include "model/look/look_once.h"
#include "runtime/util/error.h"
#include "runtime/util/npy.h"
#include "runtime/util/text.h"
#include "train/data/picture_dataset.h"

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
  model_ = open_picture_model(flags.model, flags.picture, common, true);
  picture_ = decode_image(path_, decode_options(flags.picture, model_.preprocess));
  if (model_.preprocess.kept_shape) {  // then the model is one for this picture's shape
    const Preprocess own = model_.preprocess.of_picture(picture_.height, picture_.width);
    ModelOptions options = model_options_of(flags.model, common);
    options.profile = flags.picture.profile;
    options.image_height = own.height();
    options.image_width = own.width();
    model_ = vitrine::open_model(options);
  }
  region_ = map_region(model_.config,
                       picture_geometry(model_.preprocess, picture_.height, picture_.width, shown(path_)),
                       picture_.height, picture_.width);
}

std::unique_ptr<Executable> LookInput::run(WeightStore& weights, PipelineStore& pipelines, DType dtype,
                                           const PlanOptions& plan, const BlockTaps& taps) const {
  LookSubject subject{.name = shown(path_), .numbers = tensor_};
  if (tensor_.empty()) subject.picture = picture_for(picture_, model_.config.channels);
  return look_once(weights, pipelines, model_, subject, dtype, plan, taps, warn);
}

Image LookInput::overlay(const PatchMap& map) const {
  return vitrine::overlay(
      picture_, map.weights, to_u32(map.height), to_u32(map.width),
      {.region = OverlayOptions::Region{region_.left, region_.top, region_.width, region_.height}});
}

}  // namespace vitrine::cli

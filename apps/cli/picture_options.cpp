#include "apps/cli/picture_options.h"

#include <algorithm>

#include "model/preprocess_files.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

bool sets_image_size(const ModelFlags& flags) {
  return !flags.image_size.empty() ||
         std::ranges::any_of(flags.set, [](const std::string& set) { return set.starts_with("image_"); });
}

}  // namespace

void add_picture_flags(CLI::App& command, PictureFlags& flags) {
  command.add_option("--profile", flags.profile,
                     "Preprocessing, instead of what the model's files ask for: " + profile_names());
  command.add_flag("--exif", flags.exif, "Turn pictures as their EXIF orientation says");
}

DecodeOptions decode_options(const PictureFlags& flags) {
  DecodeOptions options;
  options.exif = flags.exif;
  return options;
}

Picture picture_for(Image image, uint64_t channels) {
  if (channels == 1) {
    const std::vector<uint8_t> grey = grey_from_rgb(image);
    for (size_t i = 0; i < grey.size(); ++i) std::fill_n(image.pixels.begin() + 4 * i, 3, grey[i]);
  }
  return {image.width, image.height, std::move(image.pixels)};
}

void require_picture_channels(const Model& model) {
  const uint64_t channels = model.config.channels;
  if (channels == 1 || channels == 3) return;
  throw Error(ErrorCode::bad_file, shown(model.name) + ": found a model of " + std::to_string(channels) +
                                       " channels, expected 3 (colour) or 1 (grey) to show it pictures");
}

PictureModel open_picture_model(const ModelFlags& flags, const PictureFlags& pictures,
                                const CommonOptions& common) {
  PictureModel opened{open_model(flags, common), {}};
  const ViTConfig& c = opened.model.config;
  require_picture_channels(opened.model);
  opened.preprocess = pictures.profile.empty()
                          ? read_preprocess(opened.model.path, opened.model.family, c)
                          : profile_named(pictures.profile, c.image_height, c.image_width);
  Preprocess& preprocess = opened.preprocess;
  if (preprocess.height() == c.image_height && preprocess.width() == c.image_width) return opened;
  if (sets_image_size(flags)) {
    preprocess = preprocess.with_size(c.image_height, c.image_width);
    return opened;
  }
  // Published models may be shown pictures of another size than they were trained with: DINOv2's files
  // ask for 224, its positions are those of 518.
  ModelFlags resized = flags;
  resized.image_size = std::to_string(preprocess.height()) + "x" + std::to_string(preprocess.width());
  opened.model = open_model(resized, common);
  return opened;
}

}  // namespace vitrine::cli

#include "model/run/picture_model.h"

#include <algorithm>
#include <memory>
#include <set>

#include "model/files/preprocess_files.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

bool sets_image_size(const ModelOptions& options) {
  return options.image_height != 0 || options.image_width != 0 ||
         std::ranges::any_of(options.set, [](const std::string& set) { return set.starts_with("image_"); });
}

}  // namespace

void require_picture_channels(const Model& model) {
  const uint64_t channels = model.config.channels;
  if (channels == 1 || channels == 3) return;
  throw Error(ErrorCode::bad_file, shown(model.name) + ": found a model of " + std::to_string(channels) +
                                       " channels, expected 3 (colour) or 1 (grey) to show it pictures");
}

PictureModel open_picture_model(const ModelOptions& options, std::string_view profile, const Warn& warn) {
  // A model that is opened twice says the same twice.
  const auto said = std::make_shared<std::set<std::string>>();
  const Warn once = !warn ? Warn() : [warn, said](const std::string& sentence) {
    if (said->insert(sentence).second) warn(sentence);
  };
  PictureModel opened{open_model(options, once), {}};
  const ViTConfig& c = opened.model.config;
  require_picture_channels(opened.model);
  opened.preprocess = profile.empty() ? read_preprocess(opened.model.path, opened.model.family, c)
                                      : profile_named(profile, c.image_height, c.image_width);
  Preprocess& preprocess = opened.preprocess;
  if (preprocess.height() == c.image_height && preprocess.width() == c.image_width) return opened;
  if (sets_image_size(options)) {
    preprocess = preprocess.with_size(c.image_height, c.image_width);
    return opened;
  }
  // DINOv2's files ask for 224, its positions are those of 518.
  ModelOptions resized = options;
  resized.image_height = preprocess.height();
  resized.image_width = preprocess.width();
  opened.model = open_model(resized, once);
  return opened;
}

DType storage_type(std::string_view name, const Capabilities& device) {
  if (name == "f32" || name == "auto") return DType::f32;
  if (name != "f16")
    throw Error(ErrorCode::usage, "--dtype: found '" + std::string(name) + "', expected f32, f16 or auto");
  if (!device.supports(Need::storage16)) {
    throw Error(ErrorCode::usage,
                "--dtype: found f16, and device '" + device.name + "' has no 16-bit storage, expected f32");
  }
  return DType::f16;
}

}  // namespace vitrine

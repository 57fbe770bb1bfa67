#include "model/files/model_pictures.h"

#include <algorithm>
#include <optional>

#include "model/files/preprocess_files.h"
#include "model/vit/vit_graph.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

// The images that come, and who asks for them.
struct AskedSize {
  uint64_t height = 0, width = 0;
  std::string origin = {};
  ErrorCode code = ErrorCode::usage;
};

void set_image_size(ViTConfig& config, const AskedSize& asked, bool whole_patches, const Warn& warn) {
  config.image_height = asked.height;
  config.image_width = asked.width;
  config.validate(asked.origin, asked.code);
  const uint64_t rows = config.image_height - config.seen_height();
  const uint64_t columns = config.image_width - config.seen_width();
  if (rows == 0 && columns == 0) return;
  const std::string patches = "patches of " + sides(config.patch_height, config.patch_width);
  if (whole_patches) throw Error(asked.code, asked.origin + ": expected whole " + patches);
  if (warn) {
    warn(asked.origin + " leaves the last " + std::to_string(rows) + " rows and " + std::to_string(columns) +
         " columns of pixels outside the " + patches);
  }
}

// Nothing where pictures don't keep their shape, too.
std::optional<std::string> refuses_kept_shape(const Preprocess& p, const ViTConfig& c) {
  if (!p.kept_shape) return std::nullopt;
  if (auto reason = refuses_shapes(c)) return reason;
  if (p.kept_shape->patch == c.patch_height) return std::nullopt;
  return "found patches of " + std::to_string(p.kept_shape->patch) + " pixels, expected its " +
         std::to_string(c.patch_height);
}

}  // namespace

std::string sides(uint64_t height, uint64_t width) {
  return std::to_string(height) + "x" + std::to_string(width);
}

void decide_pictures(Model& model, const ModelOptions& options, bool whole_patches, const Warn& warn) {
  ViTConfig& c = model.config;
  Preprocess& p = model.preprocess;
  bool asked =
      std::ranges::any_of(options.set, [](const std::string& set) { return set.starts_with("image_"); });
  if (options.image_height != 0 && options.image_width != 0) {
    asked = true;
    set_image_size(c,
                   {options.image_height, options.image_width,
                    "--image-size " + sides(options.image_height, options.image_width)},
                   whole_patches, warn);
  }
  uint64_t height = c.image_height, width = c.image_width;
  try {
    p = read_preprocess(model.path, model.family, c);
    // Models of a fixed size are shown that by any profile; this one takes what its processor makes.
    if (!asked && model.family == "hf_dinov2") height = p.height(), width = p.width();
  } catch (const Error& error) {
    if (options.profile.empty()) {
      model.preprocess_error = error.what();
      return;
    }
    if (options.profile == fast_profile) throw;
  }
  if (options.profile == fast_profile) {
    p = p.on_torch();
  } else if (!options.profile.empty()) {
    p = profile_named(options.profile, height, width);
    if (p.kept_shape) p.kept_shape->patch = c.patch_height;
  }
  if (!asked) {
    if (const auto reason = refuses_kept_shape(p, c)) {
      model.preprocess_error =
          p.profile + ": pictures that keep their shape can't be shown to this model: " + *reason;
      // What a file asks for leaves a model that takes numbers alone.
      if (options.profile.empty()) return;
      throw Error(ErrorCode::bad_file, model.preprocess_error);
    }
  }
  const bool fits = p.height() == c.image_height && p.width() == c.image_width;
  if (fits && !(asked && p.kept_shape)) return;
  if (asked) {
    p = p.with_size(c.image_height, c.image_width);
  } else {
    set_image_size(c,
                   {p.height(), p.width(), p.profile + ": images of " + sides(p.height(), p.width()),
                    ErrorCode::bad_file},
                   whole_patches, warn);
  }
}

void require_pictures(const Model& model, const Warn& warn, bool in_their_shape) {
  const uint64_t channels = model.config.channels;
  if (channels != 1 && channels != 3) {
    throw Error(ErrorCode::bad_file, shown(model.name) + ": found a model of " + std::to_string(channels) +
                                         " channels, expected 3 (colour) or 1 (grey) to show it pictures");
  }
  if (!model.preprocess_error.empty()) throw Error(ErrorCode::bad_file, model.preprocess_error);
  if (!warn) return;
  if (!model.preprocess.remark.empty()) warn(model.preprocess.remark);
  if (!in_their_shape) stretched_pictures(model, warn);
}

Preprocess stretched_pictures(const Model& model, const Warn& warn) {
  const Preprocess& p = model.preprocess;
  if (!p.kept_shape) return p;
  if (warn) {
    warn(p.profile + ": pictures keep their shape there; here they are stretched to " +
         sides(p.height(), p.width()) + " pixels");
  }
  return p.with_size(p.height(), p.width());
}

}  // namespace vitrine

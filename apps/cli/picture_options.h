// Pictures on the command line: which files, how they are decoded, and which preprocessing a model wants.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "apps/cli/model_options.h"
#include "images/image.h"
#include "model/pictures/preprocess.h"

namespace vitrine::cli {

struct PictureFlags {
  std::string profile;
  std::optional<bool> exif;  // as the preprocessing has it where nothing is said
};

// Declares --profile, --exif and --no-exif.
void add_picture_flags(CLI::App& command, PictureFlags& flags);

DecodeOptions decode_options(const PictureFlags& flags, const Preprocess& preprocess);

// One that pictures can be shown to, with --profile's preprocessing where that is given. `in_their_shape` as
// require_pictures() has it.
Model open_picture_model(const ModelFlags& flags, const PictureFlags& pictures, const CommonOptions& common,
                         bool in_their_shape = false);

}  // namespace vitrine::cli

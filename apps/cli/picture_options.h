// Pictures on the command line: which files, how they are decoded, and which preprocessing a model wants.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/cli/model_options.h"
#include "images/image.h"
#include "model/picture_input.h"
#include "model/preprocess.h"

namespace vitrine::cli {

struct PictureFlags {
  std::string profile;
  bool exif = false;
};

// Declares --profile and --exif.
void add_picture_flags(CLI::App& command, PictureFlags& flags);

DecodeOptions decode_options(const PictureFlags& flags);

// As a model of this many channels looks at it. Error(bad_file) naming `model` unless there are 1 or 3.
Picture picture_for(Image image, uint64_t channels);
void require_picture_channels(const Model& model);

// A model with the preprocessing that it gets. --image-size decides the size, else the preprocessing that
// the model's files ask for does, and the model is opened for it.
struct PictureModel {
  Model model;
  Preprocess preprocess;
};
PictureModel open_picture_model(const ModelFlags& flags, const PictureFlags& pictures,
                                const CommonOptions& common);

}  // namespace vitrine::cli

#include "apps/cli/picture_options.h"

#include "model/files/model_pictures.h"
#include "train/data/picture_dataset.h"

namespace vitrine::cli {
void add_picture_flags(CLI::App& command, PictureFlags& flags) {
  command.add_option("--profile", flags.profile,
                     "Preprocessing, instead of what the model's files ask for: " + profile_names() +
                         "; or " + std::string(fast_profile) +
                         ", what they ask for as transformers' processors on PyTorch have it");
  command.add_flag(
      "--exif,!--no-exif", flags.exif,
      "Turn pictures as their EXIF orientation says, or not; else as the preprocessing's library "
      "has it: transformers turns them, timm and torchvision don't");
}

DecodeOptions decode_options(const PictureFlags& flags, const Preprocess& preprocess) {
  return decoding(preprocess, flags.exif);
}

Model open_picture_model(const ModelFlags& flags, const PictureFlags& pictures, const CommonOptions& common,
                         bool in_their_shape) {
  ModelOptions options = model_options_of(flags, common);
  options.profile = pictures.profile;
  Model model = vitrine::open_model(options, warn);
  require_pictures(model, warn, in_their_shape);
  announce_random_weights(model, flags, common);
  return model;
}

}  // namespace vitrine::cli

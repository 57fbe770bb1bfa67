// vitrine preprocess: what a model would be given of a picture, as .npy.
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/cli/commands.h"
#include "apps/cli/open_device.h"
#include "apps/cli/picture_options.h"
#include "model/pictures/preprocess_picture.h"
#include "runtime/util/error.h"
#include "runtime/util/npy.h"
#include "runtime/util/text.h"
#include "train/data/picture_dataset.h"

namespace vitrine::cli {
namespace {

struct PreprocessFlags {
  ModelFlags model;
  PictureFlags picture;
  std::string image, size, out, stage = "normalized";
  bool json = false;
};

struct Wanted {
  Preprocess preprocess;
  uint64_t channels = 3;
};

Wanted wanted_of(const PreprocessFlags& flags, const CommonOptions& common) {
  if (!flags.model.model.empty() || !flags.model.arch.empty()) {
    ModelFlags model = flags.model;
    if (!flags.size.empty()) model.image_size = flags.size;
    const Model opened = open_picture_model(model, flags.picture, common, true);
    return {opened.preprocess, opened.config.channels};
  }
  if (flags.picture.profile.empty()) {
    throw Error(ErrorCode::usage,
                "found neither --model nor --profile, expected one that says how to preprocess");
  }
  if (flags.picture.profile == fast_profile) {
    throw Error(ErrorCode::usage, "--profile fast: found no --model, whose files say what is to be done");
  }
  auto [height, width] = image_size_of("--size", flags.size);
  const bool asked = height != 0;
  if (!asked) height = width = 224;
  Preprocess named = profile_named(flags.picture.profile, height, width);
  if (asked && named.kept_shape) named = named.with_size(height, width);
  return {std::move(named), flags.picture.profile == "grey" ? 1u : 3u};
}

void preprocess(const PreprocessFlags& flags, const CommonOptions& common) {
  const Wanted wanted = wanted_of(flags, common);
  Picture picture = picture_for(decode_image(flags.image, decode_options(flags.picture, wanted.preprocess)),
                                wanted.channels);
  const Preprocess p = wanted.preprocess.of_picture(picture.height, picture.width);
  const std::string name = shown(flags.image),
                    size = std::to_string(picture.width) + " x " + std::to_string(picture.height);
  const std::unique_ptr<Device> device = open_device(common);
  PipelineStore pipelines(*device);
  std::vector<uint64_t> shape;
  if (flags.stage == "resized") {
    shape = {p.height(), p.width(), wanted.channels};
    write_npy(flags.out, shape, resized_picture(pipelines, p, wanted.channels, std::move(picture), name));
  } else {
    shape = {1, wanted.channels, p.height(), p.width()};
    write_npy(flags.out, shape,
              preprocessed_picture(pipelines, p, wanted.channels, std::move(picture), name));
  }
  if (flags.json) {
    const nlohmann::ordered_json line{{"image", flags.image}, {"output", flags.out},
                                      {"stage", flags.stage}, {"shape", shape},
                                      {"by", p.profile},      {"preprocessing", p.to_string()}};
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("%s: %s %s of %s, by %s: %s\n", shown(flags.out).c_str(), flags.stage.c_str(),
              npy_shape(shape).c_str(), size.c_str(), p.profile.c_str(), p.to_string().c_str());
}

}  // namespace

void add_preprocess(CLI::App& app, const CommonOptions& common) {
  CLI::App* command = app.add_subcommand("preprocess", "What a model would be given of a picture, as .npy");
  auto flags = std::make_shared<PreprocessFlags>();
  command->add_option("image", flags->image, "A JPEG, PNG or WebP file")->required()->type_name("IMAGE");
  command->add_option("--model", flags->model.model, "Model whose preprocessing it is, as for vitrine run");
  command->add_option("--arch", flags->model.arch, "Architecture whose usual preprocessing it is");
  command->add_option("--set", flags->model.set, "Overrides a field of the configuration: KEY=VALUE")
      ->allow_extra_args(false);
  add_picture_flags(*command, flags->picture);
  command->add_option("--size", flags->size, "Size of the result, N or HxW pixels, instead of the model's");
  command
      ->add_option("--stage", flags->stage,
                   "normalized: float32 [1,C,H,W], what the model is given (and vitrine run takes); resized: "
                   "uint8 [H,W,C], the same picture before it becomes numbers")
      ->check(CLI::IsMember({"normalized", "resized"}))
      ->capture_default_str();
  command->add_option("--out", flags->out, "Where the array goes")->required();
  command->add_flag("--json", flags->json, "Say what was written as a JSON object");
  command->callback([&common, flags] { preprocess(*flags, common); });
}

}  // namespace vitrine::cli

// Many pictures through a model: files are decoded ahead on threads, batches are computed meanwhile, and
// results come out in the order of the files.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/picture_options.h"
#include "model/run/picture_runner.h"

namespace vitrine::cli {

// What classify and embed share.
struct StreamFlags {
  ModelFlags model;
  PictureFlags picture;
  std::vector<std::filesystem::path> images;
  uint64_t batch = 8;
  bool check_range = false;
};

// Declares the images, --model and its company, --batch, --check-range, --profile and --exif.
void add_stream_flags(CLI::App& command, StreamFlags& flags);

struct Unreadable {
  std::vector<std::string> sentences;  // one a picture that gave no result

  // All of them on stderr, and with that the command's end: throws Error(failed) if there are any.
  void report() const;
};

// Calls `take` with each picture's result, in order; pictures that can't be read are left out and named in
// what is returned. Who needs the device besides has it in `before`, while the first pictures are decoded.
Unreadable stream_pictures(
    const StreamFlags& flags, const CommonOptions& common, const Model& model, Result result,
    const std::function<void(const std::filesystem::path&, std::span<const float>)>& take,
    const std::function<void(PipelineStore&)>& before = {});

}  // namespace vitrine::cli

#include "apps/cli/picture_stream.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <utility>

#include "apps/cli/device/range_report.h"
#include "apps/cli/open_device.h"
#include "apps/cli/progress.h"
#include "images/decode_queue.h"
#include "images/picture_files.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/data/picture_dataset.h"

namespace vitrine::cli {

void add_stream_flags(CLI::App& command, StreamFlags& flags) {
  command.add_option("images", flags.images, "JPEG, PNG and WebP files, or folders of them")
      ->required()
      ->type_name("IMAGE");
  add_model_flags(command, flags.model);
  add_picture_flags(command, flags.picture);
  command.add_option("--batch", flags.batch, "Pictures that are computed together, at most")
      ->check(CLI::Range(uint64_t{1}, uint64_t{4096}))
      ->capture_default_str();
  command.add_flag("--check-range", flags.check_range,
                   "Look at the magnitudes of every batch before it runs, and say how large they get");
}

void Unreadable::report() const {
  if (sentences.empty()) return;
  // The last one is what the command fails with, so that each is said once and in the same way.
  for (size_t i = 0; i + 1 < sentences.size(); ++i)
    std::fprintf(stderr, "vitrine: %s\n", sentences[i].c_str());
  throw Error(ErrorCode::failed, sentences.back());
}

Unreadable stream_pictures(
    const StreamFlags& flags, const CommonOptions& common, const Model& model, Result result,
    const std::function<void(const std::filesystem::path&, std::span<const float>)>& take,
    const std::function<void(PipelineStore&)>& before) {
  const std::vector<std::filesystem::path> files = picture_files(flags.images);
  const uint64_t batch = std::min<uint64_t>(flags.batch, files.size());
  // Started first: the first pictures are decoded while the device is opened and weights are loaded.
  DecodeQueueOptions queue_options;
  queue_options.decode = decode_options(flags.picture, model.preprocess);
  queue_options.pictures_ahead = std::max<size_t>(queue_options.pictures_ahead, 2 * batch);
  DecodeQueue queue(encoded_in(files), queue_options);

  const std::unique_ptr<Device> device = open_device(common);
  PipelineStore pipelines(*device);
  if (before) before(pipelines);
  Unreadable unreadable;
  Progress progress("pictures", files.size());
  uint64_t done = 0;
  std::deque<std::filesystem::path> names;  // of the pictures that the runner has
  PictureRunnerOptions options;
  options.dtype = storage_type(common.dtype, device->capabilities());
  options.result = result;
  options.plan = plan_options(flags.model);
  options.batch = batch;
  options.check_range = flags.check_range;
  options.warn = [&](const std::string& sentence) {
    progress.clear();
    warn(sentence);
  };
  PictureRunner runner(pipelines, model, model.preprocess, options,
                       [&](uint64_t, std::span<const float> numbers) {
                         progress.clear();
                         take(names.front(), numbers);
                         names.pop_front();
                         progress.show(++done);
                       });
  while (auto decoded = queue.next()) {
    if (!decoded->image) {
      unreadable.sentences.push_back(decoded->error);
      progress.show(++done);
      continue;
    }
    PicturePart part;
    try {
      part = runner.prepare(picture_for(std::move(*decoded->image), model.config.channels),
                            shown(decoded->path));
    } catch (const Error& error) {
      unreadable.sentences.push_back(error.what());
      progress.show(++done);
      continue;
    }
    names.push_back(decoded->path);
    runner.add(std::move(part));
  }
  runner.finish();
  if (flags.check_range) {
    progress.clear();
    std::fprintf(stderr, "vitrine: range: %s\n", range_sentence(runner.guard()).c_str());
  }
  return unreadable;
}

}  // namespace vitrine::cli

#include "python/src/session.h"

#include <algorithm>
#include <array>

#include "images/decode_queue.h"
#include "images/overlay.h"
#include "model/files/model_pictures.h"
#include "model/files/tensor_files.h"
#include "model/look/dense_features.h"
#include "model/look/look_once.h"
#include "model/pictures/preprocess_picture.h"
#include "model/run/storage_type.h"
#include "runtime/tune/choice_store.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/data/picture_dataset.h"

namespace vitrine::python {

struct Session::State {
  std::shared_ptr<OpenDevice> device;
  Model model;
  Labels labels;
  DType dtype = DType::f32;
  std::mutex mutex;  // of what follows
  std::map<Result, std::unique_ptr<Runner>> runners;
  std::unique_ptr<WeightStore> looking;
  // For the kind of pictures that came last.
  std::unique_ptr<PictureRunner> pictures;
  Result pictures_result = Result::logits;
  uint64_t pictures_batch = 0;
  PictureRunner::Take take;
  std::array<bool, 2> takes_pictures{};  // stretched, and in their shape
  std::mutex warnings_mutex;
  std::vector<std::string> warnings;

  void warn(const std::string& sentence) {
    const std::scoped_lock lock(warnings_mutex);
    warnings.push_back(sentence);
  }
  Warn warner() {
    return [this](const std::string& sentence) { warn(sentence); };
  }
  // What is odd about that is said once.
  void take_pictures(bool in_their_shape) {
    if (!takes_pictures[in_their_shape]) require_pictures(model, warner(), in_their_shape);
    takes_pictures[in_their_shape] = true;
  }
  WeightStore& look_weights() {
    if (!looking) looking = std::make_unique<WeightStore>(device->pipelines, *model.constants);
    return *looking;
  }
  PlanOptions look_plan() { return with_stored_choices({}, device->device->capabilities(), warner()); }
};

namespace {

Image image_of(const Pixels& p) {
  Image image{to_u32(p.width), to_u32(p.height), std::vector<uint8_t>(4 * p.width * p.height, 255)};
  const uint8_t* from = p.data;
  for (size_t i = 0; i < image.pixels.size(); i += 4, from += p.channels) {
    for (size_t c = 0; c < 3; ++c) image.pixels[i + c] = from[p.channels == 1 ? 0 : c];
  }
  return image;
}

// `work`, whose Errors are those of a picture.
template <typename Work>
auto of_picture(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw PictureError(error.code(), error.what());
  }
}

Image decoded(const PictureSource& source, const std::string& name, const DecodeOptions& options) {
  if (const auto* path = std::get_if<std::filesystem::path>(&source)) return decode_image(*path, options);
  if (const auto* bytes = std::get_if<std::span<const std::byte>>(&source)) {
    return decode_image(*bytes, name, options);
  }
  return image_of(std::get<Pixels>(source));
}

}  // namespace

Session::Session(const ModelOptions& options, const std::string& device, const std::string& dtype)
    : state_(std::make_unique<State>()) {
  // Files first: what is wrong with them needs no device to be found.
  State& s = *state_;
  s.model = open_model(options, s.warner());
  s.labels = answer_labels(s.model, {});
  s.device = device_named(device);
  s.dtype = storage_type(dtype, s.device->device->capabilities());
}

// What another process made is left where it lies: taking it apart would wait for threads that aren't here.
Session::~Session() {
  if (is_forked()) static_cast<void>(state_.release());
}

const Model& Session::model() const { return state_->model; }
const Labels& Session::labels() const { return state_->labels; }
const Preprocess& Session::how_to_read() const { return state_->model.preprocess; }
const Capabilities& Session::capabilities() const { return state_->device->device->capabilities(); }
DType Session::dtype() const { return state_->dtype; }

std::optional<std::pair<std::vector<uint64_t>, std::vector<float>>> Session::file_tensor(
    const std::string& name) const {
  if (state_->model.path.empty()) return std::nullopt;
  const TensorFiles files(state_->model.path);
  const StoredTensor* stored = files.find(name);
  if (!stored) return std::nullopt;
  return std::pair(stored->info->shape, stored->floats());
}

std::vector<std::string> Session::take_warnings() {
  const std::scoped_lock lock(state_->warnings_mutex);
  return std::exchange(state_->warnings, {});
}

// In that order: in a forked process the mutex may be held by a thread that isn't there.
std::unique_lock<std::mutex> Session::enter() {
  require_unforked();
  return std::unique_lock(state_->mutex);
}

void Session::run(std::span<const float> images, std::optional<Result> result, uint64_t batch,
                  const Between& between, std::span<float> results) {
  const auto lock = enter();
  State& s = *state_;
  const Result wanted = result.value_or(natural_result(s.model.config));
  std::unique_ptr<Runner>& runner = s.runners[wanted];
  if (!runner) {
    runner = std::make_unique<Runner>(s.device->pipelines, s.model,
                                      RunnerOptions{.dtype = s.dtype, .result = wanted, .warn = s.warner()});
  }
  // Whole batches, so that the parts give what all at once would.
  const uint64_t count = images.size() / runner->image_elements(), part = 16 * std::min(batch, count);
  for (uint64_t first = 0; first < count; first += part) {
    if (first != 0) between();
    const uint64_t size = std::min(part, count - first);
    const auto of_part = [&](auto all, uint64_t elements) {
      return all.subspan(first * elements, size * elements);
    };
    runner->run(of_part(images, runner->image_elements()), batch,
                of_part(results, runner->result_elements()));
  }
}

PictureRows Session::pictures(const std::vector<PictureSource>& sources,
                              const std::vector<std::string>& names, Result result, uint64_t batch, bool exif,
                              const std::function<void(uint64_t)>& between) {
  const auto lock = enter();
  State& s = *state_;
  s.take_pictures(true);
  // Started first: the first pictures are decoded while weights are loaded.
  std::vector<EncodedPicture> encoded;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (const auto* path = std::get_if<std::filesystem::path>(&sources[i])) {
      encoded.push_back({.path = *path, .bytes = {}});
    } else if (const auto* bytes = std::get_if<std::span<const std::byte>>(&sources[i])) {
      encoded.push_back({.path = names[i], .bytes = *bytes});
    }
  }
  DecodeQueueOptions ahead{.decode = decoding(s.model.preprocess, exif)};
  ahead.pictures_ahead = std::max<size_t>(ahead.pictures_ahead, 2 * batch);
  DecodeQueue queue(std::move(encoded), ahead);

  if (!s.pictures || s.pictures_result != result || s.pictures_batch != batch) {
    s.pictures.reset();
    s.pictures = std::make_unique<PictureRunner>(
        s.device->pipelines, s.model, s.model.preprocess,
        PictureRunnerOptions{.dtype = s.dtype, .result = result, .warn = s.warner(), .batch = batch},
        [&s](uint64_t number, std::span<const float> values) { s.take(number, values); });
    s.pictures_result = result;
    s.pictures_batch = batch;
  }
  PictureRows rows;
  s.take = [&rows](uint64_t, std::span<const float> values) {
    rows.values.insert(rows.values.end(), values.begin(), values.end());
    ++rows.rows;
  };
  try {
    for (size_t i = 0; i < sources.size(); ++i) {
      between(rows.rows + rows.errors.size());
      PicturePart part;
      try {
        Image image;
        if (const auto* pixels = std::get_if<Pixels>(&sources[i])) {
          image = image_of(*pixels);
        } else {
          auto next = queue.next();
          if (!next->image) throw Error(ErrorCode::failed, next->error);
          image = std::move(*next->image);
        }
        part = s.pictures->prepare(picture_for(std::move(image), s.model.config.channels), names[i]);
      } catch (const Error& error) {
        rows.errors.emplace_back(i, error.what());
        continue;
      }
      s.pictures->add(std::move(part));
    }
    s.pictures->finish();
    between(sources.size());
  } catch (...) {
    s.pictures.reset();  // with what it still has of this call's pictures
    s.take = {};
    throw;
  }
  s.take = {};
  return rows;
}

Picture Session::picture_of(const PictureSource& source, const std::string& name, bool exif) const {
  return picture_for(decoded(source, name, decoding(state_->model.preprocess, exif)),
                     state_->model.config.channels);
}

Session::Preprocessed Session::preprocess(const PictureSource& source, const std::string& name, bool exif) {
  const auto lock = enter();
  State& s = *state_;
  s.take_pictures(true);
  Picture picture = of_picture([&] { return picture_of(source, name, exif); });
  const Preprocess own = s.model.preprocess.of_picture(picture.height, picture.width);
  return {preprocessed_picture(s.device->pipelines, own, s.model.config.channels, std::move(picture), name),
          own.height(), own.width()};
}

Session::Maps Session::maps(std::span<const float> images, const std::vector<uint64_t>& layers, bool norm,
                            bool rows) {
  const auto lock = enter();
  State& s = *state_;
  const ViTConfig& c = s.model.config;
  const DenseFeatures dense(c, {.layers = layers, .norm = norm, .rows = rows});
  const auto executable = look_once(s.look_weights(), s.device->pipelines, s.model, {.numbers = images},
                                    s.dtype, s.look_plan(), dense.taps(), s.warner());
  const uint64_t count = images.size() / (c.channels * c.image_height * c.image_width);
  Maps all{.width = dense.width()};
  for (const uint64_t layer : layers) {
    std::vector<float>& maps = all.maps.emplace_back();
    std::vector<float>& prefixes = all.prefixes.emplace_back();
    for (uint64_t image = 0; image < count; ++image) {
      const std::vector<float> map = dense.map(*executable, layer, image);
      maps.insert(maps.end(), map.begin(), map.end());
      const std::vector<float> prefix = dense.prefix(*executable, layer, image);
      prefixes.insert(prefixes.end(), prefix.begin(), prefix.end());
    }
  }
  return all;
}

AttentionResult Session::attention(const PictureSource& source, const std::string& name,
                                   const MapChoice& choice, bool every_row, bool exif) {
  const auto lock = enter();
  State& s = *state_;
  const ViTConfig& c = s.model.config;
  s.take_pictures(false);
  const Image image = of_picture([&] { return decoded(source, name, decoding(s.model.preprocess, exif)); });
  const PictureGeometry geometry =
      of_picture([&] { return picture_geometry(s.model.preprocess, image.height, image.width, name); });
  AttentionMapOptions options{.rollout = !choice.layer};
  if (choice.layer) options.layers = {*choice.layer};
  options.rows = choice.token ? MapRows{.first = *choice.token} : every_row ? all_rows(c) : pooled_rows(c);
  const AttentionMaps maps(c, options);
  const auto executable = look_once(s.look_weights(), s.device->pipelines, s.model,
                                    {.picture = picture_for(image, c.channels), .name = name}, s.dtype,
                                    s.look_plan(), maps.taps(), s.warner());
  AttentionResult result;
  result.weights = maps.weights(*executable, choice.layer);
  result.map = maps.map(*executable, choice);
  const MapRegion region = map_region(c, geometry, image.height, image.width);
  result.overlay =
      overlay(image, result.map.weights, to_u32(result.map.height), to_u32(result.map.width),
              {.region = OverlayOptions::Region{region.left, region.top, region.width, region.height}});
  return result;
}

}  // namespace vitrine::python

#include "apps/desktop/engine/model_session.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "images/exif.h"
#include "model/files/model_pictures.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "runtime/vk/device.h"
#include "train/data/picture_dataset.h"

namespace vitrine::desktop {
namespace {

std::string mib(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

}  // namespace

GoOn go_on(Progress& progress) {
  return [&progress](double share) {
    progress.set_done(share);
    return !progress.cancelled();
  };
}

std::unique_ptr<ModelSession> ModelSession::open(PipelineStore& pipelines, const ModelChoice& choice,
                                                 std::string_view dtype, Progress& progress) {
  return std::unique_ptr<ModelSession>(new ModelSession(pipelines, choice, dtype, progress));
}

ModelSession::ModelSession(PipelineStore& pipelines, const ModelChoice& choice, std::string_view dtype,
                           Progress& progress)
    : pipelines_(pipelines), choice_(choice), dtype_(storage_type(dtype, pipelines.device().capabilities())) {
  progress.say("reading " + choice.title);
  model_ = open_model(choice.options, warn());
  require_pictures(model_, warn());
  progress.check();
  has_words_ = has_text_tower(model_);
  PictureViewOptions options{.dtype = dtype_, .warn = warn(), .patch_features = has_words_};
  options.plan.slice_seconds = slice_seconds;
  if (model_.config.classes > 0) {
    options.result = Result::probabilities;
    labels_ = answer_labels(model_, warn());
  }
  view_ = std::make_unique<PictureView>(pipelines, model_, model_.preprocess, std::move(options));
}

Warn ModelSession::warn() {
  return [this](const std::string& sentence) { warnings_.push_back(sentence); };
}

std::vector<std::string> ModelSession::take_warnings() {
  std::vector<std::string> once;
  for (std::string& warning : std::exchange(warnings_, {})) {
    if (std::ranges::find(once, warning) == once.end()) once.push_back(std::move(warning));
  }
  return once;
}

WordReader& ModelSession::words() {
  if (!words_) words_ = std::make_unique<WordReader>(pipelines_, model_, view_->weights(), dtype_, warn());
  return *words_;
}

std::vector<float> ModelSession::similarities(std::span<const float> words, Progress& progress) {
  if (!patches_) patches_ = view_->patch_features(go_on(progress));
  if (!patches_) throw Cancelled{};
  return cosines(*patches_, words);
}

LookResult ModelSession::look(const std::filesystem::path& path, Progress& progress, bool exif) {
  progress.say("reading " + shown(path.filename()));
  Decoded stored = decode_stored(path, decoding(model().preprocess));
  Image picture = exif ? turned(std::move(stored.image), stored.orientation) : std::move(stored.image);
  LookResult result = look(std::move(picture), shown(path), progress);
  result.orientation = stored.orientation;
  return result;
}

LookResult ModelSession::look(Image image, const std::string& name, Progress& progress) {
  progress.check();  // a model of one slice is done before anybody asks
  progress.say("");
  const auto saying = [&progress](const char* text) -> GoOn {
    return [&progress, text](double share) {
      progress.say(text);
      return go_on(progress)(share);
    };
  };
  LookResult result;
  patches_.reset();
  if (!view_->look(picture_for(image, model().config.channels), name, saying(""),
                   saying("loading weights, compiling shaders")))
    throw Cancelled{};
  progress.set_done(1);  // nobody asks a model of one slice
  result.region = view_->region();
  result.seconds = view_->seconds();
  if (model().config.classes > 0) {
    result.top = top_answers(view_->result(), top_count, labels_);
  } else {
    result.no_answer = choice_.title + " has no classes: its attention and its features can be looked at";
    const std::span<const float> features = view_->result();
    result.features.assign(features.begin(), features.end());
  }
  result.picture = std::move(image);
  return result;
}

std::vector<StructureNode> ModelSession::structure() const {
  return structure_of(model().config, *make_vit_graph(model().config, {.dtype = dtype_}));
}

ProfileResult ModelSession::profile(Progress& progress) {
  progress.check();
  const std::optional<Profile> profile = view_->profile(go_on(progress));
  if (!profile) throw Cancelled{};
  progress.set_done(1);
  return profile_result(view_->executable().plan(), *profile);
}

std::vector<DeviceFact> facts_of(const Device& device) {
  std::vector<DeviceFact> facts = device_facts(device.capabilities());
  const MemoryStatistics memory = device.memory();
  facts.push_back({"in use", mib(memory.device.bytes) + " of the device's memory, at most " +
                                 mib(memory.device.peak_bytes) + " so far"});
  facts.push_back({"staging", mib(memory.host.bytes) + " of the host's memory, at most " +
                                  mib(memory.host.peak_bytes) + " so far"});
  const std::vector<HeapBudget> budgets = device.heap_budgets();
  for (size_t i = 0; i < budgets.size(); ++i) {
    facts.push_back({"heap " + std::to_string(i), mib(budgets[i].used_bytes) + " used by this process, " +
                                                      mib(budgets[i].budget_bytes) + " can be had"});
  }
  return facts;
}

}  // namespace vitrine::desktop

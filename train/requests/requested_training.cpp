#include "train/requests/requested_training.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "runtime/util/error.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"
#include "train/automatic_parts.h"
#include "train/batch_parts.h"
#include "train/run/checkpoint.h"
#include "train/run/run_folder.h"
#include "train/trained_parameters.h"

namespace vitrine {
namespace {

using Json = nlohmann::ordered_json;

template <typename Function, typename... Arguments>
void tell(const Function& told, const Arguments&... arguments) {
  if (told) told(arguments...);
}

void add_validation(Json& line, const ValidationResult& validation) {
  line["val_loss"] = validation.result.loss;
  line["val_accuracy"] = validation.result.accuracy;
  line["val_top5"] = validation.result.top5;
  line["best"] = validation.best;
}

Json record_of(const EpochReport& report) {
  Json line{{"epoch", report.epoch},
            {"loss", report.loss},
            {"seconds", report.seconds},
            {"images_per_second", report.images_per_second},
            {"waited_seconds", report.waited_seconds}};
  if (report.skipped_steps > 0) line["skipped_steps"] = report.skipped_steps;
  if (report.validation) add_validation(line, *report.validation);
  return line;
}

Json record_of(const ValidationResult& validation) {
  Json line{{"step", validation.update}, {"in_epoch", validation.epoch}};
  add_validation(line, validation);
  return line;
}

Json record_of(const TestResult& result) {
  return {{"test_loss", result.loss}, {"test_accuracy", result.accuracy}, {"test_top5", result.top5}};
}

// Says of a configuration that doesn't into how many parts its batches are cut: as many as the checkpoint
// that it goes on from, else as many as the devices ask for. Returns what is to be said of that; mostly
// nothing.
std::string decide_parts(TrainConfig& config, const TrainRequest& request, const Dataset& data,
                         const TrainingPlace& place, const TrainingOptions& options) {
  std::string said;
  const std::filesystem::path checkpoint = checkpoint_in(request.out);
  if (config.parts == 0 && request.resume && path_exists(checkpoint, ErrorCode::failed)) {
    // A file may say anything.
    config.parts = std::min(parts_in_checkpoint(checkpoint), config.batch_size);
  } else if (config.parts == 0) {
    std::vector<Device*> opened;
    for (PipelineStore* store : place.devices) opened.push_back(&store->device());
    const FittingParts fitting =
        fitting_parts(config, data, opened, options, place.shared ? parts_for_devices(config) : 1);
    config.parts = fitting.parts;
    said = fitting.said;
  }
  const uint64_t shared = parts_of(config).count() * config.accumulation;
  if (shared < options.devices.size()) {
    said += (said.empty() ? "" : "\n") + std::string("of ") + counted(options.devices.size(), "device") +
            " only " + std::to_string(shared) + (shared == 1 ? " has" : " have") +
            " anything to do: an update is made of " + counted(shared, "part") +
            " (--parts says of how many)";
  }
  return said;
}

std::string features_text(const TrainingRun& run) {
  return run.on_features() ? "what the head sees of a picture is computed once"
         : trains_on_fixed_features(run.config())
             ? "what the head sees of a picture is computed in every epoch, for all of it is too much to keep"
             : "what the head sees of a picture is computed in every epoch, for it changes";
}

}  // namespace

void run_training(const TrainRequest& request, const TrainSetup& setup, const TrainingPlace& place,
                  const TrainingAudience& audience, const std::atomic<bool>& stop) {
  TrainConfig config = setup.config;
  TrainingOptions options{.out = request.out,
                          .resume = request.resume,
                          .recompute = request.recompute,
                          .validation = setup.validation.get(),
                          .checkpoint_seconds = request.checkpoint_seconds,
                          .weights = setup.start ? setup.start->weights.get() : nullptr,
                          .base = setup.start ? setup.start->base : std::string()};
  options.plan = place.plan;
  if (place.shared) options.devices.assign(place.devices.begin(), place.devices.end());
  const std::string cut = decide_parts(config, request, *setup.data, place, options);
  PipelineStore& first = *place.devices.front();
  TrainingRun run(first, config, *setup.data, options);
  if (!cut.empty()) tell(audience.say, cut);
  if (setup.start) tell(audience.say, setup.start->said);
  if (setup.start || config.train != "all") tell(audience.say, trained_text(config));
  if (config.train == "head") tell(audience.say, features_text(run));
  if (config.precision == Precision::f16 && !run.trainer().rounds()) {
    tell(audience.warn, "f16 was asked for, but no product of this training is of f16 on " +
                            first.device().capabilities().name + "; it trains in f32");
  }

  tell(audience.begins);
  const bool done =
      run.run({.progress = audience.progress,
               .epoch = [&](const EpochReport& report) { tell(audience.record, record_of(report)); },
               .validation = [&](const ValidationResult& found) { tell(audience.record, record_of(found)); },
               .notice = [&](const std::string& sentence) { tell(audience.warn, sentence); },
               .features = audience.features,
               .between = audience.between},
              stop);
  tell(audience.ends);
  if (!done) {
    throw Error(ErrorCode::failed, "stopped in epoch " + std::to_string(run.position().epoch + 1) + " of " +
                                       std::to_string(config.epochs) +
                                       " and saved; the same command with "
                                       "--resume goes on");
  }
  if (run.ended_early()) {
    tell(audience.say, "ended after " + std::to_string(run.trainer().counts().updates) +
                           " updates: no better validation in " +
                           std::to_string(run.position().history.best.since));
  }
  std::error_code none;
  if (config.validate_every == 0 && std::filesystem::exists(best_in(request.out), none)) {
    tell(audience.warn, shown(request.out) + " is read as the best model of the validations before, in " +
                            shown(best_in(request.out)) +
                            "; what is tested now is the model at the end, in " +
                            shown(last_in(request.out)));
  }
  tell(audience.record, record_of(run.test_best(*setup.test)));
}

}  // namespace vitrine

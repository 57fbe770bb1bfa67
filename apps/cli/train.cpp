// vitrine train: learns a classifier from a folder of labelled pictures.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/cli/commands.h"
#include "apps/cli/model_options.h"
#include "apps/cli/open_device.h"
#include "apps/cli/progress.h"
#include "apps/cli/train_devices.h"
#include "apps/cli/train_options.h"
#include "runtime/util/error.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"
#include "runtime/util/unfinished.h"
#include "train/trained_parameters.h"
#include "train/training_run.h"

namespace vitrine::cli {
namespace {

// Set by Ctrl-C and by a polite kill; looked at after every batch.
std::atomic<bool> stop_wanted{false};

extern "C" void ask_to_stop(int signal) {
  stop_wanted = true;
  remove_unfinished_on(signal);  // whoever asks twice means it
}

std::string time_text(double seconds) {
  const auto whole = static_cast<uint64_t>(std::llround(std::min(seconds, 1e9)));
  char text[64];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%llu:%02llu:%02llu", static_cast<unsigned long long>(whole / 3600),
                  static_cast<unsigned long long>(whole / 60 % 60),
                  static_cast<unsigned long long>(whole % 60));
  } else {
    std::snprintf(text, sizeof text, "%llu:%02llu", static_cast<unsigned long long>(whole / 60),
                  static_cast<unsigned long long>(whole % 60));
  }
  return text;
}

std::string bar(const TrainingProgress& progress) {
  constexpr uint64_t width = 24;
  const uint64_t full = progress.batches * width / std::max<uint64_t>(progress.total, 1);
  char text[160];
  std::snprintf(text, sizeof text, "epoch %llu/%llu [%s%s] loss %.4f, %.0f images/s, %s left",
                static_cast<unsigned long long>(progress.epoch),
                static_cast<unsigned long long>(progress.epochs), std::string(full, '#').c_str(),
                std::string(width - full, '.').c_str(), progress.loss, progress.images_per_second,
                time_text(progress.seconds_left).c_str());
  return text;
}

std::string features_text(uint64_t done, uint64_t all) {
  return "features of " + std::to_string(done) + " of " + std::to_string(all) + " pictures";
}

void say(const std::string& sentence) { std::fprintf(stderr, "%s\n", sentence.c_str()); }

void print_line(const nlohmann::ordered_json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

void add_validation(nlohmann::ordered_json& line, const ValidationResult& validation) {
  line["val_loss"] = validation.result.loss;
  line["val_accuracy"] = validation.result.accuracy;
  line["val_top5"] = validation.result.top5;
  line["best"] = validation.best;
}

nlohmann::ordered_json line_of(const EpochReport& report) {
  nlohmann::ordered_json line{{"epoch", report.epoch},
                              {"loss", report.loss},
                              {"seconds", report.seconds},
                              {"images_per_second", report.images_per_second},
                              {"waited_seconds", report.waited_seconds}};
  if (report.skipped_steps > 0) line["skipped_steps"] = report.skipped_steps;
  if (report.validation) add_validation(line, *report.validation);
  return line;
}

nlohmann::ordered_json line_of(const ValidationResult& validation) {
  nlohmann::ordered_json line{{"step", validation.update}, {"in_epoch", validation.epoch}};
  add_validation(line, validation);
  return line;
}

void train(const TrainFlags& flags, const CommonOptions& common) {
  // Files first: what is wrong with them needs no device to be found.
  const TrainSetup setup = read_train_setup(flags, common);
  TrainConfig config = setup.config;
  const TrainDevices devices = open_train_devices(flags, common);
  const Device* device = devices.opened.front().get();
  TrainingOptions options{.out = flags.out,
                          .resume = flags.resume,
                          .recompute = flags.recompute,
                          .validation = setup.validation.get(),
                          .checkpoint_seconds = flags.checkpoint_seconds,
                          .weights = setup.start ? setup.start->weights.get() : nullptr,
                          .base = setup.start ? setup.start->base : std::string()};
  options.plan = plan_options({.variants = flags.variants,
                               .fusions = flags.fusions,
                               .layouts = flags.layouts,
                               .untuned = flags.untuned});
  if (!flags.devices.empty()) options.devices = devices.stores();
  const std::string cut = decide_parts(config, flags, *setup.data, devices, options);
  TrainingRun run(*devices.pipelines.front(), config, *setup.data, options);
  if (!cut.empty()) say(cut);
  if (setup.start) say(setup.start->said);
  if (setup.start || config.train != "all") say(trained_text(config));
  if (config.train == "head") {
    say(run.on_features() ? "what the head sees of a picture is computed once"
        : trains_on_fixed_features(config)
            ? "what the head sees of a picture is computed in every epoch, for all of it is too much to keep"
            : "what the head sees of a picture is computed in every epoch, for it changes");
  }
  if (config.precision == Precision::f16 && !run.trainer().rounds()) {
    warn("f16 was asked for, but no product of this training is of f16 on " + device->capabilities().name +
         "; it trains in f32");
  }

  StatusLine line;
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  const bool done = run.run({.progress =
                                 [&](const TrainingProgress& progress) {
                                   if (line.due()) line.show(bar(progress));
                                 },
                             .epoch =
                                 [&](const EpochReport& report) {
                                   line.clear();
                                   print_line(line_of(report));
                                 },
                             .validation =
                                 [&](const ValidationResult& validated) {
                                   line.clear();
                                   print_line(line_of(validated));
                                 },
                             .notice =
                                 [&](const std::string& sentence) {
                                   line.clear();
                                   warn(sentence);
                                 },
                             .features =
                                 [&](uint64_t done_pictures, uint64_t all) {
                                   if (line.due()) line.show(features_text(done_pictures, all));
                                 }},
                            stop_wanted);
  line.clear();
  remove_unfinished_on(SIGINT);
  remove_unfinished_on(SIGTERM);
  if (!done) {
    throw Error(ErrorCode::failed, "stopped in epoch " + std::to_string(run.position().epoch + 1) + " of " +
                                       std::to_string(config.epochs) +
                                       " and saved; the same command with "
                                       "--resume goes on");
  }
  if (run.ended_early()) {
    std::fprintf(stderr, "ended after %llu updates: no better validation in %llu\n",
                 static_cast<unsigned long long>(run.trainer().counts().updates),
                 static_cast<unsigned long long>(run.position().history.best.since));
  }
  std::error_code none;
  if (config.validate_every == 0 && std::filesystem::exists(best_in(flags.out), none)) {
    warn(shown(flags.out) + " is read as the best model of the validations before, in " +
         shown(best_in(flags.out)) + "; what is tested now is the model at the end, in " +
         shown(last_in(flags.out)));
  }
  const TestResult result = run.test_best(*setup.test);
  print_line({{"test_loss", result.loss}, {"test_accuracy", result.accuracy}, {"test_top5", result.top5}});
}

}  // namespace

void add_train(CLI::App& app, const CommonOptions& common) {
  CLI::App* command = app.add_subcommand("train", "Train a classifier on a data set");
  auto flags = std::make_shared<TrainFlags>();
  add_train_options(*command, *flags);
  command->callback([&app, &common, flags] {
    if (app.get_option("--seed")->count() > 0) flags->seed = common.seed;
    train(*flags, common);
  });
}

}  // namespace vitrine::cli

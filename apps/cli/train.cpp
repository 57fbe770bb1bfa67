// vitrine train: learns a classifier from a folder of labelled pictures.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/cli/commands.h"
#include "apps/cli/model_options.h"
#include "apps/cli/progress.h"
#include "apps/cli/train_devices.h"
#include "apps/cli/train_options.h"
#include "runtime/util/system.h"
#include "runtime/util/unfinished.h"
#include "train/requests/requested_training.h"

namespace vitrine::cli {
namespace {

// Set by Ctrl-C and by a polite kill; looked at after every batch.
std::atomic<bool> stop_wanted{false};
constexpr std::array asking{SIGINT, SIGTERM};

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

void train(const TrainFlags& flags, const CommonOptions& common) {
  // Files first: what is wrong with them needs no device to be found.
  const TrainRequest request = request_of(flags, common);
  const TrainSetup setup = read_train_setup(request, warn);
  const TrainDevices devices = open_train_devices(flags, common);
  const std::vector<PipelineStore*> stores = devices.stores();
  const TrainingPlace place{.devices = stores,
                            .shared = !flags.devices.empty(),
                            .plan = plan_options({.variants = flags.variants,
                                                  .fusions = flags.fusions,
                                                  .layouts = flags.layouts,
                                                  .untuned = flags.untuned})};
  StatusLine line;
  run_training(request, setup, place,
               {.record =
                    [&](const nlohmann::ordered_json& record) {
                      line.clear();
                      print_line(record);
                    },
                .say = say,
                .warn =
                    [&](const std::string& sentence) {
                      line.clear();
                      warn(sentence);
                    },
                .progress =
                    [&](const TrainingProgress& progress) {
                      if (line.due()) line.show(bar(progress));
                    },
                .features =
                    [&](uint64_t done, uint64_t all) {
                      if (line.due()) line.show(features_text(done, all));
                    },
                .begins =
                    [] {
                      for (const int signal : asking) system::handle_once(signal, ask_to_stop);
                    },
                .ends =
                    [&] {
                      line.clear();
                      for (const int signal : asking) remove_unfinished_on(signal);
                    }},
               stop_wanted);
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

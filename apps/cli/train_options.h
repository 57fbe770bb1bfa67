// What `vitrine train` is told.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "apps/cli/common_options.h"
#include "train/requests/train_request.h"

namespace vitrine::cli {

struct TrainFlags : TrainRequest {
  std::string image_size, variants, fusions = "all", layouts = "kernels", devices;
  std::optional<std::string> validate_every_text;
  bool untuned = false;
};

void add_train_options(CLI::App& command, TrainFlags& flags);

// Errors name the option.
TrainRequest request_of(const TrainFlags& flags, const CommonOptions& common);

}  // namespace vitrine::cli

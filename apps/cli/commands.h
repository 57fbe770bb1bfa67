// The command line's commands. Each add_X declares its options and what it does when it is called;
// failures are vitrine::Error, which main() turns into a sentence and an exit status.
#pragma once

#include <CLI/CLI.hpp>

#include "apps/cli/common_options.h"

namespace vitrine::cli {

void add_devices(CLI::App& app, const CommonOptions& common);
void add_models(CLI::App& app);
void add_run(CLI::App& app, const CommonOptions& common);
void add_classify(CLI::App& app, const CommonOptions& common);
void add_embed(CLI::App& app, const CommonOptions& common);
void add_search(CLI::App& app, const CommonOptions& common);
void add_preprocess(CLI::App& app, const CommonOptions& common);
void add_inspect(CLI::App& app, const CommonOptions& common);
void add_bench(CLI::App& app, const CommonOptions& common);
void add_attention(CLI::App& app, const CommonOptions& common);
void add_features(CLI::App& app, const CommonOptions& common);
void add_digits(CLI::App& app, const CommonOptions& common);
void add_tune(CLI::App& app, const CommonOptions& common);
void add_train(CLI::App& app, const CommonOptions& common);
void add_merge(CLI::App& app, const CommonOptions& common);
void add_eval(CLI::App& app, const CommonOptions& common);
void add_doctor(CLI::App& app, const CommonOptions& common);

}  // namespace vitrine::cli

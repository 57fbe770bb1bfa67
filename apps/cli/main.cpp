// The command line: declares the commands, runs one, and turns failures into exit statuses.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/commands.h"
#include "runtime/util/error.h"
#include "runtime/util/system.h"
#include "runtime/util/unfinished.h"

namespace {

int fail(int status, const char* what) {
  std::fprintf(stderr, "vitrine: %s\n", what);
  return status;
}

// Results that didn't reach their reader are a failure, as on a full disk.
int finish() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  return fail(1, "standard output can't be written to");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace vitrine::cli;
  vitrine::remove_unfinished_on_signals();
  try {
    CLI::App app{"Vitrine runs, explains and trains Vision Transformers on any GPU through Vulkan.",
                 "vitrine"};
    app.allow_windows_style_options(false);  // a path may begin with a slash
    app.set_version_flag("--version", "vitrine " VITRINE_VERSION);
    // None: whoever types the program's name alone is shown what there is.
    app.require_subcommand(0, 1);
    app.fallthrough();  // the options below may follow the command as well
    CommonOptions common;
    app.add_option("--device", common.device,
                   "Index or part of the name of the device (else VITRINE_DEVICE)");
    app.add_option("--dtype", common.dtype, "Precision of weights and activations")
        ->check(CLI::IsMember({"f32", "f16", "auto"}))
        ->capture_default_str();
    app.add_option("--seed", common.seed, "Seed of everything random")->capture_default_str();
    add_devices(app, common);
    add_models(app);
    add_classify(app, common);
    add_embed(app, common);
    add_search(app, common);
    add_run(app, common);
    add_preprocess(app, common);
    add_inspect(app, common);
    add_bench(app, common);
    add_attention(app, common);
    add_features(app, common);
    add_digits(app, common);
    add_train(app, common);
    add_merge(app, common);
    add_eval(app, common);
    add_tune(app, common);
    add_doctor(app, common);
    try {
      std::vector<std::string> words = vitrine::system::begin_program(argc, argv);
      std::ranges::reverse(words);  // as CLI11 takes them
      app.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
      return fail(static_cast<int>(vitrine::ErrorCode::usage), error.what());
    }
    if (app.get_subcommands().empty()) {
      std::fputs(app.help().c_str(), stderr);
      return static_cast<int>(vitrine::ErrorCode::usage);
    }
    return finish();
  } catch (const vitrine::Error& error) {
    return fail(error.exit_status(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(1, "out of host memory");
  } catch (const std::exception& error) {
    return fail(1, error.what());
  }
}

// vitrine-desktop: reads the command line, opens the window, and turns failures into exit statuses.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "apps/desktop/app.h"
#include "runtime/util/error.h"
#include "runtime/util/system.h"
#include "runtime/util/unfinished.h"

namespace {

int fail(int status, const char* what) {
  vitrine::system::say_failure("vitrine-desktop", what);
  return status;
}

void set_size(vitrine::desktop::AppOptions& options, const std::string& text) {
  int width = 0, height = 0, used = 0;
  if (std::sscanf(text.c_str(), "%dx%d%n", &width, &height, &used) != 2 ||
      static_cast<size_t>(used) != text.size() || width < 320 || height < 240 || width > 16384 ||
      height > 16384) {
    throw vitrine::Error(vitrine::ErrorCode::usage,
                         "--size: found '" + text + "', expected WIDTHxHEIGHT from 320x240 to 16384x16384");
  }
  options.width = width;
  options.height = height;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace vitrine::desktop;
  vitrine::remove_unfinished_on_signals();
  try {
    CLI::App command{"vitrine-desktop shows what a Vision Transformer sees.", "vitrine-desktop"};
    command.allow_windows_style_options(false);  // a path may begin with a slash
    command.set_version_flag("--version", "vitrine-desktop " VITRINE_VERSION);
    AppOptions options;
    std::string size = "1280x800", theme = "dark";
    bool list_actions = false;
    std::filesystem::path script;
    command.add_option(
        "open", options.open,
        "Pictures (JPEG, PNG, WebP) or folders of them, and folders of trainings, whose curves are shown");
    command.add_option("--model", options.model,
                       "A model's folder, .safetensors file, or a name as vitrine --arch takes it; else the "
                       "model that comes with Vitrine");
    command.add_option("--device", options.device,
                       "Index or part of the name of the device (else VITRINE_DEVICE)");
    command.add_option("--dtype", options.dtype, "Precision of weights and activations")
        ->check(CLI::IsMember({"f32", "f16", "auto"}))
        ->capture_default_str();
    command.add_flag("--exif", options.exif, "Turn pictures as their EXIF orientation says");
    command.add_option("--size", size, "The window's size")->capture_default_str();
    command.add_option("--theme", theme, "dark or light")
        ->check(CLI::IsMember({"dark", "light"}))
        ->capture_default_str();
    command.add_option(
        "--screenshot", options.script.screenshot,
        "Write the window as PNG at the script's end, or when nothing runs any more, and close");
    command.add_option("--frames", options.script.frames, "Frames to draw before the screenshot, at least")
        ->check(CLI::PositiveNumber);
    command.add_option("--script", script,
                       "Do what this file says, a line an action, and close (--script-help)");
    command.add_option("--frame-log", options.script.frame_log,
                       "Write a line a frame as CSV: what it took on the UI's thread");
    command.add_flag("--script-help", list_actions, "List the actions of scripts");
    try {
      std::vector<std::string> words = vitrine::system::begin_program(argc, argv);
      std::ranges::reverse(words);  // as CLI11 takes them
      command.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return command.exit(error);  // --help and --version
      return fail(static_cast<int>(vitrine::ErrorCode::usage), error.what());
    }
    if (list_actions) {
      std::fputs(script_help().c_str(), stdout);
      return 0;
    }
    set_size(options, size);
    if (!script.empty()) options.script.script = read_script(script);
    options.dark = theme == "dark";
    return App(std::move(options)).run();
  } catch (const vitrine::Error& error) {
    return fail(error.exit_status(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(1, "out of host memory");
  } catch (const std::exception& error) {
    return fail(1, error.what());
  }
}

// vitrine run: raw tensors through a model, .npy in and .npy out.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/device/range_report.h"
#include "apps/cli/model_options.h"
#include "apps/cli/open_device.h"
#include "runtime/util/error.h"
#include "runtime/util/npy.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

struct RunFlags {
  ModelFlags model;
  std::string input, output;
  uint64_t batch = 8;
  bool json = false, check_range = false;
};

void run(const RunFlags& flags, const CommonOptions& common) {
  const std::optional<Result> what = result_of(flags.model);
  const PlanOptions plan = plan_options(flags.model);
  // Files first: what is wrong with them needs no device to be found.
  const Model model = open_model(flags.model, common);
  const std::vector<float> images = read_images(flags.input, model.config);

  const std::unique_ptr<Device> device = open_device(common);
  PipelineStore pipelines(*device);
  Runner runner(pipelines, model,
                {.dtype = storage_type(common.dtype, device->capabilities()),
                 .result = what,
                 .plan = plan,
                 .warn = warn,
                 .check_range = flags.check_range});
  const std::vector<float> values = runner.run(images, flags.batch);
  if (flags.check_range) std::fprintf(stderr, "vitrine: range: %s\n", range_sentence(runner.guard()).c_str());
  const std::vector<uint64_t> shape =
      result_shape(model.config, runner.result(), images.size() / runner.image_elements());
  write_npy(flags.output, shape, values);

  if (flags.json) {
    nlohmann::ordered_json line;
    line["output"] = flags.output;
    line["what"] = name_of(runner.result());
    line["shape"] = shape;
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s: %s %s\n", shown(flags.output).c_str(), std::string(name_of(runner.result())).c_str(),
                npy_shape(shape).c_str());
  }
}

}  // namespace

void add_run(CLI::App& app, const CommonOptions& common) {
  CLI::App* command = app.add_subcommand("run", "Run a model on a tensor: .npy in, .npy out");
  auto flags = std::make_shared<RunFlags>();
  add_model_flags(*command, flags->model);
  add_what_flag(*command, flags->model);
  command->add_option("--input", flags->input, "float32 [B,C,H,W], already normalised")->required();
  command->add_option("--output", flags->output, "Where the float32 result goes")->required();
  command->add_option("--batch", flags->batch, "Images that are computed together, at most")
      ->check(CLI::Range(uint64_t{1}, uint64_t{4096}))
      ->capture_default_str();
  command->add_flag("--check-range", flags->check_range,
                    "Look at the magnitudes of every batch before it runs, and say how large they get");
  command->add_flag("--json", flags->json, "Say what was written as a JSON object");
  command->callback([&common, flags] { run(*flags, common); });
}

}  // namespace vitrine::cli

#include "apps/cli/model_options.h"

#include <cstdio>
#include <cstdlib>

#include "runtime/util/error.h"

namespace vitrine::cli {

void add_model_flags(CLI::App& command, ModelFlags& flags) {
  command.add_option("--model", flags.model,
                     "Folder with model.safetensors and config.json, or one .safetensors file");
  command.add_option("--arch", flags.arch,
                     "Architecture with random weights, such as vit_base_patch16_224 or vit_b_16");
  add_plan_flags(command, flags);
}

void add_plan_flags(CLI::App& command, ModelFlags& flags) {
  command.add_option("--set", flags.set, "Overrides a field of the configuration: KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--what", flags.what,
                     "logits, probabilities, features or tokens; else what the model itself returns");
  command.add_option("--variant", flags.variants,
                     "Forces kernels: op=kernel[,op=kernel] (else VITRINE_VARIANT)");
}

Model open_model(const ModelFlags& flags, const CommonOptions& common) {
  Model model = vitrine::open_model(
      {.model = flags.model, .arch = flags.arch, .seed = common.seed, .set = flags.set},
      [](const std::string& sentence) { std::fprintf(stderr, "vitrine: warning: %s\n", sentence.c_str()); });
  if (!flags.arch.empty()) {
    std::fprintf(stderr, "%s with random weights from seed %llu\n", flags.arch.c_str(),
                 static_cast<unsigned long long>(common.seed));
  }
  return model;
}

std::optional<Result> result_of(const ModelFlags& flags) {
  if (flags.what.empty()) return std::nullopt;
  if (const auto result = result_named(flags.what)) return result;
  throw Error(ErrorCode::usage,
              "--what: found '" + flags.what + "', expected logits, probabilities, features or tokens");
}

DType dtype_for(const std::string& name, const Capabilities& device) {
  if (name == "f32" || name == "auto") return DType::f32;
  if (name != "f16")
    throw Error(ErrorCode::usage, "--dtype: found '" + name + "', expected f32, f16 or auto");
  if (!device.supports(Need::storage16)) {
    throw Error(ErrorCode::usage,
                "--dtype: found f16, and device '" + device.name + "' has no 16-bit storage, expected f32");
  }
  return DType::f16;
}

PlanOptions plan_options(const ModelFlags& flags) {
  PlanOptions options;
  const char* variable = std::getenv("VITRINE_VARIANT");
  const std::string text = !flags.variants.empty() ? flags.variants : variable ? variable : "";
  if (!text.empty()) options.variants = parse_variants(text);
  return options;
}

}  // namespace vitrine::cli

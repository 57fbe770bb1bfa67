#include "apps/cli/model_options.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "apps/cli/progress.h"
#include "model/families/known_architectures.h"
#include "runtime/util/error.h"
#include "runtime/util/npy.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

// Shows how many weights are made, because large models take seconds. Each time the line is taken away again:
// nobody knows here which weights are the last, and what else is written.
class CountedWhileMade : public ConstantSource {
 public:
  CountedWhileMade(std::unique_ptr<ConstantSource> source, const ViTConfig& config)
      : source_(std::move(source)),
        total_(parameter_count(config)),
        line_("million random weights", total_ / million) {}

  ConstantParts find(const std::string& name, const Shape& shape, DType dtype) override {
    line_.show(made_ % total_ / million);  // for another type or layout they are made once more
    ConstantParts parts = source_->find(name, shape, dtype);
    line_.clear();
    made_ += shape.elements();
    return parts;
  }

 private:
  static constexpr uint64_t million = 1'000'000;
  std::unique_ptr<ConstantSource> source_;
  uint64_t total_, made_ = 0;
  Progress line_;
};

// What --arch takes is no model that --model finds.
void require_no_architecture(const ModelFlags& flags) {
  if (!find_architecture(flags.model) || path_exists(flags.model)) return;
  throw Error(ErrorCode::bad_file, "--model: found no file or folder " + shown(flags.model) +
                                       ", expected a model (--arch " + shown(flags.model) +
                                       " takes the architecture of this name, with random weights)");
}

}  // namespace

void add_source_flags(CLI::App& command, ModelFlags& flags) {
  command.add_option("--model", flags.model,
                     "Folder with model.safetensors and config.json, one .safetensors file, or the name of a "
                     "model in Hugging Face's cache (google/vit-base-patch16-224)");
  command.add_option("--arch", flags.arch,
                     "Architecture with random weights, such as vit_base_patch16_224 or vit_b_16");
}

void add_model_flags(CLI::App& command, ModelFlags& flags) {
  add_source_flags(command, flags);
  add_plan_flags(command, flags);
}

void add_config_flags(CLI::App& command, ModelFlags& flags) {
  command.add_option("--set", flags.set, "Overrides a field of the configuration: KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--image-size", flags.image_size,
                     "Images of N or HxW pixels instead of the model's own; learned positions are resampled");
}

void add_plan_flags(CLI::App& command, ModelFlags& flags) {
  add_config_flags(command, flags);
  command.add_option("--variant", flags.variants,
                     "Forces kernels: op=kernel[,op=kernel:configuration] (else VITRINE_VARIANT)");
  command.add_flag("--untuned", flags.untuned, "Leave what vitrine tune has found for this device aside");
  command
      .add_option("--fuse", flags.fusions,
                  "What is fused into one dispatch: all, none or rule[,rule] (inspect shows the rules)")
      ->capture_default_str();
  add_layouts_flag(command, flags.layouts);
}

void add_layouts_flag(CLI::App& command, std::string& layouts) {
  command
      .add_option("--layouts", layouts,
                  "How tensors lie between kernels: as the next one likes it (kernels), or row by row (rows)")
      ->check(CLI::IsMember({"kernels", "rows"}))
      ->capture_default_str();
}

void add_combination_flags(CLI::App& command, std::vector<uint64_t>& batches,
                           std::vector<std::string>& dtypes) {
  command.add_option("--batch", batches, "Images a batch; several with commas")
      ->delimiter(',')
      ->check(CLI::Range(uint64_t{1}, uint64_t{65536}))
      ->capture_default_str();
  command.add_option("--dtype", dtypes, "f32, f16 or auto; several with commas")
      ->delimiter(',')
      ->check(CLI::IsMember({"f32", "f16", "auto"}));
}

void add_what_flag(CLI::App& command, ModelFlags& flags) {
  command.add_option("--what", flags.what,
                     "logits, probabilities, features or tokens; else what the model itself returns");
}

std::pair<uint64_t, uint64_t> image_size_of(const char* option, const std::string& text) {
  if (text.empty()) return {0, 0};
  const auto number = [&](std::string_view digits) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value == 0) {
      throw Error(ErrorCode::usage,
                  std::string(option) + ": found " + in_quotes(text) + ", expected N or HxW");
    }
    return value;
  };
  const size_t cross = text.find('x');
  const uint64_t height = number(std::string_view(text).substr(0, cross));
  return {height, cross == std::string::npos ? height : number(std::string_view(text).substr(cross + 1))};
}

void warn(const std::string& sentence) { std::fprintf(stderr, "vitrine: warning: %s\n", sentence.c_str()); }

ModelOptions model_options_of(const ModelFlags& flags, const CommonOptions& common) {
  require_no_architecture(flags);
  const auto [height, width] = image_size_of("--image-size", flags.image_size);
  return {.model = flags.model,
          .arch = flags.arch,
          .seed = common.seed,
          .set = flags.set,
          .image_height = height,
          .image_width = width};
}

void announce_random_weights(Model& model, const ModelFlags& flags, const CommonOptions& common) {
  if (flags.arch.empty()) return;
  std::fprintf(stderr, "%s with random weights from seed %llu\n", flags.arch.c_str(),
               static_cast<unsigned long long>(common.seed));
  model.constants = std::make_unique<CountedWhileMade>(std::move(model.constants), model.config);
}

Model open_model(const ModelFlags& flags, const CommonOptions& common) {
  Model model = vitrine::open_model(model_options_of(flags, common), warn);
  announce_random_weights(model, flags, common);
  return model;
}

void require_images(const NpyFile& file, const ViTConfig& c) {
  const NpyHeader& header = file.header();
  const auto& shape = header.shape;
  const bool fits = header.dtype == NpyDType::f32 && shape.size() == 4 && shape[0] > 0 &&
                    shape[1] == c.channels && shape[2] == c.image_height && shape[3] == c.image_width;
  if (fits) return;
  const bool other_size = header.dtype == NpyDType::f32 && shape.size() == 4 && shape[0] > 0 &&
                          shape[1] == c.channels && shape[2] > 0 && shape[3] > 0;
  const std::string hint = other_size
                               ? " (--image-size " + std::to_string(shape[2]) + "x" +
                                     std::to_string(shape[3]) + " runs the model on images of this size)"
                               : "";
  throw Error(ErrorCode::bad_file, shown(file.path()) + ": found " + std::string(name_of(header.dtype)) +
                                       " " + npy_shape(shape) + ", expected float32 (B, " +
                                       std::to_string(c.channels) + ", " + std::to_string(c.image_height) +
                                       ", " + std::to_string(c.image_width) + ") with B at least 1" + hint);
}

std::vector<float> read_images(const std::string& path, const ViTConfig& config) {
  const NpyFile file(path);
  require_images(file, config);
  return file.values<float>();
}

std::optional<Result> result_of(const ModelFlags& flags) {
  if (flags.what.empty()) return std::nullopt;
  if (const auto result = result_named(flags.what)) return result;
  throw Error(ErrorCode::usage,
              "--what: found '" + flags.what + "', expected logits, probabilities, features or tokens");
}

PlanOptions plan_options(const ModelFlags& flags) {
  PlanOptions options;
  options.untuned = flags.untuned;
  const char* variable = std::getenv("VITRINE_VARIANT");
  const std::string text = !flags.variants.empty() ? flags.variants : variable ? variable : "";
  if (!text.empty()) options.variants = parse_variants(text);
  options.fusions = parse_fusions(flags.fusions);
  options.layouts = flags.layouts == "kernels";
  return options;
}

}  // namespace vitrine::cli

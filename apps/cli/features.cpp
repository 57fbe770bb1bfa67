// vitrine features: what blocks make of a picture's patches, as maps for whatever is put on top of them.
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "apps/cli/commands.h"
#include "apps/cli/head_output.h"
#include "apps/cli/look_input.h"
#include "apps/cli/model_options.h"
#include "apps/cli/open_device.h"
#include "images/png_writer.h"
#include "model/look/dense_features.h"
#include "runtime/tune/choice_store.h"
#include "runtime/util/error.h"
#include "runtime/util/npy.h"
#include "runtime/util/split.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

struct FeatureFlags {
  LookFlags look;
  HeadFlags head;
  std::string layers, layout = "NCHW", out, prefix, colors;
  std::optional<bool> norm;
  bool json = false;
};

// "-1", "2,5,8,11" or "all".
std::vector<uint64_t> layers_of(const std::string& text, uint64_t depth) {
  std::vector<uint64_t> layers;
  if (text == "all") {
    layers.resize(depth);
    std::iota(layers.begin(), layers.end(), uint64_t{0});
    return layers;
  }
  for (const std::string_view part : split(text, ',')) {
    int64_t layer = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), layer);
    const int64_t count = static_cast<int64_t>(depth);
    if (error != std::errc() || stop != part.data() + part.size() || layer < -count || layer >= count) {
      throw Error(ErrorCode::usage, "--layer: found '" + std::string(part) + "', expected 0 to " +
                                        std::to_string(depth - 1) + ", -1 to -" + std::to_string(depth) +
                                        " from the end, several with commas, or all");
    }
    layers.push_back(static_cast<uint64_t>(layer < 0 ? layer + count : layer));
  }
  return layers;
}

// A square of pixels for each patch, so that the shorter side has 384 or more.
void write_colors(const std::string& path, std::span<const uint8_t> colors, const ViTConfig& c) {
  const uint64_t rows = c.grid_height(), columns = c.grid_width();
  const uint64_t side = (383 + std::min(rows, columns)) / std::min(rows, columns);
  std::vector<uint8_t> pixels;
  pixels.reserve(4 * rows * columns * side * side);
  for (uint64_t y = 0; y < rows * side; ++y) {
    for (uint64_t x = 0; x < columns * side; ++x) {
      const auto patch = colors.subspan(4 * (y / side * columns + x / side), 4);
      pixels.insert(pixels.end(), patch.begin(), patch.end());
    }
  }
  write_png(path, to_u32(columns * side), to_u32(rows * side), 4, pixels);
}

// What a file holds: one layer's numbers, or several layers' with their number in front.
struct Stacked {
  std::vector<uint64_t> shape;
  std::vector<float> values;

  void write(const std::string& path, const std::vector<uint64_t>& layers, std::vector<uint64_t> each) {
    shape = std::move(each);
    if (layers.size() > 1) shape.insert(shape.begin(), layers.size());
    write_npy(path, shape, values);
  }
};

void say_head(const FeatureFlags& flags, const HeadOutput& head) {
  if (flags.json) {
    nlohmann::ordered_json line;
    line["image"] = flags.look.image;
    line["head"] = flags.head.file;
    line["layers"] = head.input().layers;
    line["norm"] = head.input().norm;
    if (!flags.out.empty()) line["out"] = flags.out;
    if (!flags.colors.empty()) line["colors"] = flags.colors;
    head.add_to(line);
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return;
  }
  for (const std::string& written : {flags.out, flags.colors}) {
    if (!written.empty())
      std::printf("%s: of every pixel that the model was shown\n", shown(written).c_str());
  }
  head.print();
}

void features(const FeatureFlags& flags, const CommonOptions& common) {
  const PlanOptions plan = plan_options(flags.look.model);
  // Files first: what is wrong with them needs no device to be found.
  const LookInput input(flags.look, common, false);
  const ViTConfig& c = input.model().config;
  std::vector<uint64_t> layers = layers_of(flags.layers.empty() ? "-1" : flags.layers, c.depth);
  std::optional<HeadOutput> head;
  bool norm = flags.norm.value_or(false);
  if (!flags.head.file.empty()) {
    head.emplace(flags.head, c,
                 HeadChoice{flags.layers.empty() ? std::vector<uint64_t>{} : layers, flags.norm});
    layers = head->input().layers;
    norm = head->input().norm;
  } else if (!flags.head.range.empty()) {
    throw Error(ErrorCode::usage, "found --depth-range without --head, expected both");
  }
  if (!flags.prefix.empty() && c.prefix_in_blocks() == 0) {
    throw Error(ErrorCode::usage, "--prefix: this model has no tokens but the patches'");
  }
  const bool nchw = flags.layout == "NCHW";
  const DenseFeatures dense(
      c, {.layers = layers, .norm = norm, .rows = head || !nchw, .colors = !head && !flags.colors.empty()});

  const std::unique_ptr<Device> device = open_device(common);
  PipelineStore pipelines(*device);
  WeightStore weights(pipelines, *input.model().constants);
  const std::unique_ptr<Executable> executable =
      input.run(weights, pipelines, storage_type(common.dtype, device->capabilities()),
                with_stored_choices(plan, device->capabilities(), warn), dense.taps());

  if (head) {
    head->write(pipelines, dense, *executable, flags.out, flags.colors);
    return say_head(flags, *head);
  }
  Stacked maps, prefixes;
  for (const uint64_t layer : layers) {
    const std::vector<float> map = dense.map(*executable, layer);
    maps.values.insert(maps.values.end(), map.begin(), map.end());
    const std::vector<float> prefix = dense.prefix(*executable, layer);
    prefixes.values.insert(prefixes.values.end(), prefix.begin(), prefix.end());
  }
  if (!flags.out.empty()) {
    maps.write(flags.out, layers,
               nchw ? std::vector<uint64_t>{1, dense.width(), c.grid_height(), c.grid_width()}
                    : std::vector<uint64_t>{1, c.patches(), dense.width()});
  }
  if (!flags.prefix.empty()) prefixes.write(flags.prefix, layers, {1, c.prefix_in_blocks(), c.dim});
  if (!flags.colors.empty()) write_colors(flags.colors, dense.colors(*executable), c);

  if (flags.json) {
    nlohmann::ordered_json line;
    line["image"] = flags.look.image;
    line["layers"] = layers;
    line["norm"] = norm;
    line["grid"] = {c.grid_height(), c.grid_width()};
    if (!flags.out.empty()) {
      line["out"] = flags.out;
      line["shape"] = maps.shape;
    }
    if (!flags.prefix.empty()) {
      line["prefix"] = flags.prefix;
      line["prefix_shape"] = prefixes.shape;
    }
    if (!flags.colors.empty()) line["colors"] = flags.colors;
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return;
  }
  if (!flags.out.empty()) {
    std::printf("%s: features %s of %s\n", shown(flags.out).c_str(), npy_shape(maps.shape).c_str(),
                counted(layers.size(), "block").c_str());
  }
  if (!flags.prefix.empty()) {
    std::printf("%s: the tokens in front of the patches %s\n", shown(flags.prefix).c_str(),
                npy_shape(prefixes.shape).c_str());
  }
  if (!flags.colors.empty()) {
    std::printf("%s: the patches' first three principal components, layer %s\n", shown(flags.colors).c_str(),
                std::to_string(layers.back()).c_str());
  }
}

}  // namespace

void add_features(CLI::App& app, const CommonOptions& common) {
  CLI::App* command =
      app.add_subcommand("features", "Feature maps of a picture's patches behind chosen blocks, as .npy");
  auto flags = std::make_shared<FeatureFlags>();
  add_look_flags(*command, flags->look);
  command->add_option(
      "--layer", flags->layers,
      "Blocks, from 0 on or from -1 down, several with commas, or 'all'; else the last one, or "
      "those of the head");
  command->add_flag(
      "--norm,!--no-norm", flags->norm,
      "Behind the model's last norm, whichever the block, or not; else not, or as the head has it");
  add_head_flags(*command, flags->head);
  command
      ->add_option("--layout", flags->layout,
                   "NCHW: [1,width,rows,columns], a picture of each number; NLC: [1,patches,width]")
      ->check(CLI::IsMember({"NCHW", "NLC"}))
      ->capture_default_str();
  command->add_option("--out", flags->out,
                      "Where the float32 array goes; of several blocks with their number in front");
  command->add_option("--prefix", flags->prefix,
                      "Where the class, distillation and register tokens go: [1,tokens,width]");
  command->add_option("--colors", flags->colors,
                      "Where a PNG of the patches' first three principal components goes, of the last of the "
                      "blocks");
  command->add_flag("--json", flags->json, "Say what was written as a JSON object");
  command->callback([&common, flags] {
    if (flags->out.empty() && flags->prefix.empty() && flags->colors.empty()) {
      throw Error(ErrorCode::usage,
                  "features: found none of --out, --prefix and --colors, expected one or more of them");
    }
    if (!flags->head.file.empty() && !flags->prefix.empty())
      throw Error(ErrorCode::usage, "found --prefix with --head, which is about patches alone");
    features(*flags, common);
  });
}

}  // namespace vitrine::cli

#include "apps/cli/head_output.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <numbers>

#include "images/color_map.h"
#include "images/png_writer.h"
#include "runtime/util/error.h"
#include "runtime/util/npy.h"
#include "runtime/util/split.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

DepthRange parse_range(const std::string& text) {
  const std::vector<std::string_view> parts = split(text, ',');
  std::array<double, 2> ends{};
  bool read = parts.size() == 2;
  for (size_t i = 0; read && i < 2; ++i) {
    const std::string_view part = trimmed(parts[i]);
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), ends[i]);
    read = error == std::errc() && stop == part.data() + part.size() && std::isfinite(ends[i]);
  }
  if (!read || ends[0] < 0 || ends[1] <= ends[0]) {
    throw Error(ErrorCode::usage, "--depth-range " + in_quotes(text) +
                                      ": expected the least and the largest distance, 0.001,10 say");
  }
  return {ends[0], ends[1]};
}

// Classes are told apart by hues a golden angle from each other, and by two lightnesses.
Rgb color_of_class(uint32_t number) {
  constexpr double golden = 0.61803398874989485;
  const double hue = std::fmod(static_cast<double>(number) * golden, 1.0) * 2 * std::numbers::pi;
  const double light = number % 2 ? 0.45 : 0.7, strength = 0.3;
  const auto part = [&](double turned) {
    const double value = light + strength * std::cos(hue - turned * 2 * std::numbers::pi / 3);
    return static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
  };
  return {part(0), part(1), part(2)};
}

template <typename ColorOf>
void write_picture(const std::string& path, Extent size, const ColorOf& color) {
  std::vector<uint8_t> pixels;
  pixels.reserve(3 * size.height * size.width);
  for (uint64_t i = 0; i < size.height * size.width; ++i) {
    const Rgb rgb = color(i);
    pixels.insert(pixels.end(), rgb.begin(), rgb.end());
  }
  write_png(path, to_u32(size.width), to_u32(size.height), 3, pixels);
}

// How many pixels each class has, the most first.
std::vector<std::pair<uint32_t, uint64_t>> counts_of(std::span<const uint32_t> classes) {
  std::map<uint32_t, uint64_t> counts;
  for (const uint32_t number : classes) ++counts[number];
  std::vector<std::pair<uint32_t, uint64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater{}, &std::pair<uint32_t, uint64_t>::second);
  return sorted;
}

}  // namespace

void add_head_flags(CLI::App& command, HeadFlags& flags) {
  command
      .add_option("--head", flags.file,
                  "A linear head as DINOv2 or DINOv3 saves it, as .safetensors: --out and --colors are then "
                  "the class "
                  "or the distance of every pixel")
      ->type_name("FILE");
  command
      .add_option(
          "--depth-range", flags.range,
          "For a head of distances: the least and the largest, as it was trained with (NYU: 0.001,10; "
          "KITTI: 0.001,80)")
      ->type_name("MIN,MAX");
}

HeadOutput::HeadOutput(const HeadFlags& flags, const ViTConfig& config, HeadChoice choice)
    : head_(read_linear_head(flags.file)),
      grid_{config.grid_height(), config.grid_width()},
      size_{config.image_height, config.image_width} {
  const bool depth = head_.task == LinearHead::Task::depth;
  if (depth && flags.range.empty()) {
    throw Error(ErrorCode::bad_file,
                shown(flags.file) +
                    ": a head of distances doesn't say how large they get, expected "
                    "--depth-range as it was trained with (NYU: 0.001,10; KITTI: 0.001,80)");
  }
  if (!depth && !flags.range.empty())
    throw Error(ErrorCode::usage, "found --depth-range with a head of classes, expected one of distances");
  if (depth) range_ = parse_range(flags.range);
  try {
    input_ = head_input(head_, config, choice);
  } catch (const Error& error) {
    throw Error(error.code(), shown(flags.file) + ": " + error.what());
  }
}

void HeadOutput::write(PipelineStore& pipelines, const DenseFeatures& dense, const Executable& executable,
                       const std::string& out, const std::string& colors) {
  const std::vector<float> logits = head_logits(pipelines, head_, input_, dense, executable);
  const std::vector<uint64_t> shape{size_.height, size_.width};
  if (head_.task == LinearHead::Task::depth) {
    depths_ = depths_of(head_, logits, grid_, size_, range_);
    if (!out.empty()) write_npy(out, shape, std::span<const float>(depths_));
    if (colors.empty()) return;
    const auto [near, far] = std::ranges::minmax(depths_);
    const double spread = std::max(static_cast<double>(far) - static_cast<double>(near), 1e-30);
    write_picture(colors, size_, [&, least = static_cast<double>(near)](uint64_t i) {
      return color_of(ColorMap::inferno, 1 - (static_cast<double>(depths_[i]) - least) / spread);
    });
    return;
  }
  classes_ = classes_of(logits, grid_, size_);
  if (!out.empty()) {
    // A byte each where that is enough.
    if (head_.outputs <= 256) {
      write_npy(out, shape, std::vector<uint8_t>(classes_.begin(), classes_.end()));
    } else {
      write_npy(out, shape, std::vector<float>(classes_.begin(), classes_.end()));
    }
  }
  if (!colors.empty()) write_picture(colors, size_, [&](uint64_t i) { return color_of_class(classes_[i]); });
}

void HeadOutput::add_to(nlohmann::ordered_json& line) const {
  line["shape"] = {size_.height, size_.width};
  if (!depths_.empty()) {
    const auto [near, far] = std::ranges::minmax(depths_);
    line["depth"] = {{"nearest", near}, {"farthest", far}};
    return;
  }
  line["classes"] = nlohmann::ordered_json::array();
  for (const auto& [number, count] : counts_of(classes_)) {
    line["classes"].push_back(
        {{"class", number}, {"share", static_cast<double>(count) / static_cast<double>(classes_.size())}});
  }
}

void HeadOutput::print() const {
  if (!depths_.empty()) {
    const auto [near, far] = std::ranges::minmax(depths_);
    std::printf("distances from %.4g to %.4g\n", static_cast<double>(near), static_cast<double>(far));
    return;
  }
  constexpr size_t most = 5;
  const auto counts = counts_of(classes_);
  for (const auto& [number, count] : std::span(counts).first(std::min(most, counts.size()))) {
    std::printf("  class %u  %6.2f %%\n", number,
                100.0 * static_cast<double>(count) / static_cast<double>(classes_.size()));
  }
}

}  // namespace vitrine::cli

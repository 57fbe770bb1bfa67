#include "apps/cli/device/range_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/open_device.h"
#include "model/run/range_guard.h"
#include "runtime/util/four_digits.h"
#include "runtime/util/philox.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

constexpr uint64_t random_images = 8, largest_batch = 8;

float headroom(const LayerRange& range) {
  return f16_largest / std::max({range.largest, range.largest_constant, 1e-30f});
}

const char* verdict(const LayerRange& range) {
  if (std::isnan(range.largest) || std::isinf(range.largest)) return "not finite";
  return range.fits_f16() ? "f16" : "f32";
}

std::vector<float> random_pixels(const ViTConfig& config, uint64_t seed) {
  const uint64_t count = random_images * config.channels * config.image_height * config.image_width;
  std::vector<float> images(count);
  const RandomStream stream(seed, 0x696D616765ull);
  for (uint64_t i = 0; i < count; ++i)
    images[i] = static_cast<float>(normal_quantile(uniform_from(stream.block(i / 4)[i % 4])));
  return images;
}

void print_table(const std::vector<LayerRange>& ranges) {
  std::vector<std::array<std::string, 6>> rows = {
      {"layer", "largest", "headroom", "stored as", "largest weight", "tensor"}};
  for (const LayerRange& range : ranges) {
    rows.push_back({range.layer, range.value.empty() ? "-" : four_digits(range.largest),
                    four_digits(headroom(range)), verdict(range),
                    range.constant.empty() ? "-" : four_digits(range.largest_constant),
                    range.value.empty() ? "-" : range.value});
  }
  std::array<size_t, 6> widths{};
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::printf("%-*s", static_cast<int>(widths[0]), row[0].c_str());
    for (size_t i = 1; i + 1 < row.size(); ++i)
      std::printf("  %*s", static_cast<int>(widths[i]), row[i].c_str());
    std::printf("  %s\n", row.back().c_str());
  }
}

void print_lines(const std::vector<LayerRange>& ranges) {
  for (const LayerRange& range : ranges) {
    const nlohmann::ordered_json line = {{"layer", range.layer},
                                         {"largest", range.largest},
                                         {"tensor", range.value},
                                         {"headroom", headroom(range)},
                                         {"largest_weight", range.largest_constant},
                                         {"weight", range.constant},
                                         {"stored_as", verdict(range)}};
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }
}

}  // namespace

void report_ranges(const ModelFlags& flags, const std::string& input, const CommonOptions& common,
                   bool json) {
  const PlanOptions plan = plan_options(flags);
  const Model model = open_model(flags, common);
  const std::vector<float> images =
      input.empty() ? random_pixels(model.config, common.seed) : read_images(input, model.config);
  const std::unique_ptr<Device> device = open_device(common);
  PipelineStore pipelines(*device);
  RangeGuard guard(pipelines, model, [](uint64_t batch) { return ViTGraphOptions{.batch = batch}; }, plan);
  const uint64_t each = model.config.channels * model.config.image_height * model.config.image_width;
  const uint64_t count = images.size() / each;
  for (uint64_t first = 0; first < count; first += largest_batch) {
    const uint64_t size = std::min(largest_batch, count - first);
    guard.check(size, [&](Executable& probe) {
      const auto part = std::span(images).subspan(first * each, size * each);
      std::ranges::copy(std::as_bytes(part), probe.input(0).begin());
    });
  }
  const std::vector<LayerRange> ranges = guard.ranges();
  if (json) {
    print_lines(ranges);
    return;
  }
  const auto beyond = std::ranges::count_if(ranges, [](const LayerRange& r) { return !r.fits_f16(); });
  std::printf(
      "%s on %s, %llu images%s: %lld of %zu layers hold numbers that f16 can't (it ends at 65504)\n\n",
      shown(model.name).c_str(), device->capabilities().name.c_str(), static_cast<unsigned long long>(count),
      input.empty() ? " of random pixels" : "", static_cast<long long>(beyond), ranges.size());
  print_table(ranges);
}

std::string range_sentence(RangeGuard& guard) {
  const std::vector<LayerRange> ranges = guard.ranges();
  const auto largest = std::ranges::max_element(ranges, {}, &LayerRange::largest);
  if (largest == ranges.end()) return "nothing that f16 would store";
  return "the largest magnitude is " + four_digits(largest->largest) + " (" + largest->value +
         "), f16 ends at 65504";
}

}  // namespace vitrine::cli

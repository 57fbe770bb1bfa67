#include "apps/cli/inspect_trace.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <memory>

#include "apps/cli/attention_table.h"
#include "apps/cli/open_device.h"
#include "model/look/trace.h"
#include "model/pictures/preprocess_picture.h"
#include "runtime/util/error.h"
#include "runtime/util/npy.h"
#include "runtime/util/text.h"
#include "train/data/picture_dataset.h"

namespace vitrine::cli {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Shape& shape) { return std::vector<uint64_t>(shape.dims().begin(), shape.dims().end()); }

// The values from `at` on as lists of lists of the shape that begins at `axis`.
Json nested(const TraceSlice& slice, size_t axis, size_t& at) {
  Json list = Json::array();
  for (uint64_t i = 0; i < slice.shape[static_cast<int>(axis)]; ++i) {
    if (axis + 1 == slice.shape.rank()) {
      list.push_back(slice.values[at++]);
    } else {
      list.push_back(nested(slice, axis + 1, at));
    }
  }
  return list;
}

Json json_of(const std::vector<TraceStep>& steps) {
  Json list = Json::array();
  for (const TraceStep& step : steps) {
    Json entry{{"name", step.name}, {"what", step.what}, {"shape", json_of(step.shape)}};
    if (!step.slice.values.empty()) {
      size_t at = 0;
      entry["slice"] = {{"index", step.slice.index},
                        {"meaning", step.slice.meaning},
                        {"shape", json_of(step.slice.shape)},
                        {"values", nested(step.slice, 0, at)}};
    }
    list.push_back(std::move(entry));
  }
  return list;
}

void print_slice(const TraceStep& step) {
  const TraceSlice& slice = step.slice;
  const bool product = step.name.find(" @ ") != std::string::npos;
  std::printf("    %s%s%s%s: %s\n", product ? "(" : "", step.name.c_str(), product ? ")" : "",
              slice.index.c_str(), slice.meaning.c_str());
  const uint64_t columns = slice.shape[-1], rows = slice.shape.elements() / columns;
  const uint64_t images = slice.shape.rank() > 2 ? slice.shape[0] : 1;
  for (uint64_t row = 0; row < rows; ++row) {
    if (images > 1 && row % (rows / images) == 0)
      std::printf("     image %" PRIu64 "\n", row / (rows / images));
    std::printf("     ");
    for (uint64_t i = 0; i < columns; ++i)
      std::printf(" %12.6g", static_cast<double>(slice.values[row * columns + i]));
    std::printf("\n");
  }
}

void print(const std::vector<TraceStep>& steps) {
  for (const TraceStep& step : steps) {
    std::printf("  %-26s %-22s %s\n", step.name.c_str(), step.shape.to_string().c_str(), step.what.c_str());
    if (!step.slice.values.empty()) print_slice(step);
  }
}

void print_line(const Json& line) {
  std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

Tensor read_tokens(const std::string& path, uint64_t dim) {
  const NpyFile file(path);
  const NpyHeader& header = file.header();
  const auto& shape = header.shape;
  if (header.dtype != NpyDType::f32 || shape.size() != 3 || header.elements == 0 || shape[2] != dim) {
    throw Error(ErrorCode::bad_file, shown(file.path()) + ": found " + std::string(name_of(header.dtype)) +
                                         " " + npy_shape(shape) + ", expected float32 (B, N, " +
                                         std::to_string(dim) + ") with B and N at least 1");
  }
  return {Shape(std::span<const uint64_t>(shape)), file.values<float>()};
}

// The device and what to compute with on it.
struct Place {
  Place(const ModelFlags& flags, const CommonOptions& common)
      : plan(plan_options(flags)), device(open_device(common)), pipelines(*device) {
    options = {.dtype = storage_type(common.dtype, device->capabilities()), .plan = plan};
  }
  PlanOptions plan;
  std::unique_ptr<Device> device;
  PipelineStore pipelines;
  TraceOptions options;
};

}  // namespace

bool is_npy(const std::string& path) {
  constexpr std::string_view magic = "\x93NUMPY";
  std::array<char, magic.size()> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  return std::string_view(start.data(), start.size()) == magic || path.ends_with(".npy");
}

void trace_model(const Model& model, const std::optional<Preprocess>& preprocess, const ModelFlags& flags,
                 const TraceFlags& trace, bool json, Json line, const CommonOptions& common) {
  const ViTConfig& c = model.config;
  if (trace.layer >= c.depth) {
    throw Error(ErrorCode::usage, "--layer: found " + std::to_string(trace.layer) + ", expected 0 to " +
                                      std::to_string(c.depth - 1));
  }
  Tensor images;
  Picture picture;
  if (preprocess) {
    picture = picture_for(decode_image(trace.input, decode_options(trace.picture, *preprocess)), c.channels);
  } else {
    images.values = read_images(trace.input, c);
    const uint64_t each = c.channels * c.image_height * c.image_width;
    images.shape = {images.values.size() / each, c.channels, c.image_height, c.image_width};
  }
  Place place(flags, common);
  std::vector<TraceStep> steps;
  if (preprocess) {
    steps.push_back({"picture",
                     preprocess->profile + ": " + preprocess->to_string(),
                     {picture.height, picture.width, c.channels}});
    images.shape = {1, c.channels, preprocess->height(), preprocess->width()};
    images.values = preprocessed_picture(place.pipelines, *preprocess, c.channels, std::move(picture),
                                         shown(trace.input));
  }
  std::ranges::move(vitrine::trace_model(place.pipelines, model, images, trace.layer, place.options),
                    std::back_inserter(steps));
  const AttentionTableSizes sizes{images.shape[0], c.tokens()};
  if (json) {
    line["attention"] = json_of_attention(c, sizes);
    line["device"] = place.device->capabilities().name;
    line["dtype"] = name_of(place.options.dtype);
    line["layer"] = trace.layer;
    line["trace"] = json_of(steps);
    return print_line(line);
  }
  std::printf("%s (%s)\n", shown(model.name).c_str(), model.family.c_str());
  print_attention_table(c, sizes);
  std::printf("\nthe walk through the patch embedding and block %" PRIu64 ", in %s\n", trace.layer,
              std::string(name_of(place.options.dtype)).c_str());
  print(steps);
}

void inspect_attention(const std::string& name, const BareAttention& attention, const ModelFlags& flags,
                       const TraceFlags& trace, bool json, const CommonOptions& common) {
  const ViTConfig& c = attention.module.config();
  uint64_t parameters = 0;
  for (const Parameter& parameter : attention.module.parameters()) parameters += parameter.shape.elements();
  AttentionTableSizes sizes;
  std::unique_ptr<Place> place;
  std::vector<TraceStep> steps;
  if (!trace.input.empty()) {
    if (trace.layer > 0) {
      throw Error(ErrorCode::usage, "--layer: found " + std::to_string(trace.layer) +
                                        ", expected 0 for an attention without a model");
    }
    const Tensor tokens = read_tokens(trace.input, c.dim);
    sizes = {tokens.shape[0], tokens.shape[1]};
    place = std::make_unique<Place>(flags, common);
    steps = trace_attention(place->pipelines, attention.module, *attention.constants, tokens, place->options);
  }
  if (json) {
    Json line{{"model", name}, {"family", "attention"}};
    line["config"] = {{"dim", c.dim},
                      {"heads", c.heads},
                      {"key_width", c.head_key_width()},
                      {"value_width", c.head_value_width()},
                      {"qkv_bias", c.qkv_bias},
                      {"qk_scale", c.attention_scale()},
                      {"projection", c.projection}};
    line["parameters"] = parameters;
    line["attention"] = json_of_attention(c, sizes);
    if (place) {
      line["device"] = place->device->capabilities().name;
      line["dtype"] = name_of(place->options.dtype);
      line["trace"] = json_of(steps);
    }
    return print_line(line);
  }
  std::printf("%s (an attention alone)\n\nparameters %" PRIu64 "\n", shown(name).c_str(), parameters);
  for (const Parameter& parameter : attention.module.parameters())
    std::printf("  %-12s %s\n", parameter.name.c_str(), parameter.shape.to_string().c_str());
  print_attention_table(c, sizes);
  if (!place) return;
  std::printf("\nthe walk, in %s\n", std::string(name_of(place->options.dtype)).c_str());
  print(steps);
}

}  // namespace vitrine::cli

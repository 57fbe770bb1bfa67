#include "model/look/dense_features.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/ops/explain/principal_colors.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/ops/moves/transpose.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

constexpr const char* map_name = "features.";
constexpr const char* prefix_name = "features.prefix.";
constexpr const char* colors_name = "features.colors";

}  // namespace

DenseFeatures::DenseFeatures(const ViTConfig& config, DenseFeatureOptions options)
    : config_(config), options_(std::move(options)) {
  for (const uint64_t layer : options_.layers) {
    if (layer < config.depth) continue;
    throw Error(ErrorCode::usage, "the layer is " + std::to_string(layer) + ", expected 0 to " +
                                      std::to_string(config.depth - 1));
  }
  if (options_.norm && !config.final_norm && !config.neck) {
    throw Error(ErrorCode::usage,
                "features behind the last norm were asked for, and this model has none on all of its tokens");
  }
}

BlockTaps DenseFeatures::taps() const {
  BlockTaps taps;
  for (const uint64_t layer : options_.layers) {
    const bool colors = options_.colors && layer == options_.layers.back();
    taps[layer].look = [c = config_, layer, colors, norm = options_.norm, rows = options_.rows](
                           GraphBuilder& builder, const BlockValues& block) {
      Graph& graph = builder.graph();
      const std::string name = map_name + std::to_string(layer);
      const uint64_t first = c.prefix_in_blocks();
      ValueId tokens = block.out;
      if (norm) tokens = VisionTransformer(c).normed(builder, name + ".norm", tokens);
      const bool others = c.tokens() != c.patches();
      const ValueId patches =
          others ? slice(graph, name + ".patches", tokens, 1, first, first + c.patches()) : tokens;
      graph.output(rows ? patches : transpose(graph, name, patches), name);
      if (first) {
        graph.output(slice(graph, name + ".others", tokens, 1, 0, first),
                     prefix_name + std::to_string(layer));
      }
      if (colors) graph.output(principal_colors(graph, colors_name, tokens, first, c.patches()), colors_name);
    };
  }
  return taps;
}

std::vector<float> DenseFeatures::output(const Executable& executable, const char* kind, uint64_t layer,
                                         uint64_t image, uint64_t count) const {
  if (std::ranges::find(options_.layers, layer) == options_.layers.end()) {
    throw Error(ErrorCode::usage, "the features of layer " + std::to_string(layer) +
                                      " were not asked for when the graph was made");
  }
  std::vector<float> values(count);
  if (count == 0) return values;
  const auto bytes = executable.output(executable.output_index(kind + std::to_string(layer)));
  const uint64_t images = bytes.size() / (count * sizeof(float));
  if (image >= images) {
    throw Error(ErrorCode::usage,
                "the image is " + std::to_string(image) + ", expected 0 to " + std::to_string(images - 1));
  }
  std::memcpy(values.data(), bytes.data() + image * count * sizeof(float), count * sizeof(float));
  return values;
}

std::vector<float> DenseFeatures::map(const Executable& executable, uint64_t layer, uint64_t image) const {
  return output(executable, map_name, layer, image, width() * config_.patches());
}

std::vector<float> DenseFeatures::prefix(const Executable& executable, uint64_t layer, uint64_t image) const {
  return output(executable, prefix_name, layer, image, config_.dim * config_.prefix_in_blocks());
}

std::vector<uint8_t> DenseFeatures::colors(const Executable& executable) const {
  const auto bytes = executable.output(executable.output_index(colors_name));
  std::vector<uint8_t> pixels(4 * config_.patches());
  std::memcpy(pixels.data(), bytes.data(), pixels.size());
  return pixels;
}

}  // namespace vitrine

#include "model/vit/vit_graph.h"

namespace vitrine {

namespace {

ViTConfig with_grid(ViTConfig config, Grid grid) {
  config.image_height = grid.height * config.patch_height;
  config.image_width = grid.width * config.patch_width;
  return config;
}

void build(GraphBuilder& builder, const ViTConfig& whole, const ViTGraphOptions& options) {
  const ViTConfig config = options.grid ? with_grid(whole, *options.grid) : whole;
  if (options.grid) builder.take_positions_of(*options.grid);
  const VisionTransformer model(config);
  Graph& graph = builder.graph();
  const Shape image_shape{options.batch, config.channels, config.image_height, config.image_width};
  const ValueId image = options.image ? options.image(graph) : graph.input("image", image_shape);
  if (graph.value(image).shape != image_shape) {
    throw Error(ErrorCode::usage, "the image is " + graph.value(image).shape.to_string() +
                                      ", the model expects " + image_shape.to_string());
  }
  const Result result = options.result.value_or(natural_result(config));
  graph.output(model(builder, image, result, options.taps), std::string(name_of(result)));
}

}  // namespace

std::optional<std::string> refuses_shapes(const ViTConfig& c) {
  if (c.positions != Positions::none && c.positions != Positions::learned)
    return "its positions are computed";
  if (c.block_positions) return "its blocks have positions of their own";
  if (c.rotary != Rotary::none) return "its positions are rotary";
  if (c.relative_bias != RelativeBias::none) return "its attention has a relative bias";
  if (c.window) return "its attention has windows";
  if (c.stem != Stem::none || !c.patches_adjoin() || c.patch_height != c.patch_width)
    return "its patches aren't squares side by side";
  return std::nullopt;
}

std::shared_ptr<const Graph> make_vit_graph(const ViTConfig& config, const ViTGraphOptions& options) {
  GraphBuilder builder(options.dtype, options.layers);
  build(builder, config, options);
  return builder.finish();
}

std::vector<std::string> layers_of(const ViTConfig& config, const ViTGraphOptions& options) {
  GraphBuilder builder(options.dtype, options.layers);
  build(builder, config, options);
  return {builder.layers().begin(), builder.layers().end()};
}

}  // namespace vitrine

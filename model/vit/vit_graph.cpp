#include "model/vit/vit_graph.h"

namespace vitrine {

namespace {

void build(GraphBuilder& builder, const ViTConfig& config, const ViTGraphOptions& options) {
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

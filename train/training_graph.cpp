#include "train/training_graph.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/vit/vision_transformer.h"
#include "runtime/graph/autodiff.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/pictures/byte_values.h"
#include "runtime/ops/pictures/pixel_values.h"
#include "runtime/ops/training/adam_step.h"
#include "runtime/ops/training/clip_scale.h"
#include "runtime/ops/training/count_update.h"
#include "runtime/ops/training/sgd_step.h"
#include "runtime/util/error.h"
#include "shaders/lib/step_state.h"
#include "train/augmentation_graph.h"
#include "train/lora.h"
#include "train/recipes/recipe_graph.h"

namespace vitrine {
namespace {

LearnedParameters learned(const TrainConfig& config, const ParameterLayout& layout, bool training,
                          std::string_view buffer = parameters_buffer) {
  LearnedParameters result{.training = training, .low_rank = low_rank_of(config)};
  for (const auto& [parameter, first] : layout.places) {
    result.places[parameter.name] = {std::string(buffer), first};
  }
  return result;
}

ValueId whole(Graph& graph, const ParameterLayout& layout, std::string_view buffer) {
  return graph.state(std::string(buffer), {layout.elements}, {std::string(buffer)});
}

void store_whole(Graph& graph, ValueId value, std::string_view buffer) {
  graph.store(value, {std::string(buffer)});
}

// Which of the blocks a node belongs to, by its name: "blocks.7.mlp.fc1".
std::optional<uint32_t> block_of(const Node& node) {
  constexpr std::string_view prefix = "blocks.";
  if (!node.name.starts_with(prefix)) return std::nullopt;
  return static_cast<uint32_t>(std::stoul(node.name.substr(prefix.size())));
}

// The update of one group by its gradients.
void append_group_update(Graph& graph, const TrainConfig& config, const UpdateGroup& group,
                         const std::string& name, ValueId step, std::string_view gradients_in,
                         ValueId clipping) {
  const auto part_of = [&](std::string_view buffer) {
    return graph.state(std::string(buffer), {group.elements}, {std::string(buffer), group.first});
  };
  const auto store = [&](ValueId value, std::string_view buffer) {
    graph.store(value, {std::string(buffer), group.first});
  };
  const ValueId parameters = part_of(parameters_buffer), gradients = part_of(gradients_in);
  if (config.optimizer == Optimizer::sgd) {
    const ValueId velocity = config.momentum > 0 ? part_of(moment1_buffer) : ValueId{};
    const SgdState next = sgd_step(graph, name, parameters, gradients, velocity, step,
                                   {.momentum = config.momentum,
                                    .weight_decay = config.weight_decay,
                                    .decay_elements = group.decay_elements,
                                    .rate_factor = group.rate,
                                    .gradient_scale = clipping});
    store(next.param, parameters_buffer);
    if (velocity) store(next.velocity, moment1_buffer);
    return;
  }
  const AdamState next =
      adam_step(graph, name, parameters, gradients, part_of(moment1_buffer), part_of(moment2_buffer), step,
                {.beta1 = config.beta1,
                 .beta2 = config.beta2,
                 .eps = config.eps,
                 .weight_decay = config.weight_decay,
                 .decoupled = config.optimizer == Optimizer::adamw,
                 .decay_elements = group.decay_elements,
                 .rate_factor = group.rate,
                 .gradient_scale = clipping});
  store(next.param, parameters_buffer);
  store(next.m, moment1_buffer);
  store(next.v, moment2_buffer);
}

// The update of all parameters by the gradients in a buffer, and of their average.
void append_update(Graph& graph, const TrainConfig& config, const ParameterLayout& layout, ValueId step,
                   std::string_view gradients_in) {
  // Of gradients that are not all finite it makes NaN, and the updates nothing.
  const ValueId clipping = clip_scale(graph, "clip", whole(graph, layout, gradients_in), config.clip_norm);
  graph.output(clipping, "clipping");
  if (config.optimizer != Optimizer::sgd) {
    const StatePlace at_updates{std::string(updates_buffer)};
    const CountedUpdate counted =
        count_update(graph, "count", step, clipping,
                     graph.state(std::string(updates_buffer), {1}, at_updates, DType::u32));
    graph.store(counted.updates, at_updates);
    step = counted.step;
  }
  for (size_t i = 0; i < layout.groups.size(); ++i) {
    const std::string name = layout.groups.size() == 1 ? "update" : "update." + std::to_string(i);
    append_group_update(graph, config, layout.groups[i], name, step, gradients_in, clipping);
  }
  if (config.ema_decay == 0) return;
  const ValueId average = whole(graph, layout, average_buffer);
  store_whole(graph,
              mix(graph, "average", average, whole(graph, layout, parameters_buffer), 1 - config.ema_decay),
              average_buffer);
}

// `augmentation` is what chance does to pictures first, where it does.
ValueId append_image(Graph& graph, const ViTConfig& c, uint64_t batch, StepImages images,
                     const PictureAugmentation& augmentation = {}) {
  const Shape shape{batch, c.channels, c.image_height, c.image_width};
  if (images == StepImages::numbers) return graph.input("image", shape);
  if (images == StepImages::bytes) {
    const ValueId bytes = graph.input("bytes", {ceil_div(shape.elements(), 4)}, DType::u32);
    const ValueId values = graph.input("values", {c.channels, 256});
    return byte_values(graph, "preprocess.values", bytes, values, {batch, c.image_height, c.image_width});
  }
  ValueId pictures = graph.state(std::string(pictures_buffer), {batch, c.image_height, c.image_width},
                                 {std::string(pictures_buffer)}, DType::u32);
  if (augmentation.on()) pictures = append_picture_operations(graph, augmentation, pictures);
  return pixel_values(graph, "preprocess.values", pictures, graph.input("values", {c.channels, 256}));
}

// The model's own result on the images.
ValueId append_model(GraphBuilder& builder, const TrainConfig& config, uint64_t batch, StepImages images) {
  const ValueId image = append_image(builder.graph(), config.model, batch, images);
  return VisionTransformer(config.model)(builder, image, natural_result(config.model));
}

// The same on "features".
ValueId append_heads(GraphBuilder& builder, const TrainConfig& config, uint64_t batch) {
  const VisionTransformer model(config.model);
  const ValueId features = builder.graph().input("features", {batch, model.head_inputs_width()});
  return model.classify(builder, features, natural_result(config.model));
}

}  // namespace

std::string_view result_buffer(const TrainConfig& config) {
  return config.ema_decay > 0 ? average_buffer : parameters_buffer;
}

Graph make_forward_graph(const TrainConfig& config, const ParameterLayout& layout,
                         const StepGraphOptions& options, bool rounded) {
  LearnedParameters parameters_of_step = learned(config, layout, true);
  parameters_of_step.rounded = rounded;
  GraphBuilder builder(std::move(parameters_of_step));
  const uint64_t batch = config.batch_size;
  Answers answers;
  if (options.from_features) {
    answers.result = append_heads(builder, config, batch);
  } else {
    const ValueId image =
        append_image(builder.graph(), config.model, batch, options.images, config.augmentation);
    answers = append_models(builder, config, options.teacher, append_mixing(builder, config, image));
  }
  const ValueId labels = builder.graph().input("labels", {batch}, DType::u32);
  builder.graph().input("weights", {batch});
  builder.graph().output(append_losses(builder.graph(), config, answers, labels), "losses");
  return plain_graph(builder.graph());
}

std::shared_ptr<const Graph> make_step_graph(const TrainConfig& config, const ParameterLayout& layout,
                                             const StepGraphOptions& options) {
  Graph graph = make_forward_graph(config, layout, options, config.precision == Precision::f16);
  // What the model reads of the parameters, each a view of its own: their gradients lie in the same places.
  std::vector<ValueId> parameters;
  for (const ValueId id : graph.with_role(Role::state)) {
    if (graph.value(id).place.buffer == parameters_buffer) parameters.push_back(id);
  }
  const GradientSeed seed{graph.find("losses"), graph.find("weights")};
  AutodiffOptions autodiff;
  if (options.recompute) autodiff.segment = block_of;
  const std::vector<ValueId> gradients = add_gradients(graph, {&seed, 1}, parameters, autodiff);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!gradients[i]) continue;  // the loss doesn't depend on it: its gradient stays 0
    const Value& parameter = graph.value(parameters[i]);
    const StatePlace place{std::string(gradients_buffer), parameter.place.first};
    const bool own = graph.value(gradients[i]).role == Role::intermediate;
    graph.store(own ? gradients[i] : scale(graph, parameter.name + ".grad.copy", gradients[i], 1), place);
  }
  if (options.update) append_update(graph, config, layout, graph.find("step"), gradients_buffer);
  return std::make_shared<const Graph>(std::move(graph));
}

std::shared_ptr<const Graph> make_first_sum_graph(const ParameterLayout& layout) {
  const auto graph = std::make_shared<Graph>();
  store_whole(*graph, scale(*graph, "first", whole(*graph, layout, gradients_buffer), 1), sums_buffer);
  return graph;
}

std::shared_ptr<const Graph> make_add_sum_graph(const ParameterLayout& layout) {
  const auto graph = std::make_shared<Graph>();
  const ValueId sums = whole(*graph, layout, sums_buffer);
  store_whole(*graph, add(*graph, "add", sums, whole(*graph, layout, gradients_buffer)), sums_buffer);
  return graph;
}

std::shared_ptr<const Graph> make_gradients_graph(const ParameterLayout& layout) {
  const auto graph = std::make_shared<Graph>();
  graph->output(scale(*graph, "gradients", whole(*graph, layout, gradients_buffer), 1), "gradients");
  return graph;
}

std::shared_ptr<const Graph> make_update_graph(const TrainConfig& config, const ParameterLayout& layout) {
  const auto graph = std::make_shared<Graph>();
  const ValueId step = graph->input("step", {VITRINE_STEP_WORDS}, DType::u32);
  append_update(*graph, config, layout, step, sums_buffer);
  return graph;
}

std::shared_ptr<const Graph> make_features_graph(const TrainConfig& config, const ParameterLayout& layout,
                                                 uint64_t batch, StepImages images) {
  GraphBuilder builder(learned(config, layout, false, result_buffer(config)));
  const VisionTransformer model(config.model);
  const ValueId image = append_image(builder.graph(), config.model, batch, images);
  builder.graph().output(model.head_inputs(builder, model.tokens(builder, image)), "features");
  return builder.finish();
}

std::shared_ptr<const Graph> make_test_graph(const TrainConfig& config, const ParameterLayout& layout,
                                             uint64_t batch, StepImages images) {
  GraphBuilder builder(learned(config, layout, false, result_buffer(config)));
  builder.graph().output(append_model(builder, config, batch, images), "result");
  return builder.finish();
}

std::shared_ptr<const Graph> make_picture_graph(const TrainConfig& config, const PictureCapacity& capacity) {
  const auto graph = std::make_shared<Graph>();
  const ValueId resized = add_resized_pictures(*graph, preprocessing_of(config), config.batch_size, capacity);
  graph->store(resized, {std::string(pictures_buffer)});
  return graph;
}

}  // namespace vitrine

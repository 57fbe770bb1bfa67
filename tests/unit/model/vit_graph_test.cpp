#include "model/vit/vit_graph.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <map>

#include "model/vit/parameters.h"
#include "model/vit/presets.h"
#include "runtime/graph/op.h"

using namespace vitrine;
using Catch::Matchers::WithinRel;

namespace {

std::map<std::string, Value> constants_of(const Graph& graph) {
  std::map<std::string, Value> constants;
  for (const ValueId id : graph.with_role(Role::constant))
    constants.emplace(graph.value(id).name, graph.value(id));
  return constants;
}

const Value& only_output(const Graph& graph) {
  const auto outputs = graph.with_role(Role::output);
  REQUIRE(outputs.size() == 1);
  return graph.value(outputs.front());
}

size_t count_nodes(const Graph& graph, std::string_view op) {
  return static_cast<size_t>(
      std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op->name == op; }));
}

}  // namespace

TEST_CASE("a graph uses every parameter of its config, in the dtype that belongs to it") {
  for (const std::string_view name : preset_names()) {
    ViTConfig config = preset(name);
    config.depth = std::min<uint64_t>(config.depth, 2);
    for (const DType dtype : {DType::f32, DType::f16}) {
      INFO(name << " " << name_of(dtype));
      const auto graph = make_vit_graph(config, {.batch = 3, .dtype = dtype});
      const auto constants = constants_of(*graph);
      const auto parameters = parameters_of(config);
      CHECK(constants.size() == parameters.size());
      for (const Parameter& parameter : parameters) {
        INFO(parameter.name);
        REQUIRE(constants.contains(parameter.name));
        CHECK(constants.at(parameter.name).shape == parameter.shape);
        CHECK(constants.at(parameter.name).dtype == (parameter.is_matrix() ? dtype : DType::f32));
      }
      CHECK(only_output(*graph).dtype == DType::f32);
      CHECK(graph->value(graph->find("image")).shape ==
            Shape{3, config.channels, config.image_height, config.image_width});
    }
  }
}

TEST_CASE("each result has its name and shape") {
  ViTConfig config = preset("deit_tiny_distilled_patch16_224");
  config.depth = 1;
  const auto output = [&](Result result) {
    return only_output(*make_vit_graph(config, {.batch = 2, .result = result}));
  };
  CHECK(output(Result::logits).shape == Shape{2, 1000});
  CHECK(output(Result::logits).name == "logits");
  CHECK(output(Result::probabilities).shape == Shape{2, 1000});
  CHECK(output(Result::features).shape == Shape{2, 192});
  CHECK(output(Result::tokens).shape == Shape{2, 198, 192});
  for (const Result result : {Result::logits, Result::probabilities, Result::features, Result::tokens}) {
    CHECK(result_named(name_of(result)) == result);
  }
  CHECK_FALSE(result_named("loss"));

  config = preset("vit_base_patch16_siglip_224");
  config.depth = 1;
  CHECK(output(Result::tokens).shape == Shape{2, 196, 768});
  CHECK(output(Result::features).shape == Shape{2, 768});
  config = preset("vit_tiny_patch16_224");
  config.depth = 1;
  config.pool = Pool::token_and_mean;
  CHECK(output(Result::features).shape == Shape{2, 384});
  config.embedding_size = 50;
  config.classes = 0;
  CHECK(output(Result::features).shape == Shape{2, 50});
  config = preset("vit_tiny_patch16_224");
  config.depth = 1;
  config.representation_size = 50;
  CHECK(output(Result::features).shape == Shape{2, 50});
  config.classes = 0;
  CHECK(natural_result(config) == Result::features);
  CHECK_THROWS_AS(make_vit_graph(config, {.result = Result::logits}), Error);
  CHECK(natural_result(preset("myvit_mnist")) == Result::probabilities);
  CHECK(natural_result(preset("vit_b_16")) == Result::logits);
}

TEST_CASE("a standard ViT is seven operators a block and four around them") {
  const auto graph = make_vit_graph(preset("vit_b_16"));
  CHECK(graph->nodes().size() == 12 * 7 + 5);
  CHECK(count_nodes(*graph, "matmul") == 12 * 4 + 1);
  CHECK(count_nodes(*graph, "attention") == 12);
  CHECK(count_nodes(*graph, "layer_norm") == 12 * 2 + 1);
  // The residual stream stays f32 where matrices are f16.
  const auto half = make_vit_graph(preset("vit_b_16"), {.dtype = DType::f16});
  CHECK(half->nodes().size() == graph->nodes().size());
  for (const Node& node : half->nodes()) {
    if (node.name.ends_with(".mlp.fc2") || node.name.ends_with(".attn.proj")) {
      CHECK(half->value(node.outputs[0]).dtype == DType::f32);
    }
    if (node.name.ends_with(".mlp.fc1") || node.name.ends_with(".attn.qkv")) {
      CHECK(half->value(node.outputs[0]).dtype == DType::f16);
    }
  }
}

TEST_CASE("the operators' arithmetic adds up to the config's") {
  for (const char* name : {"vit_tiny_patch16_224", "deit_tiny_distilled_patch16_224", "myvit_mnist",
                           "cifar_vit", "vit_giant_patch14_reg4_dinov2", "vit_base_patch16_reg4_gap_256",
                           "vit_base_patch16_siglip_224", "vit_so150m_patch16_reg4_map_256"}) {
    INFO(name);
    const ViTConfig config = preset(name);
    const auto graph = make_vit_graph(config, {.batch = 2});
    double sum = 0;
    for (const Node& node : graph->nodes()) {
      const bool products = node.op->name == "matmul" || node.op->name == "grouped_matmul" ||
                            node.op->name == "attention" || node.op->name == "patch_embed";
      if (products) sum += node.op->flops(LowerContext(*graph, node, Capabilities{}));
    }
    // Operators may count a bias or a softmax too: a small part of the whole but for the smallest widths.
    CHECK_THAT(sum, WithinRel(flops(config, 2), config.dim < 100 ? 0.5 : 0.03));
    CHECK(sum >= flops(config, 2));
  }
}

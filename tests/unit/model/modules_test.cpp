#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "model/vit/block.h"
#include "model/vit/presets.h"
#include "model/vit/vit_graph.h"
#include "runtime/graph/op.h"
#include "runtime/ops/elementwise/unary.h"

using namespace vitrine;

namespace {

std::vector<std::string> names_of(const ModuleBase& module) {
  std::vector<std::string> names;
  for (const Parameter& parameter : module.parameters()) names.push_back(parameter.name);
  return names;
}

const Node& node_named(const Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.nodes(), name, &Node::name);
  REQUIRE(found != graph.nodes().end());
  return *found;
}

DType output_type(const Graph& graph, std::string_view name) {
  return graph.value(node_named(graph, name).outputs[0]).dtype;
}

DType weight_type(const Graph& graph, std::string_view name) {
  return graph.value(node_named(graph, name).inputs[1]).dtype;
}

}  // namespace

TEST_CASE("each module declares what PyTorch's state dict of it holds") {
  using Names = std::vector<std::string>;
  const ViTConfig config{.dim = 512, .heads = 8, .qkv_bias = false};
  CHECK(names_of(Attention(config)) == Names{"qkv.weight", "proj.weight", "proj.bias"});
  CHECK(Attention(config).parameters()[0].shape == Shape{1536, 512});
  CHECK(names_of(Attention({.dim = 8, .heads = 2, .per_head_maps = true, .projection = false}, "at")) ==
        Names{"at.q.weight", "at.q.bias", "at.k.weight", "at.k.bias", "at.v.weight", "at.v.bias"});
  CHECK(names_of(PatchEmbed({.patch_norm = true})) ==
        Names{"proj.weight", "proj.bias", "norm.weight", "norm.bias"});
  CHECK(names_of(Mlp(config)) == Names{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"});
  CHECK(Mlp({.dim = 6, .mlp = MlpKind::swiglu, .mlp_hidden = 10}).parameters()[0].shape == Shape{20, 6});
  CHECK(names_of(Block({.layer_scale = true})) ==
        Names{"norm1.weight", "norm1.bias", "attn.qkv.weight", "attn.qkv.bias", "attn.proj.weight",
              "attn.proj.bias", "ls1.gamma", "norm2.weight", "norm2.bias", "mlp.fc1.weight", "mlp.fc1.bias",
              "mlp.fc2.weight", "mlp.fc2.bias", "ls2.gamma"});
}

TEST_CASE("a model's parameters have the names that the families map from") {
  for (const std::string_view name : preset_names()) {
    INFO(name);
    for (const Parameter& parameter : parameters_of(preset(name))) {
      std::string expected(canonical_path(parameter.module));
      if (const size_t star = expected.find('*'); star != std::string::npos)
        expected.replace(star, 1, std::to_string(parameter.block));
      if (parameter.leaf != Leaf::whole) expected += parameter.leaf == Leaf::weight ? ".weight" : ".bias";
      CHECK(parameter.name == expected);
    }
  }
}

TEST_CASE("a module alone is a graph of its own") {
  const ViTConfig config{.dim = 24, .heads = 3, .qkv_bias = false};
  GraphBuilder builder;
  const ValueId tokens = builder.graph().input("tokens", {2, 5, 24});
  const AttentionValues values = Attention(config).values(builder, tokens, {.scores = true});
  const Graph& graph = builder.graph();
  CHECK(graph.value(values.scores).shape == Shape{2, 3, 5, 5});
  CHECK(graph.value(values.weights).shape == Shape{2, 3, 5, 5});
  CHECK(graph.value(values.heads).shape == Shape{2, 5, 24});
  CHECK(graph.value(values.out).shape == Shape{2, 5, 24});
  CHECK_FALSE(values.lse);
  CHECK(graph.with_role(Role::constant).size() == 3);

  const AttentionValues fused = Attention(config, "again").values(builder, tokens, {.lse = true});
  CHECK(builder.graph().value(fused.lse).shape == Shape{2, 3, 5});
  CHECK_FALSE(fused.scores);
}

TEST_CASE("one layer can be stored in another type than the rest") {
  ViTConfig config = preset("vit_tiny_patch16_224");
  config.depth = 2;
  const auto graph = make_vit_graph(
      config, {.dtype = DType::f16, .layers = {{"blocks.0.mlp", DType::f32}, {"blocks.1.attn", DType::f32}}});
  const auto type_of = [](bool f32) { return f32 ? DType::f32 : DType::f16; };
  for (const int i : {0, 1}) {
    INFO("block " << i);
    const std::string at = "blocks." + std::to_string(i);
    CHECK(output_type(*graph, at + ".norm1") == type_of(i == 1));
    CHECK(weight_type(*graph, at + ".attn.qkv") == type_of(i == 1));
    CHECK(output_type(*graph, at + ".attn") == type_of(i == 1));
    CHECK(weight_type(*graph, at + ".attn.proj") == type_of(i == 1));
    CHECK(output_type(*graph, at + ".norm2") == type_of(i == 0));
    CHECK(weight_type(*graph, at + ".mlp.fc1") == type_of(i == 0));
    CHECK(output_type(*graph, at + ".mlp.fc1") == type_of(i == 0));
    CHECK(weight_type(*graph, at + ".mlp.fc2") == type_of(i == 0));
  }
  CHECK(weight_type(*graph, "head") == DType::f16);
}

TEST_CASE("a model can start from a computed image, and be looked into") {
  ViTConfig config = preset("vit_tiny_patch16_224");
  config.depth = 3;
  ViTGraphOptions options{.batch = 2};
  options.image = [](Graph& graph) {
    return scale(graph, "brighter", graph.input("pixels", {2, 3, 224, 224}), 2);
  };
  options.taps[1] = {.keeps = {.lse = true}, .look = [](GraphBuilder& builder, const BlockValues& values) {
                       builder.graph().output(values.attention.lse, "lse");
                     }};
  const auto graph = make_vit_graph(config, options);
  CHECK(graph->nodes().front().name == "brighter");
  CHECK(graph->value(node_named(*graph, "patch_embed").inputs[0]).name == "brighter");
  CHECK(graph->value(graph->find("lse")).shape == Shape{2, 3, 197});
  CHECK(node_named(*graph, "blocks.1.attn").attributes.flag("store_lse"));
  CHECK_FALSE(node_named(*graph, "blocks.0.attn").attributes.flag("store_lse"));
  CHECK(graph->with_role(Role::output).size() == 2);

  options.image = [](Graph& other) { return other.input("pixels", {2, 3, 224, 225}); };
  CHECK_THROWS_AS(make_vit_graph(config, options), Error);
}

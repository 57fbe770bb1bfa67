// Models of every kind can be differentiated: the gradient of each parameter is there, and small ones can be
// planned on any device. What the numbers are, is for the tests of operators and of parity.
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "model/vit/presets.h"
#include "model/vit/vit_graph.h"
#include "runtime/graph/autodiff.h"
#include "runtime/graph/op.h"
#include "runtime/graph/plan.h"
#include "runtime/ops/training/cross_entropy.h"
#include "tests/support/made_up/made_up_device.h"

namespace vitrine {
namespace {

ViTConfig small() {
  ViTConfig config;
  config.image_height = 22;  // a line is left over
  config.image_width = 28;
  config.patch_height = 7;
  config.patch_width = 4;
  config.dim = 24;
  config.depth = 2;
  config.heads = 3;
  config.classes = 10;
  return config;
}

struct Named {
  std::string name;
  ViTConfig config;
};

// Each says one thing that differs from small().
std::vector<Named> kinds() {
  std::vector<Named> all{{"plain", small()}};
  const auto with = [&](const std::string& assignments) {
    Named& kind = all.emplace_back(assignments, small());
    for (size_t at = 0; at < assignments.size();) {
      const size_t end = std::min(assignments.find(' ', at), assignments.size());
      set_field(kind.config, assignments.substr(at, end - at));
      at = end + 1;
    }
  };
  for (const char* activation : {"gelu", "gelu_tanh", "gelu_quick", "silu", "tanh"}) {
    with("activation=" + std::string(activation));
    with("mlp=swiglu activation=" + std::string(activation));
  }
  with("patch_bias=false");
  with("patch_norm=true pre_norm=true");
  with("class_token=false pool=mean");
  with("class_token=false positions=none pool=mean final_norm=false fc_norm=true");
  with("positions=sincos");
  for (const char* span : {"patches", "class_and_patches", "all"}) {
    with("registers=3 position_span=" + std::string(span));
    with("distillation_token=true distilled_head=true registers=2 position_span=" + std::string(span));
  }
  with("key_width=5 value_width=7");
  with("qkv_bias=false");
  with("per_head_maps=true projection=false");
  with("per_head_maps=true projection=false qkv_bias=false");
  with("per_head_maps=true key_width=3 value_width=5");
  with("projection=false");
  with("projection_bias=false mlp_bias=false");
  with("rotary=halves positions=none registers=2 key_bias=false");
  with("rotary=neighbours key_width=4 value_width=6");
  with("rotary=neighbours rotary_learned=true head_norm=true");
  with("rotary=halves per_head_maps=true projection=false");
  with("attention_norm=true mlp_norm=true head_norm=true post_norm=true");
  with("pool=attention pool_prefix=true pool_heads=4 pool_hidden=20 mlp=swiglu activation=silu");
  with("pool=attention class_token=false pool_query=false pool_bias=false pool_mlp=false norm=rms");
  with("detection_tokens=3");
  with("detection_tokens=3 block_positions=true pool=mean");
  with("detection_tokens=2 positions=none class_token=false pool=mean");
  with("distillation_token=true registers=1 pool=prefix fc_norm=true");
  with("pool=first class_token=false fc_norm=true");
  with("positions=sincos_grid class_token=false pool=mean");
  with("rotary=halves rotary_class=true rotary_alternating=true");
  with("pool=mean pool_prefix=true");
  with("norm=rms layer_scale=true mlp_scale=false head_norm=true");
  with("relative_bias=own positions=none");
  with("relative_bias=shared relative_hidden=20");
  with("layer_scale=true");
  with("block=parallel layer_scale=true norm=rms head_norm=true");
  with("block=parallel mlp=swiglu activation=silu projection_bias=false stochastic_depth=0.2");
  with("branches=2");
  with("attention=talking_heads");
  with("attention=talking_heads class_blocks=2 position_span=patches layer_scale=true pool=token");
  with("branches=3 layer_scale=true attention_norm=true mlp_norm=true");
  with("pool=mean");
  with("pool=token_and_mean");
  with("pool=attention");
  with("pool=attention class_token=false fc_norm=true");
  with("fc_norm=true");
  with("final_norm=false");
  with("representation_size=17");
  with("embedding_size=13");
  with("embedding_size=13 classes=0");
  with("classes=0");
  with("softmax_output=true");
  with("depth=1 dim=8 heads=2 dropout=0.1 attention_dropout=0.1 stochastic_depth=0.1");
  return all;
}

// As a training step begins: the model, its loss, and the gradients of all that is learned.
std::shared_ptr<const Graph> check_gradients_of(const ViTConfig& config) {
  Graph graph = plain_graph(*make_vit_graph(config, {.batch = 3}));
  const ValueId result = graph.find(name_of(natural_result(config)));
  const ValueId y = graph.with_role(Role::output).front();
  REQUIRE(result == y);
  std::vector<ValueId> wrt;
  for (const Parameter& parameter : parameters_of(config)) {
    // Masks are for what is being trained; of what lies aside, fixed ones are made.
    if (parameter.aside || parameter.module == Module::qkv_mask) continue;
    if (!parameter.fixed) wrt.push_back(graph.find(parameter.name));
    REQUIRE(bool(graph.find(parameter.name)));
  }
  std::vector<GradientSeed> seeds;
  if (config.classes) {
    const ValueId losses = cross_entropy(graph, "loss", y, graph.input("labels", {3}, DType::u32));
    seeds.push_back({losses, graph.input("weights", {3})});
  } else {
    seeds.push_back({y, graph.input("dy", graph.value(y).shape)});
  }
  const std::vector<ValueId> gradients = add_gradients(graph, seeds, wrt);
  for (size_t i = 0; i < wrt.size(); ++i) {
    INFO(graph.value(wrt[i]).name);
    REQUIRE(bool(gradients[i]));
    CHECK(graph.value(gradients[i]).shape == graph.value(wrt[i]).shape);
    CHECK(graph.value(gradients[i]).role == Role::intermediate);
    graph.output(gradients[i], graph.value(wrt[i]).name + ".gradient");
  }
  return std::make_shared<const Graph>(std::move(graph));
}

TEST_CASE("the gradient of every parameter is there, whatever a model is made of") {
  for (const Named& kind : kinds()) {
    INFO(kind.name);
    CHECK_NOTHROW(kind.config.validate("test"));
    const auto graph = check_gradients_of(kind.config);
    for (const Capabilities& device : {test::plain_gpu(), test::rich_gpu(), test::software_driver()})
      CHECK_FALSE(make_plan(graph, device).steps.empty());
  }
}

TEST_CASE("the gradient of every parameter of every preset is there") {
  for (const std::string_view name : preset_names()) {
    INFO(name);
    ViTConfig config = preset(name);
    config.depth = std::min<uint64_t>(config.depth, 2);
    check_gradients_of(config);
  }
}

TEST_CASE("the gradient of an image goes through a model, too") {
  Graph graph = plain_graph(*make_vit_graph(small(), {.batch = 3}));
  const ValueId image = graph.find("image"), y = graph.find("logits");
  const ValueId dy = graph.input("dy", graph.value(y).shape);
  const auto gradients = add_gradients(graph, {{{y, dy}}}, std::vector{image});
  REQUIRE(bool(gradients[0]));
  CHECK(graph.value(gradients[0]).shape == graph.value(image).shape);
}

}  // namespace
}  // namespace vitrine

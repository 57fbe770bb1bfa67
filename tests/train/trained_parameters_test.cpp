// Which parameters are trained, and what of a step is left for them.
#include "train/trained_parameters.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "runtime/graph/plan.h"
#include "runtime/util/error.h"
#include "tests/support/made_up/made_up_device.h"
#include "train/parameter_layout.h"
#include "train/training_graph.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

TrainConfig three_blocks(const std::string& train) {
  TrainConfig config;
  config.model = {.image_height = 8,
                  .image_width = 8,
                  .patch_height = 4,
                  .patch_width = 4,
                  .dim = 24,
                  .depth = 3,
                  .heads = 2,
                  .classes = 5};
  config.train = train;
  config.batch_size = 4;
  return config;
}

std::vector<std::string> names_of(const std::string& train) {
  std::vector<std::string> names;
  for (const Parameter& parameter : trained_parameters(three_blocks(train))) names.push_back(parameter.name);
  return names;
}

// Products of a step's derivative, and what its states take.
size_t gradient_nodes(const Graph& graph, std::string_view prefix) {
  return static_cast<size_t>(std::ranges::count_if(graph.nodes(), [&](const Node& node) {
    return node.name.starts_with(prefix) && node.name.find(".grad.") != std::string::npos;
  }));
}

TEST_CASE("patterns of names match all of a name") {
  struct Case {
    const char *name, *pattern;
    bool fits;
  };
  for (const auto& [name, pattern, fits] :
       {Case{"head.weight", "head.weight", true}, Case{"head.weight", "head", false},
        Case{"head.weight", "head*", true}, Case{"head.weight", "*", true},
        Case{"head.weight", "*weight", true}, Case{"head.weight", "*bias", false},
        Case{"blocks.11.attn.qkv.bias", "blocks.1*.attn.*.bias", true},
        Case{"blocks.1.norm1.bias", "blocks.?.norm?.*", true},
        Case{"blocks.11.norm1.bias", "blocks.?.norm?.*", false}, Case{"", "", true}, Case{"", "*", true},
        Case{"", "?", false}, Case{"a", "", false}, Case{"aab", "*ab", true}, Case{"abab", "*ab", true},
        Case{"aba", "*ab", false}, Case{"abc", "a**c", true}}) {
    INFO(name << " and " << pattern);
    CHECK(fits_pattern(name, pattern) == fits);
  }
}

TEST_CASE("the head, the last blocks and patterns choose what is trained") {
  const std::vector<std::string> head{"head.weight", "head.bias"};
  CHECK(names_of("head") == head);
  const auto last = names_of("last:1");
  CHECK(std::ranges::find(last, "blocks.2.norm1.weight") != last.end());
  CHECK(std::ranges::find(last, "norm.bias") != last.end());
  CHECK(std::ranges::find(last, "head.weight") != last.end());
  CHECK(std::ranges::none_of(last, [](const std::string& name) {
    return name.starts_with("blocks.0.") || name.starts_with("blocks.1.") || name == "cls_token" ||
           name == "pos_embed" || name.starts_with("patch_embed");
  }));
  CHECK(names_of("*.bias,head.*").size() == names_of("*.bias").size() + 1);
  CHECK(names_of("all").size() == parameters_of(three_blocks("all").model).size());
  ViTConfig distilled = three_blocks("head").model;
  distilled.distillation_token = distilled.distilled_head = true;
  CHECK(trained_parameters({.model = distilled, .train = "head"}).size() == 4);
}

TEST_CASE("what can't be trained is said by name") {
  const auto message = [](const std::string& train) {
    try {
      trained_parameters(three_blocks(train), "--train");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  CHECK_THAT(message("head.*,blocks.3.*"), ContainsSubstring("--train") && ContainsSubstring("blocks.3.*"));
  CHECK_THAT(message("last:4"), ContainsSubstring("last:4") && ContainsSubstring("3 blocks"));
  for (const char* text : {"last:0", "last:", "last:x", "last:-1", "last:1x"})
    CHECK_THAT(message(text), ContainsSubstring(text) && ContainsSubstring("last:N"));
  CHECK_THAT(message(""), ContainsSubstring("expected all, head"));
  CHECK_THAT(message("head.*,"), ContainsSubstring("expected all, head"));
}

TEST_CASE("convolutions in front of the patches stay as they are, and all can't be trained") {
  TrainConfig config = three_blocks("all");
  config.model.image_height = config.model.image_width = 16;
  config.model.patch_height = config.model.patch_width = 8;
  config.model.stem = Stem::convolutions;
  config.model.stem_width = 6;
  try {
    trained_parameters(config);
    FAIL("was not refused");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("convolutions in front") && ContainsSubstring("last:N"));
  }
  for (const char* set : {"last:1", "head", "blocks.*,head.*"}) {
    config.train = set;
    const std::vector<Parameter> trained = trained_parameters(config);
    CHECK(!trained.empty());
    CHECK(std::ranges::none_of(trained, [](const Parameter& parameter) {
      return parameter.name.starts_with("patch_embed.backbone") ||
             parameter.name == "patch_embed.proj.weight";
    }));
  }
  config.train = "patch_embed.*";
  CHECK_THROWS_AS(trained_parameters(config), Error);
}

TEST_CASE("patches that overlap stay as they are, and all can't be trained") {
  TrainConfig config = three_blocks("all");
  config.model.patch_height = config.model.patch_width = 8;
  config.model.image_height = config.model.image_width = 20;
  config.model.patch_stride_height = 5;
  config.model.patch_stride_width = 6;
  config.model.validate("the test");
  try {
    trained_parameters(config);
    FAIL("was not refused");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("patches that overlap") && ContainsSubstring("last:N"));
  }
  config.train = "last:1";
  CHECK(std::ranges::none_of(trained_parameters(config), [](const Parameter& parameter) {
    return parameter.name.starts_with("patch_embed");
  }));
}

TEST_CASE("of an encoder with windows and a neck the head alone is trained, and the rest refused by name") {
  TrainConfig config = three_blocks("head");
  ViTConfig& model = config.model;
  model.image_height = model.image_width = 16;
  model.patch_height = model.patch_width = 4;
  model.class_token = model.final_norm = false;
  model.pool = Pool::mean;
  model.relative_bias = RelativeBias::decomposed;
  model.window = 3;
  model.global_blocks = {1};
  model.neck = 8;
  model.validate("the test");
  for (const Parameter& parameter : trained_parameters(config)) CHECK(parameter.name.starts_with("head."));
  const auto refusal = [&](const char* train) -> std::string {
    config.train = train;
    try {
      trained_parameters(config);
    } catch (const Error& error) {
      return error.what();
    }
    return "not refused";
  };
  for (const char* train : {"all", "last:1", "blocks.2.*,head.*"})
    CHECK_THAT(refusal(train), ContainsSubstring("attention in windows"));
  for (const char* train : {"neck.*,head.*", "neck.0.*", "neck.1.*", "neck.2.*"})
    CHECK_THAT(refusal(train), ContainsSubstring("neck's convolution"));
  CHECK(refusal("neck.3.*,head.*") == "not refused");
}

TEST_CASE(
    "of a model with differential attention what lies behind the blocks is trained, and the rest refused") {
  TrainConfig config = three_blocks("head");
  config.model.attention = AttentionKind::differential;
  config.lora.rank = 2;
  config.lora.family = "timm";
  config.model.validate("the test");
  for (const Parameter& parameter : trained_parameters(config)) CHECK(parameter.name.starts_with("head."));
  config.train = "norm.*,head.*";
  CHECK(trained_parameters(config).size() == 4);
  for (const char* train : {"all", "last:1", "lora", "blocks.2.attn.sub_norm.*,head.*"}) {
    config.train = train;
    try {
      trained_parameters(config);
      FAIL("was not refused");
    } catch (const Error& error) {
      CHECK_THAT(error.what(), ContainsSubstring("differential attention can't be trained yet"));
    }
  }
}

TEST_CASE("what isn't trained has no state, no gradient and no way back through it") {
  const auto graph_of = [](const std::string& train) {
    const TrainConfig config = three_blocks(train);
    return make_step_graph(config, layout_of(config));
  };
  const auto all = graph_of("all"), head = graph_of("head"), last = graph_of("last:1"),
             norms = graph_of("blocks.1.norm2.*");
  for (const char* block : {"blocks.0", "blocks.1", "blocks.2"}) {
    CHECK(gradient_nodes(*all, block) > 0);
    CHECK(gradient_nodes(*head, block) == 0);
  }
  CHECK(gradient_nodes(*last, "blocks.0") == 0);
  CHECK(gradient_nodes(*last, "blocks.1") == 0);
  CHECK(gradient_nodes(*last, "blocks.2") > 0);
  CHECK(gradient_nodes(*norms, "blocks.0") == 0);
  CHECK(gradient_nodes(*norms, "blocks.1.attn") == 0);
  CHECK(gradient_nodes(*norms, "blocks.2") > 0);
  // Of a frozen weight the step reads a constant, of a trained one a state.
  CHECK(head->value(head->find("blocks.0.mlp.fc1.weight")).role == Role::constant);
  CHECK(head->value(head->find("head.weight")).role == Role::state);
  const TrainConfig config = three_blocks("head");
  CHECK(layout_of(config).elements < 256);
  CHECK(layout_of(config).elements * 50 < layout_of(config.model).elements);
  // From features there is no trunk at all.
  const auto features = make_step_graph(config, layout_of(config), {.from_features = true});
  CHECK_FALSE(features->find("image"));
  CHECK(features->value(features->find("features")).shape == Shape{4, 24});
  CHECK(features->with_role(Role::constant).empty());
  const Capabilities device = test::plain_gpu();
  CHECK(make_plan(last, device).arena_bytes() < make_plan(all, device).arena_bytes());
}

TEST_CASE("maps of each head are one product only where all three are trained") {
  TrainConfig config = three_blocks("blocks.0.attn.k.*,head.*");
  config.model.per_head_maps = true;
  const ParameterLayout layout = layout_of(config);
  for (const ParameterPlace& place : layout.places) CHECK(place.first % 64 == 0);
  CHECK_NOTHROW(make_step_graph(config, layout));
  config.train = "all";
  const ParameterLayout whole = layout_of(config);
  CHECK(whole.find("blocks.1.attn.k.weight").first ==
        whole.find("blocks.1.attn.q.weight").first +
            whole.find("blocks.1.attn.q.weight").parameter.shape.elements());
}

// timm's param_groups_layer_decay: the final norm learns as fast as the last block, the stem slowest.
TEST_CASE("with layer decay each layer has a learning rate of its own") {
  TrainConfig config = three_blocks("all");
  config.layer_decay = 0.5;
  const ParameterLayout layout = layout_of(config);
  REQUIRE(layout.groups.size() == 5);
  const auto rate_of = [&](const char* name) {
    const uint64_t first = layout.find(name).first;
    const auto group = std::ranges::find_if(layout.groups, [&](const UpdateGroup& each) {
      return first >= each.first && first < each.first + each.elements;
    });
    REQUIRE(group != layout.groups.end());
    const bool matrix = layout.find(name).parameter.is_matrix();
    CHECK((first - group->first < group->decay_elements) == matrix);
    return group->rate;
  };
  CHECK(rate_of("head.weight") == 1);
  CHECK(rate_of("norm.weight") == 0.5);
  CHECK(rate_of("blocks.2.mlp.fc2.bias") == 0.5);
  CHECK(rate_of("blocks.1.attn.qkv.weight") == 0.25);
  CHECK(rate_of("blocks.0.norm1.weight") == 0.125);
  CHECK(rate_of("pos_embed") == 0.0625);
  CHECK(rate_of("cls_token") == 0.0625);
  CHECK(rate_of("patch_embed.proj.weight") == 0.0625);
  uint64_t end = 0;
  for (const UpdateGroup& group : layout.groups) {
    CHECK(group.first == end);
    end += group.elements;
  }
  CHECK(end == layout.elements);
  config.train = "last:1";
  CHECK(layout_of(config).groups.size() == 2);
}

TEST_CASE("features stay the same only for a head behind which nothing is drawn") {
  TrainConfig config = three_blocks("head");
  CHECK(trains_on_fixed_features(config));
  const auto differs = [&](auto change) {
    TrainConfig other = config;
    change(other);
    CHECK_FALSE(trains_on_fixed_features(other));
  };
  differs([](TrainConfig& c) { c.train = "head.*"; });
  differs([](TrainConfig& c) { c.flip = true; });
  differs([](TrainConfig& c) { c.crop_padding = 1; });
  differs([](TrainConfig& c) { c.model.dropout = 0.1; });
  differs([](TrainConfig& c) { c.model.attention_dropout = 0.1; });
  differs([](TrainConfig& c) { c.model.stochastic_depth = 0.1; });
}

TEST_CASE("fields of fine-tuning are read, written and left out where nothing is asked for") {
  const auto plain = to_json(three_blocks("all"));
  for (const char* field : {"train", "head_init", "layer_decay", "ema_decay", "warmup_epochs"})
    CHECK_FALSE(plain.contains(field));
  TrainConfig config = three_blocks("last:2");
  config.head_init = HeadInit::zero;
  config.layer_decay = 0.75;
  config.ema_decay = 0.99;
  config.recipe.warmup_epochs = 1.5;
  CHECK(train_config_of(nlohmann::json::parse(to_json(config).dump()), "the test") == config);

  const auto refused = [](const std::string& fields) {
    try {
      train_config_of(
          nlohmann::json::parse(
              R"({"model": {"image_size": 8, "patch_size": 4, "dim": 24, "depth": 3, "heads": 2}, )" +
              fields + "}"),
          "c.json");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  CHECK_THAT(refused(R"("train": "last:4")"), ContainsSubstring("c.json") && ContainsSubstring("last:4"));
  CHECK_THAT(refused(R"("layer_decay": 0)"), ContainsSubstring("layer_decay"));
  CHECK_THAT(refused(R"("layer_decay": 1.5)"), ContainsSubstring("layer_decay"));
  CHECK_THAT(refused(R"("ema_decay": 1)"), ContainsSubstring("ema_decay"));
  CHECK_THAT(refused(R"("head_init": "ones")"), ContainsSubstring("zero, normal"));
  CHECK_THAT(refused(R"("warmup_epochs": 1, "warmup_steps": 3)"), ContainsSubstring("warmup_epochs"));
}

TEST_CASE("the learning rate rises over epochs") {
  TrainConfig config{.lr = 2, .epochs = 10, .schedule = Schedule::cosine};
  config.recipe.warmup_epochs = 0.5;
  CHECK(learning_rate(config, 0, 80) == 0.5);
  CHECK(learning_rate(config, 3, 80) == 2);
  CHECK(learning_rate(config, 4, 80) == 2);
  CHECK_THAT(learning_rate(config, 42, 80), WithinRel(1.0, 1e-12));
}

}  // namespace
}  // namespace vitrine

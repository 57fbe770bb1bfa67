// timm's config.json: which architectures and arguments are known, and that nothing else is passed over.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/files/config_json.h"
#include "model/files/weights.h"
#include "model/vit/presets.h"
#include "tests/support/temporary_folder.h"

using namespace vitrine;
using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

namespace {

// What is read of a config beside any checkpoint of timm's: its tensors decide nothing.
ViTConfig read(const Json& json, ConfigRemarks* remarks = nullptr) {
  ViTConfig config = read_config(json, {}, {&family_named("timm"), ""}, "config.json", {}, remarks);
  config.validate("config.json");
  return config;
}

ViTConfig read_with(const Json& arguments, const char* architecture = "vit_tiny_patch16_224") {
  return read({{"architecture", architecture}, {"model_args", arguments}});
}

std::string refusal(const Json& json) {
  try {
    read(json);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    return error.what();
  }
  return "accepted";
}

std::string refusal_of(const char* key, const Json& value,
                       const char* architecture = "vit_tiny_patch16_224") {
  return refusal({{"architecture", architecture}, {"model_args", {{key, value}}}});
}

void check_like(ViTConfig found, const char* expected) {
  found.position_resize = preset(expected).position_resize;
  CHECK(to_string(found) == to_string(preset(expected)));
}

}  // namespace

TEST_CASE("timm's config.json names an architecture and what differs from it") {
  Json json = {
      {"architecture", "vit_tiny_patch16_224"},
      {"num_classes", 7},
      {"global_pool", "avg"},
      {"model_args", {{"img_size", {160, 320}}, {"fc_norm", false}, {"init_values", 0.1}, {"reg_tokens", 2}}},
      {"pretrained_cfg", {{"input_size", {3, 160, 320}}, {"num_classes", 1000}}}};
  ConfigRemarks remarks;
  const ViTConfig config = read(json, &remarks);
  CHECK(remarks.assumed.empty());
  CHECK(remarks.untrained.empty());
  CHECK(config.classes == 7);
  CHECK(config.depth == 12);
  CHECK(config.image_width == 320);
  CHECK(config.pool == Pool::mean);
  CHECK(config.final_norm);
  CHECK_FALSE(config.fc_norm);
  CHECK(config.layer_scale);
  CHECK(config.registers == 2);
  CHECK(config.position_resize == PositionResize::bicubic_antialias);
  json["model_args"]["pre_norm"] = true;
  CHECK_FALSE(read(json).patch_bias);
  json["model_args"]["num_classes"] = 5;  // what the model was made with goes before what is said of it
  CHECK(read(json).classes == 5);
  json["global_pool"] = "max";
  CHECK_THAT(refusal(json), ContainsSubstring("global_pool"));
  // Saying again how an architecture pools does not move its norm.
  json = {{"architecture", "vit_base_patch16_gap_224"},
          {"global_pool", "avg"},
          {"model_args", {{"global_pool", "avg"}}}};
  CHECK(read(json).final_norm);
  // A width of its own keeps the architecture's ratio.
  CHECK(read_with({{"embed_dim", 576}}, "vit_so400m_patch14_siglip_224").mlp_width() == 2152);
}

TEST_CASE("a model of timm's that transformers wraps is read as timm's own") {
  const Json own = {
      {"architecture", "vit_tiny_patch16_224"}, {"num_classes", 7}, {"model_args", {{"depth", 2}}}};
  Json wrapped = own;
  wrapped["model_type"] = "timm_wrapper";
  CHECK(read(wrapped) == read(own));
  const ViTConfig bare = read({{"model_type", "timm_backbone"}, {"backbone", "vit_tiny_patch16_224"}});
  CHECK(bare.dim == 192);
  CHECK(bare.classes == 0);
  CHECK_FALSE(bare.final_norm);
  CHECK_THAT(refusal({{"model_type", "timm_backbone"}, {"backbone", "resnet50"}}),
             ContainsSubstring("\"backbone\" is \"resnet50\""));
}

TEST_CASE("an architecture of timm's that isn't computed is refused by its name") {
  for (const char* name : {"vit_base_r101_s16_224", "samvit_wonderful_patch16", "cait_wonderful_224",
                           "resnet50", "vit_wonderful", "vit_base", "", "patch16", "vit_b_64",
                           "vit_base_patch16_224_224", "vit_wonderful_patch16_224_in21k"}) {
    INFO(name);
    CHECK_THAT(refusal({{"architecture", name}, {"num_classes", 1000}}),
               ContainsSubstring("config.json: \"architecture\" is \"" + std::string(name) + '"'));
  }
  CHECK_THAT(refusal({{"architecture", 3}}), ContainsSubstring("a string"));
  // SigLIP's sizes differ in the activation: an unlisted one may have either.
  CHECK_THAT(refusal({{"architecture", "vit_large_patch16_siglip_320"}}), ContainsSubstring("siglip_320"));
}

TEST_CASE("what no tensor shows of an architecture comes with its name") {
  ViTConfig config = read({{"architecture", "vit_base_patch16_rpn_224"}});
  CHECK(config.post_norm);
  CHECK(config.rotary == Rotary::none);
  config = read({{"architecture", "vit_pe_core_base_patch16_224.fb"}, {"num_classes", 0}});
  CHECK(config.rotary == Rotary::neighbours);
  CHECK(config.rotary_reference == 14);
  CHECK(config.rotary_offset == 1);
  CHECK(config.rotary_columns_first);
  CHECK(config.pool_prefix);
  CHECK(config.pool_heads == 8);
  config = read({{"architecture", "vit_7b_patch16_dinov3"}, {"global_pool", "token"}});
  CHECK(config.rotary == Rotary::halves);
  CHECK(config.rotary_centered);
  CHECK(config.pool == Pool::token);
  CHECK(config.final_norm);
}

TEST_CASE("an architecture that differs from a listed one in sizes is taken for it, in words") {
  ConfigRemarks remarks;
  ViTConfig config = read({{"architecture", "vit_base_patch20_320.mine"}}, &remarks);
  CHECK(config.patch_height == 20);
  CHECK(config.image_width == 320);
  CHECK(config.heads == 12);
  REQUIRE(remarks.assumed.size() == 1);
  CHECK_THAT(remarks.assumed[0], ContainsSubstring("\"vit_base_patch20_320.mine\"") &&
                                     ContainsSubstring("vit_base_patch32_224") &&
                                     ContainsSubstring("patches of 20x20 and images of 320x320"));
  // The name's size is less than what the file says.
  remarks = {};
  config = read({{"architecture", "vit_small_patch14_reg4_dinov2"}, {"model_args", {{"img_size", 448}}}},
                &remarks);
  CHECK(config.image_height == 448);
  CHECK(config.registers == 4);
  CHECK(remarks.assumed.empty());  // a listed one is taken for nothing
  CHECK(read({{"architecture", "deit3_base_patch16_256"}, {"model_args", {{"img_size", 448}}}}, &remarks)
            .image_height == 448);
  CHECK(remarks.assumed.size() == 1);

  // Names of timm's before weights had tags.
  remarks = {};
  check_like(read({{"architecture", "vit_base_patch16_224_in21k"}}, &remarks), "vit_base_patch16_224");
  check_like(read({{"architecture", "deit3_base_patch16_384_in21ft1k"}}, &remarks), "deit3_base_patch16_384");
  REQUIRE(remarks.assumed.size() == 2);
  CHECK_THAT(remarks.assumed[1], ContainsSubstring("taken for deit3_base_patch16_384"));
}

TEST_CASE("FlexiViT's positions are resampled in its own way") {
  const ViTConfig config = read({{"architecture", "flexivit_base.1200ep_in1k"}});
  CHECK(config.position_resize == PositionResize::bilinear);
  CHECK(config.position_span == PositionSpan::patches);
  CHECK(config.image_height == 240);
}

TEST_CASE("an argument of timm's that isn't known is refused by its name") {
  CHECK_THAT(refusal_of("num_parallel", 2), ContainsSubstring("config.json (model_args)") &&
                                                ContainsSubstring("found an argument \"num_parallel\""));
  CHECK_THAT(refusal_of("embed_dims\x1b[2J", 2), ContainsSubstring("embed_dims\\"));
  const std::pair<const char*, Json> others[] = {
      {"block_fn", "ResPostBlock"},   {"mlp_layer", "SwiGLU"},   {"attn_layer", "diff"},
      {"embed_layer", "HybridEmbed"}, {"norm_layer", "rmsnorm"}, {"embed_norm_layer", "layernorm"},
      {"act_layer", "mish"},          {"qk_norm", true},         {"scale_attn_norm", true},
      {"scale_mlp_norm", true},       {"proj_bias", false},      {"pool_include_prefix", true},
      {"dynamic_img_pad", true},      {"use_naflex", true},      {"pos_embed", "rope"},
      {"global_pool", "prr"},         {"qk_norm", "yes"},        {"drop_rate", 1.5},
  };
  for (const auto& [key, value] : others) {
    INFO(key);
    CHECK_THAT(refusal_of(key, value), ContainsSubstring("\"" + std::string(key) + "\" is " + value.dump()));
  }
}

TEST_CASE("an argument with timm's default changes nothing") {
  const std::pair<const char*, Json> defaults[] = {
      {"block_fn", "Block"},
      {"mlp_layer", "Mlp"},
      {"attn_layer", "attn"},
      {"embed_layer", "PatchEmbed"},
      {"norm_layer", "layernorm"},
      {"norm_layer", nullptr},
      {"embed_norm_layer", nullptr},
      {"act_layer", "gelu"},
      {"act_layer", nullptr},
      {"qk_norm", false},
      {"scale_attn_norm", false},
      {"scale_mlp_norm", false},
      {"proj_bias", true},
      {"pool_include_prefix", false},
      {"dynamic_img_pad", false},
      {"dynamic_img_size", true},
      {"strict_img_size", false},
      {"use_naflex", false},
      {"pos_embed", "learn"},
      {"weight_init", "jax"},
      {"fix_init", true},
      {"drop_rate", 0.0},
      {"patch_drop_rate", 0},
      {"num_classes", 1000},
      {"in_chans", 3},
      {"global_pool", "token"},
      {"qk_scale", nullptr},
  };
  for (const auto& [key, value] : defaults) {
    INFO(key << " " << value.dump());
    check_like(read_with({{key, value}}), "vit_tiny_patch16_224");
  }
  CHECK(read_with({{"pos_embed", "none"}}).positions == Positions::none);
  // A null takes the place of what the architecture has of its own.
  const char* quick = "vit_base_patch16_clip_quickgelu_224";
  CHECK(read_with({{"depth", 12}}, quick).activation == Activation::gelu_quick);
  CHECK(read_with({{"act_layer", nullptr}}, quick).activation == Activation::gelu);
  CHECK(read_with({{"depth", 12}}, quick).eps == 1e-5);
  CHECK(read_with({{"norm_layer", nullptr}}, quick).eps == 1e-6);
  CHECK_THAT(refusal_of("mlp_layer", "Mlp", "vit_giant_patch14_dinov2"), ContainsSubstring("SwiGLUPacked"));
}

TEST_CASE("each of timm's rates of dropout acts where timm has it, or is named") {
  const auto remarks_of = [](const Json& arguments) {
    ConfigRemarks remarks;
    read({{"architecture", "vit_tiny_patch16_224"}, {"model_args", arguments}}, &remarks);
    CHECK(remarks.assumed.empty());
    return remarks.untrained;
  };
  // In front of the head, which isn't dropout everywhere.
  CHECK(read_with({{"drop_rate", 0.25}}).dropout == 0);
  REQUIRE(remarks_of({{"drop_rate", 0.25}}).size() == 1);
  CHECK_THAT(remarks_of({{"drop_rate", 0.25}})[0],
             ContainsSubstring("\"drop_rate\" is 0.25") && ContainsSubstring("head"));
  CHECK_THAT(remarks_of({{"patch_drop_rate", 0.5}}).at(0), ContainsSubstring("\"patch_drop_rate\" is 0.5"));

  const Json rates = {
      {"pos_drop_rate", 0.1}, {"proj_drop_rate", 0.1}, {"attn_drop_rate", 0.2}, {"drop_path_rate", 0.3}};
  const ViTConfig config = read_with(rates);
  CHECK(config.dropout == 0.1);
  CHECK(config.attention_dropout == 0.2);
  CHECK(config.stochastic_depth == 0.3);
  CHECK(remarks_of(rates).empty());
  // There is one rate for both.
  CHECK(read_with({{"proj_drop_rate", 0.1}}).dropout == 0);
  CHECK_THAT(remarks_of({{"proj_drop_rate", 0.1}}).at(0), ContainsSubstring("\"proj_drop_rate\" is 0.1"));
  CHECK(remarks_of({{"proj_drop_rate", 0.1}, {"pos_drop_rate", 0.2}}).size() == 2);
}

TEST_CASE("a model of timm's is opened with a warning where something was assumed, and refused otherwise") {
  const auto fixture = std::filesystem::path(VITRINE_TEST_DATA) / "parity/fixtures/timm_vit";
  const test::TemporaryFolder folder;
  std::filesystem::copy_file(fixture / "model.safetensors", folder / "model.safetensors");
  Json json = Json::parse(test::read_whole_file(fixture / "config.json"));
  std::vector<std::string> warnings;
  const auto open = [&](const std::filesystem::path& model, std::vector<std::string> set = {}) {
    folder.file("config.json", json.dump());
    warnings.clear();
    return open_model({.model = model, .set = std::move(set)},
                      [&](const std::string& sentence) { warnings.push_back(sentence); });
  };
  const ViTConfig known = open(folder.path()).config;
  CHECK(warnings.empty());
  json["architecture"] = "vit_tiny_patch8_32";
  CHECK(open(folder.path()).config == known);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0],
             ContainsSubstring("vit_tiny_patch8_32") && ContainsSubstring("vit_tiny_patch16_224"));
  json["model_args"]["drop_rate"] = 0.1;
  const Model model = open(folder.path());
  CHECK(model.config == known);
  CHECK(model.untrained.size() == 1);
  CHECK(warnings.size() == 1);  // of use to a training alone

  // Residuals that are normalised behind the branch have the same names and shapes.
  json["architecture"] = "vit_tiny_patch16_rpn_224";
  CHECK_THROWS_AS(open(folder.path()), Error);
  // The file alone says of itself what its names and shapes do.
  CHECK(open(folder / "model.safetensors", {"heads=3"}).config == known);
  CHECK(warnings.empty());
}

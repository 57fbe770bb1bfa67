// Towers that lie in transformers' larger models, most of them another model's under other names.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "model/families/wrappers.h"
#include "model/files/config_hugging_face.h"
#include "tests/support/checkpoint_shapes.h"

using namespace vitrine;
using namespace vitrine::test;
using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

namespace {

ViTConfig ovis2() {
  ViTConfig c = small();
  c.class_token = false;
  c.patch_norm = true;
  c.norm = NormKind::rms;
  c.mlp = MlpKind::swiglu;
  c.activation = Activation::silu;
  c.qkv_bias = c.projection_bias = c.mlp_bias = false;
  c.eps = 1e-5;
  c.heads = 1;
  c.position_resize = PositionResize::bicubic_antialias;
  c.pool = Pool::mean;
  return c;
}

ViTConfig git() {
  ViTConfig c = clip(0);
  c.final_norm = true;
  c.fc_norm = false;
  return c;
}

ViTConfig headless_siglip() {
  ViTConfig c = siglip();
  c.pool = Pool::mean;
  return c;
}

// Of a tower's fields as JSON, in the configuration of what it lies in.
Json within(const char* type, const char* key, Json tower) { return {{"model_type", type}, {key, tower}}; }

ViTConfig read(const Json& json, const ViTConfig& shapes, const char* family,
               ConfigRemarks* remarks = nullptr) {
  return read_config(json, checkpoint(shapes, family, ""), {&family_named(family), ""}, "config.json", {},
                     remarks);
}

std::string refused(const Json& json, const ViTConfig& shapes, const char* family) {
  return config_refusal(json, checkpoint(shapes, family, ""), {&family_named(family), ""});
}

}  // namespace

TEST_CASE("towers of larger models are told by their names") {
  ViTConfig bridgetower = git();
  check_read(checkpoint(bridgetower, "hf_bridgetower", "vision_model.visual."), "hf_bridgetower",
             bridgetower);
  check_read(checkpoint(ovis2(), "hf_ovis2", "transformer."), "hf_ovis2", ovis2());

  ViTConfig pixio = small();
  pixio.class_token = false;
  pixio.registers = 8;
  pixio.pool = Pool::prefix;
  const TensorShapes of_pixio = checkpoint(pixio, "hf_pixio", "");
  CHECK(of_pixio.at("embeddings.cls_token") == std::vector<uint64_t>{1, 8, 128});
  check_read(of_pixio, "hf_pixio", pixio);

  ViTConfig tips = small();
  tips.layer_scale = true;
  tips.registers = 1;
  tips.position_span = PositionSpan::class_and_patches;
  tips.position_resize = PositionResize::bilinear_antialias;
  check_read(checkpoint(tips, "hf_tipsv2", ""), "hf_tipsv2", tips);

  ViTConfig qianfan = small();
  qianfan.layer_scale = true;
  check_read(checkpoint(qianfan, "hf_qianfan", "vision_tower."), "hf_qianfan", qianfan);
}

TEST_CASE("a GIT's tower is a CLIP's by its names, but for what its configuration and its whole file say") {
  const TensorShapes tensors = checkpoint(git(), "hf_git", "vision_model.");
  CHECK(recognise(tensors, "m").family->name == "hf_clip");
  TensorShapes whole = checkpoint(git(), "hf_git", "git.image_encoder.vision_model.");
  whole["git.embeddings.word_embeddings.weight"] = {30522, 768};
  const Unwrapped unwrapped = unwrap(whole, "m");
  CHECK(family_within(unwrapped.outer) == "hf_git");
  CHECK(recognise(unwrapped.tensors, "m", family_within(unwrapped.outer)).family->name == "hf_git");
  CHECK(family_within("model.vision_tower.").empty());
  const Json json = within("git", "vision_config", {{"model_type", "git_vision_model"}});
  CHECK(said_family(json, "config.json") == "hf_git");
  const Naming naming = recognise(tensors, "m", "hf_git");
  CHECK(naming.family->name == "hf_git");
  const ViTConfig read = infer_config(tensors, naming, "m");
  check_same(read, git());
  CHECK_NOTHROW(match_tensors(tensors, read, naming, "m"));
}

TEST_CASE("a tower's configuration is found in what it lies in, with its type's defaults") {
  const ViTConfig kosmos = read(
      within("kosmos-2", "vision_config", {{"model_type", "kosmos_2_vision_model"}}), clip(0), "hf_clip");
  CHECK(kosmos.dim == 1024);
  CHECK(kosmos.depth == 24);
  CHECK(kosmos.patch_height == 14);
  CHECK(kosmos.activation == Activation::gelu_quick);
  CHECK(kosmos.position_offset == 0);

  const ViTConfig idefics =
      read(within("idefics", "vision_config", {{"model_type", "idefics_vision"}, {"embed_dim", 1280}}),
           clip(0), "hf_clip");
  CHECK(idefics.dim == 1280);
  CHECK(idefics.depth == 32);
  CHECK(idefics.mlp_width() == 5120);
  CHECK(idefics.activation == Activation::gelu);
  CHECK(idefics.position_offset == 0.1);

  CHECK(read(within("flava", "image_config", {{"model_type", "flava_image_model"}}), small(), "hf").eps ==
        1e-12);
  CHECK(read(within("depth_anything", "backbone_config", {{"model_type", "dinov2"}, {"hidden_size", 384}}),
             dinov2(0, 0), "hf_dinov2")
            .dim == 384);
  CHECK(read(within("vision-encoder-decoder", "encoder", {{"model_type", "vit"}, {"image_size", 384}}),
             small(), "hf")
            .image_height == 384);
}

TEST_CASE("what a larger model does with its classes is no classifier of its tower") {
  Json json = within("shieldgemma2", "vision_config", {{"model_type", "siglip_vision_model"}});
  json["architectures"] = {"ShieldGemma2ForImageClassification"};
  CHECK(read(json, siglip(), "hf_siglip").classes == 0);
}

TEST_CASE("towers whose places are fractions take the nearest position") {
  for (const char* type : {"idefics2_vision", "idefics3_vision", "smolvlm_vision"}) {
    const ViTConfig config = read({{"model_type", type}}, headless_siglip(), "hf_siglip");
    CHECK(config.position_resize == PositionResize::nearest);
    CHECK(config.pool == Pool::mean);
    CHECK(config.activation == Activation::gelu_tanh);
    // What can't be is left to who validates it.
    read({{"model_type", type}, {"patch_size", 0}}, headless_siglip(), "hf_siglip");
    read({{"model_type", type}, {"image_size", uint64_t{1} << 40}}, headless_siglip(), "hf_siglip");
  }
  for (const uint64_t side : {4, 8, 14, 27, 32, 70}) CHECK_FALSE(library_moves_places(side));
  for (const uint64_t side : {19, 25, 29, 31, 38}) CHECK(library_moves_places(side));
}

TEST_CASE("what these configurations ask for is computed or refused by its name") {
  const auto bridgetower = [](const char* key, const Json& value) {
    return Json{{"model_type", "bridgetower_vision_model"}, {key, value}};
  };
  CHECK(read(bridgetower("hidden_size", 1024), git(), "hf_bridgetower").heads == 16);
  CHECK(read(bridgetower("remove_last_layer", true), git(), "hf_bridgetower").depth == 11);
  CHECK_THAT(refused(bridgetower("share_layernorm", false), git(), "hf_bridgetower"),
             ContainsSubstring("\"share_layernorm\" is false"));

  CHECK(read({{"model_type", "dpt"}}, small(), "hf").position_resize == PositionResize::bilinear);
  CHECK_THAT(refused({{"model_type", "dpt"}, {"is_hybrid", true}}, small(), "hf"),
             ContainsSubstring("\"is_hybrid\" is true"));

  ViTConfig mgpstr = small();
  mgpstr.final_norm = false;
  mgpstr.patch_height = mgpstr.patch_width = 4;
  mgpstr.image_height = 32;
  mgpstr.image_width = 128;
  ConfigRemarks remarks;
  const ViTConfig strings =
      read({{"model_type", "mgp-str"}, {"architectures", {"MgpstrForSceneTextRecognition"}}}, mgpstr,
           "hf_mgpstr", &remarks);
  CHECK(strings.image_height == 32);
  CHECK(strings.image_width == 128);
  CHECK(strings.eps == 1e-5);
  REQUIRE(remarks.assumed.size() == 1);
  CHECK_THAT(remarks.assumed[0], ContainsSubstring("characters"));
  CHECK_THAT(refused({{"model_type", "mgp-str"}, {"distilled", true}}, mgpstr, "hf_mgpstr"),
             ContainsSubstring("\"distilled\" is true"));

  ViTConfig pixio = small();
  pixio.class_token = false;
  pixio.registers = 4;
  const ViTConfig mean =
      read({{"model_type", "pixio"}, {"n_cls_tokens", 4}, {"mlp_ratio", 2}}, pixio, "hf_pixio");
  CHECK(mean.registers == 4);
  CHECK(mean.mlp_width() == 2560);
  CHECK(mean.pool == Pool::prefix);
  CHECK_THAT(refused({{"model_type", "pixio"}, {"architectures", {"PixioBackbone"}}}, pixio, "hf_pixio"),
             ContainsSubstring("other norm"));
  CHECK_THAT(refused({{"model_type", "phi4_multimodal_vision"}}, siglip(), "hf_siglip"),
             ContainsSubstring("causal"));
  CHECK_THAT(
      refused({{"model_type", "tipsv2_vision_model"}, {"use_swiglu_ffn", true}}, dinov2(1, 0), "hf_tipsv2"),
      ContainsSubstring("\"use_swiglu_ffn\" is true"));
  CHECK_THAT(refused({{"model_type", "vitpose"}}, small(), "hf"),
             ContainsSubstring("patches that begin outside"));
}

TEST_CASE(
    "what lies beside a tower is left where a configuration says that there is more, and never within it") {
  Json json = within("idefics", "vision_config", {{"model_type", "idefics_vision"}});
  CHECK(holds_more_than_a_tower(json, "config.json"));
  CHECK(holds_more_than_a_tower({{"model_type", "vit"}, {"architectures", {"ViTForMaskedImageModeling"}}},
                                "c"));
  CHECK(!holds_more_than_a_tower({{"model_type", "vit"}, {"architectures", {"ViTForImageClassification"}}},
                                 "c"));
  CHECK(!holds_more_than_a_tower({{"model_type", "vit"}}, "c"));
  CHECK(!holds_more_than_a_tower({{"vitrine", Json::object()}}, "c"));

  TensorShapes tensors = checkpoint(clip(0), "hf_clip", "vision_model.");
  tensors["layers.0.mlp.up_proj.weight"] = {128, 128};
  const Naming naming = recognise(tensors, "m");
  const ViTConfig config = infer_config(tensors, naming, "m");
  CHECK_THAT(refusal(tensors, config, naming), ContainsSubstring("'layers.0.mlp.up_proj.weight'"));
  std::vector<std::string> beside;
  CHECK_NOTHROW(match_tensors(tensors, config, naming, "m", &beside));
  CHECK(beside == std::vector<std::string>{"layers.0.mlp.up_proj.weight"});
  tensors["vision_model.encoder.layers.0.gate"] = {1};
  CHECK_THROWS_AS(match_tensors(tensors, config, naming, "m", &beside), Error);
}

// The families of Hugging Face's transformers besides ViT and DeiT: names, inference, config.json.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "model/families/families.h"
#include "model/files/config_json.h"

using namespace vitrine;
using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

namespace {

TensorShapes checkpoint(const ViTConfig& config, const char* family, const std::string& prefix) {
  TensorShapes tensors;
  for (const Parameter& parameter : parameters_of(config)) {
    for (const FilePart& part : file_parts(parameter, config, {&family_named(family), prefix}, {})) {
      tensors[part.name] = part.shape;
    }
  }
  return tensors;
}

void check_same(ViTConfig found, ViTConfig expected) {
  for (ViTConfig* c : {&found, &expected}) {
    c->mlp_hidden = c->mlp_width();
    c->layer_scale_init = 0;
  }
  CHECK(to_string(found) == to_string(expected));
}

// Recognised, inferred and matched as this config.
Naming check_read(const TensorShapes& tensors, const char* family, const ViTConfig& config) {
  const Naming naming = recognise(tensors, "m");
  CHECK(naming.family->name == family);
  const ViTConfig found = infer_config(tensors, naming, "m");
  check_same(found, config);
  CHECK_NOTHROW(match_tensors(tensors, found, naming, "m"));
  return naming;
}

ViTConfig small(uint64_t classes = 0) {
  ViTConfig c;
  c.dim = 128;
  c.heads = 2;
  c.depth = 2;
  c.classes = classes;
  return c;
}

ViTConfig dinov2(uint64_t registers, uint64_t classes) {
  ViTConfig c = small(classes);
  c.patch_height = c.patch_width = 14;
  c.layer_scale = true;
  c.registers = registers;
  if (registers) {
    c.position_span = PositionSpan::class_and_patches;
    c.position_resize = PositionResize::bicubic_antialias;
  }
  if (classes) c.pool = Pool::token_and_mean;
  return c;
}

ViTConfig clip(uint64_t embedding) {
  ViTConfig c = small();
  c.patch_bias = false;
  c.pre_norm = true;
  c.final_norm = false;
  c.fc_norm = true;
  c.embedding_size = embedding;
  c.activation = Activation::gelu_quick;
  c.eps = 1e-5;
  return c;
}

ViTConfig siglip() {
  ViTConfig c = small();
  c.class_token = false;
  c.pool = Pool::attention;
  c.activation = Activation::gelu_tanh;
  return c;
}

void add_text_tower(TensorShapes& tensors) {
  tensors["text_model.encoder.layers.0.layer_norm1.weight"] = {64};
  tensors["text_model.embeddings.token_embedding.weight"] = {100, 64};
  tensors["text_model.embeddings.position_ids"] = {1, 77};
  tensors["logit_scale"] = {};
}

std::string refusal(const TensorShapes& tensors, const ViTConfig& config, const Naming& naming) {
  try {
    match_tensors(tensors, config, naming, "m");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    return error.what();
  }
  return "accepted";
}

std::string config_refusal(const Json& json, const TensorShapes& tensors, const Naming& naming) {
  try {
    read_config(json, tensors, naming, "config.json").validate("config.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("DINOv2's names tell registers, gated MLPs and the classifier of two parts") {
  for (const uint64_t registers : {0, 4, 8}) {
    for (const uint64_t classes : {0, 10}) {
      ViTConfig config = dinov2(registers, classes);
      TensorShapes tensors = checkpoint(config, "hf_dinov2", classes ? "dinov2." : "");
      CHECK(tensors.contains(std::string(classes ? "dinov2." : "") + "encoder.layer.1.layer_scale2.lambda1"));
      if (classes) CHECK(tensors.at("classifier.weight") == std::vector<uint64_t>{10, 256});
      tensors[classes ? "dinov2.embeddings.mask_token" : "embeddings.mask_token"] = {1, 128};
      check_read(tensors, "hf_dinov2", config);
    }
  }
  ViTConfig gated = dinov2(0, 0);
  gated.mlp = MlpKind::swiglu;
  gated.activation = Activation::silu;
  TensorShapes tensors;
  for (auto& [name, shape] : checkpoint(gated, "hf_dinov2", "")) {
    std::string renamed = name;
    for (const auto& [from, to] : {std::pair{".fc1.", ".weights_in."}, std::pair{".fc2.", ".weights_out."}}) {
      if (const size_t at = renamed.find(from); at != std::string::npos) renamed.replace(at, 5, to);
    }
    tensors[renamed] = shape;
  }
  const uint64_t hidden = gated.mlp_width();
  CHECK(tensors.at("encoder.layer.0.mlp.weights_in.weight") == std::vector<uint64_t>{2 * hidden, 128});
  check_read(tensors, "hf_dinov2", gated);
}

TEST_CASE("CLIP's vision tower is found alone and inside the whole model's file") {
  for (const std::string prefix : {"vision_model.", ""}) {
    const TensorShapes alone = checkpoint(clip(0), "hf_clip", prefix);
    CHECK(alone.at(prefix + "embeddings.class_embedding") == std::vector<uint64_t>{128});
    CHECK(alone.at(prefix + "embeddings.position_embedding.weight") == std::vector<uint64_t>{197, 128});
    CHECK(check_read(alone, "hf_clip", clip(0)).prefix == prefix);
  }
  TensorShapes whole = checkpoint(clip(64), "hf_clip", "vision_model.");
  add_text_tower(whole);
  whole["text_projection.weight"] = {64, 64};
  whole["vision_model.embeddings.position_ids"] = {1, 197};
  const Naming naming = check_read(whole, "hf_clip", clip(64));
  CHECK(refusal(whole, clip(0), naming) == "accepted");  // without the projection
  // What the text tower's names are not.
  whole["visual_model.x"] = {1};
  CHECK_THAT(refusal(whole, clip(64), naming), ContainsSubstring("'visual_model.x' [1] is left over"));

  // Its classifier sees the mean of patches that no norm has touched, and the file has the norm.
  ViTConfig classifier = clip(0);
  classifier.classes = 10;
  classifier.pool = Pool::mean;
  classifier.fc_norm = false;
  TensorShapes tensors = checkpoint(classifier, "hf_clip", "vision_model.");
  tensors["vision_model.post_layernorm.weight"] = tensors["vision_model.post_layernorm.bias"] = {128};
  check_read(tensors, "hf_clip", classifier);
}

TEST_CASE("SigLIP's pooling takes its query's and its keys' maps from one tensor") {
  for (const std::string prefix : {"vision_model.", ""}) {
    TensorShapes tensors = checkpoint(siglip(), "hf_siglip", prefix);
    CHECK(tensors.at(prefix + "head.attention.in_proj_weight") == std::vector<uint64_t>{384, 128});
    CHECK(tensors.at(prefix + "head.attention.in_proj_bias") == std::vector<uint64_t>{384});
    const Naming naming = check_read(tensors, "hf_siglip", siglip());
    const auto parts = match_tensors(tensors, siglip(), naming, "m");
    CHECK(parts.at("attn_pool.q.weight") ==
          std::vector<FilePart>{{prefix + "head.attention.in_proj_weight", {384, 128}, 0, 128}});
    CHECK(parts.at("attn_pool.kv.bias") ==
          std::vector<FilePart>{{prefix + "head.attention.in_proj_bias", {384}, 128, 256}});
    tensors[prefix + "head.attention.in_proj_weight"] = {256, 128};
    CHECK_THAT(refusal(tensors, siglip(), naming),
               ContainsSubstring("in_proj_weight' has shape [256, 128], expected [384, 128]"));
  }
  TensorShapes whole = checkpoint(siglip(), "hf_siglip", "vision_model.");
  whole["vision_model.head.probe"] = {1, 1, 128};
  add_text_tower(whole);
  whole["logit_bias"] = {1};
  check_read(whole, "hf_siglip", siglip());

  ViTConfig classifier = siglip();
  classifier.pool = Pool::mean;
  classifier.classes = 10;
  TensorShapes tensors = checkpoint(siglip(), "hf_siglip", "vision_model.");
  tensors["classifier.weight"] = {10, 128};
  tensors["classifier.bias"] = {10};
  check_read(tensors, "hf_siglip", classifier);

  ViTConfig headless = siglip();
  headless.pool = Pool::mean;
  check_read(checkpoint(headless, "hf_siglip", "vision_model."), "hf_siglip", headless);
}

TEST_CASE("head counts of wide SigLIP and DINOv2 models differ") {
  ViTConfig wide = siglip();
  wide.dim = 1536;
  wide.heads = 16;
  check_read(checkpoint(wide, "hf_siglip", "vision_model."), "hf_siglip", wide);
  wide = dinov2(0, 0);
  wide.dim = 1536;
  wide.heads = 24;
  check_read(checkpoint(wide, "hf_dinov2", ""), "hf_dinov2", wide);
}

TEST_CASE("what a Hugging Face config leaves out takes its class' default") {
  const auto read = [](const Json& json, const ViTConfig& tensors_of, const char* family) {
    const TensorShapes tensors = checkpoint(tensors_of, family, "");
    return read_config(json, tensors, recognise(tensors, "m"), "config.json");
  };
  ViTConfig config = read({{"model_type", "dinov2"}}, dinov2(0, 0), "hf_dinov2");
  CHECK(config.patch_height == 14);
  CHECK(config.mlp_width() == 3072);
  CHECK(config.eps == 1e-6);
  CHECK(config.layer_scale_init == 1);
  config = read({{"model_type", "dinov2"}, {"use_swiglu_ffn", true}, {"hidden_size", 1536}}, dinov2(0, 0),
                "hf_dinov2");
  CHECK(config.mlp == MlpKind::swiglu);
  CHECK(config.mlp_width() == 4096);
  config = read({{"model_type", "dinov2_with_registers"}}, dinov2(4, 10), "hf_dinov2");
  CHECK(config.patch_height == 16);
  CHECK(config.registers == 4);
  CHECK(config.position_span == PositionSpan::class_and_patches);
  CHECK(config.pool == Pool::token_and_mean);
  CHECK(config.classes == 10);

  config = read({{"model_type", "clip"}, {"projection_dim", 64}}, clip(64), "hf_clip");
  CHECK(config.patch_height == 32);
  CHECK(config.activation == Activation::gelu_quick);
  CHECK(config.eps == 1e-5);
  CHECK(config.embedding_size == 64);
  CHECK(read({{"model_type", "clip_vision_model"}}, clip(64), "hf_clip").embedding_size == 512);
  CHECK(read({{"model_type", "clip_vision_model"}}, clip(0), "hf_clip").embedding_size == 0);
  const Json nested = {{"hidden_size", 128}, {"hidden_act", "gelu"}, {"image_size", 32}, {"patch_size", 8}};
  config = read({{"model_type", "clip"}, {"vision_config", nested}}, clip(0), "hf_clip");
  CHECK(config.dim == 128);
  CHECK(config.image_width == 32);
  CHECK(config.activation == Activation::gelu);
  // The older field wins with all its defaults.
  config =
      read({{"model_type", "clip"}, {"vision_config", nested}, {"vision_config_dict", {{"patch_size", 14}}}},
           clip(0), "hf_clip");
  CHECK(config.dim == 768);
  CHECK(config.patch_height == 14);

  config = read({{"model_type", "siglip_vision_model"}}, siglip(), "hf_siglip");
  CHECK(config.activation == Activation::gelu_tanh);
  CHECK(config.pool == Pool::attention);
  CHECK(
      read({{"model_type", "siglip_vision_model"}, {"vision_use_head", false}}, siglip(), "hf_siglip").pool ==
      Pool::mean);
  ViTConfig classifier = siglip();
  classifier.classes = 3;
  CHECK(read({{"model_type", "siglip"}, {"architectures", {"SiglipForImageClassification"}}}, classifier,
             "hf_siglip")
            .pool == Pool::mean);
}

TEST_CASE("a DINOv3 without registers is saved with a tensor of none") {
  ViTConfig config = small();
  config.layer_scale = true;
  config.positions = Positions::none;
  config.rotary = Rotary::halves;
  config.rotary_base = 100;
  config.rotary_centered = true;
  config.eps = 1e-5;
  config.key_bias = false;
  TensorShapes tensors = checkpoint(config, "hf_dinov3", "");
  tensors.erase("");  // the keys' bias that isn't there
  tensors["embeddings.register_tokens"] = {1, 0, 128};
  check_read(tensors, "hf_dinov3", config);
  tensors["embeddings.register_tokens"] = {1, 4, 128};
  CHECK_THAT(refusal(tensors, config, recognise(tensors, "m")), ContainsSubstring("register_tokens"));
}

TEST_CASE("towers of one more or one fewer tensor than CLIP's and SigLIP's are told from them") {
  ViTConfig mlcd = clip(0);
  mlcd.positions = Positions::none;
  mlcd.rotary = Rotary::halves;
  mlcd.rotary_class = true;
  mlcd.activation = Activation::gelu;
  TensorShapes of_mlcd = checkpoint(mlcd, "hf_mlcd", "vision_model.");
  CHECK(of_mlcd.at("vision_model.class_pos_emb") == std::vector<uint64_t>{32});
  of_mlcd["vision_model.class_pos_emb"] = {1, 32};  // as it is saved
  check_read(of_mlcd, "hf_mlcd", mlcd);

  ViTConfig janus = siglip();
  janus.pool = Pool::first;
  janus.fc_norm = true;
  janus.activation = Activation::gelu;
  TensorShapes of_janus = checkpoint(janus, "hf_janus", "vision_model.");
  check_read(of_janus, "hf_janus", janus);
  for (const char* beside :
       {"aligner.fc1.weight", "language_model.norm.weight", "vqmodel.encoder.conv_in.weight"})
    of_janus[beside] = {128, 128};
  check_read(of_janus, "hf_janus", janus);

  ViTConfig aimv2 = small();
  aimv2.class_token = false;
  aimv2.patch_norm = true;
  aimv2.norm = NormKind::rms;
  aimv2.mlp = MlpKind::swiglu;
  aimv2.activation = Activation::silu;
  aimv2.qkv_bias = aimv2.projection_bias = aimv2.mlp_bias = false;
  aimv2.eps = 1e-5;
  aimv2.heads = 1;
  aimv2.position_resize = PositionResize::bicubic_antialias;
  aimv2.pool = Pool::attention;
  aimv2.pool_query = aimv2.pool_bias = aimv2.pool_mlp = false;
  check_read(checkpoint(aimv2, "hf_aimv2", ""), "hf_aimv2", aimv2);
  aimv2.positions = Positions::sincos_grid;
  aimv2.pool_bias = aimv2.qkv_bias = true;
  aimv2.embedding_size = 64;
  TensorShapes whole = checkpoint(aimv2, "hf_aimv2", "vision_model.");
  whole.erase("vision_model.embeddings.position_embedding.weight");  // which is computed
  add_text_tower(whole);
  check_read(whole, "hf_aimv2", aimv2);

  ViTConfig pixtral = small();
  pixtral.class_token = pixtral.patch_bias = pixtral.final_norm = false;
  pixtral.qkv_bias = pixtral.projection_bias = pixtral.mlp_bias = false;
  pixtral.norm = NormKind::rms;
  pixtral.pre_norm = true;
  pixtral.mlp = MlpKind::swiglu;
  pixtral.activation = Activation::silu;
  pixtral.positions = Positions::none;
  pixtral.rotary = Rotary::halves;
  pixtral.rotary_alternating = true;
  pixtral.eps = 1e-5;
  pixtral.pool = Pool::mean;
  check_read(checkpoint(pixtral, "hf_pixtral", "vision_tower."), "hf_pixtral", pixtral);
}

TEST_CASE("a SigLIP 2 for pictures of any size is told by its linear patches") {
  ViTConfig config = siglip();
  config.image_height = config.image_width = 64;
  config.position_resize = PositionResize::bilinear_antialias;
  TensorShapes tensors = checkpoint(config, "hf_siglip2", "vision_model.");
  CHECK(tensors.at("vision_model.embeddings.patch_embedding.weight") == std::vector<uint64_t>{128, 768});
  check_read(tensors, "hf_siglip2", config);
  const Json json{{"model_type", "siglip2_vision_model"}, {"num_patches", 16}, {"patch_size", 8}};
  const ViTConfig read = read_config(json, tensors, recognise(tensors, "m"), "config.json");
  CHECK(read.image_height == 32);
  CHECK(read.pool == Pool::attention);
}

TEST_CASE("a model of spectrograms is told by its channel and its oblong table, or by its configuration") {
  ViTConfig config = small(3);
  config.channels = 1;
  config.image_height = 24;
  config.image_width = 41;
  config.patch_height = config.patch_width = 8;
  config.patch_stride_height = 5;
  config.patch_stride_width = 7;
  CHECK(config.grid_height() == 4);
  CHECK(config.grid_width() == 5);
  config.distillation_token = true;
  config.pool = Pool::prefix;
  config.fc_norm = true;
  const TensorShapes tensors = checkpoint(config, "hf_ast", "audio_spectrogram_transformer.");
  CHECK(tensors.at("classifier.dense.weight") == std::vector<uint64_t>{3, 128});
  const Naming naming = recognise(tensors, "m");
  CHECK(naming.family->name == "hf_ast");
  Json json{{"model_type", "audio-spectrogram-transformer"},
            {"architectures", {"ASTForAudioClassification"}},
            {"num_labels", 3},
            {"hidden_size", 128},
            {"num_attention_heads", 2},
            {"num_hidden_layers", 2},
            {"intermediate_size", 512},
            {"num_mel_bins", 24},
            {"max_length", 41},
            {"patch_size", 8},
            {"frequency_stride", 5},
            {"time_stride", 7}};
  ViTConfig read = read_config(json, tensors, naming, "config.json");
  config.eps = 1e-12;
  check_same(read, config);
  CHECK_NOTHROW(match_tensors(tensors, read, naming, "m"));
  json.erase("time_stride");
  read = read_config(json, tensors, naming, "config.json");
  CHECK(read.stride_width() == 10);
  json["num_channels"] = 3;
  CHECK_THAT(config_refusal(json, tensors, naming), ContainsSubstring("\"num_channels\" is 3"));

  // Of a grey DeiT with as many patches as a square has, nothing but a configuration tells it.
  ViTConfig grey = small();
  grey.channels = 1;
  grey.distillation_token = true;
  const TensorShapes of_grey = checkpoint(grey, "hf", "");
  CHECK(recognise(of_grey, "m").family->name == "hf");
  CHECK(recognise(of_grey, "m", "hf_ast").family->name == "hf_ast");
  CHECK(said_family(json, "config.json") == "hf_ast");
}

TEST_CASE(
    "a ViTDet's table is for the images that it was trained with, and which blocks have windows is said") {
  ViTConfig config = small();
  config.image_height = config.image_width = 64;
  config.patch_height = config.patch_width = 8;
  config.depth = 3;
  config.class_token = config.final_norm = false;
  config.pool = Pool::mean;
  config.position_span = PositionSpan::patches;
  config.relative_bias = RelativeBias::decomposed;
  config.window = 3;
  config.global_blocks = {1};
  TensorShapes tensors;
  const Naming naming{&family_named("hf_vitdet"), ""};
  const TensorShapes table{{"embeddings.position_embeddings", {1, 1 + 25, 128}}};
  for (const Parameter& parameter : parameters_of(config)) {
    for (const FilePart& part : file_parts(parameter, config, naming, table)) tensors[part.name] = part.shape;
  }
  CHECK(tensors.at("embeddings.position_embeddings") == std::vector<uint64_t>{1, 26, 128});
  CHECK(recognise(tensors, "m").family->name == "hf_vitdet");
  CHECK(stored_positions(tensors, naming) == Grid{5, 5});
  Json json{
      {"model_type", "vitdet"},    {"hidden_size", 128},     {"num_attention_heads", 2},
      {"num_hidden_layers", 3},    {"image_size", 64},       {"patch_size", 8},
      {"pretrain_image_size", 40}, {"window_size", 3},       {"window_block_indices", {0, 2}},
      {"dropout_prob", 0.5},       {"drop_path_rate", 0.25}, {"use_relative_position_embeddings", true}};
  ConfigRemarks remarks;
  const ViTConfig read = read_config(json, tensors, naming, "config.json", {}, &remarks);
  config.stochastic_depth = 0.25;
  check_same(read, config);
  REQUIRE(remarks.untrained.size() == 1);
  CHECK_THAT(remarks.untrained[0], ContainsSubstring("dropout_prob"));
  const auto parts = match_tensors(tensors, read, naming, "m");
  CHECK(parts.at("pos_embed") ==
        std::vector<FilePart>{{"embeddings.position_embeddings", {1, 26, 128}, 1, 25}});
  json["residual_block_indices"] = {1};
  CHECK_THAT(config_refusal(json, tensors, naming), ContainsSubstring("residual_block_indices"));
}

TEST_CASE("a YOLOS has tokens behind its patches, and positions in front of its later blocks") {
  for (const bool again : {false, true}) {
    ViTConfig config = small();
    config.image_height = config.image_width = 32;
    config.patch_height = config.patch_width = 8;
    config.depth = 3;
    config.eps = 1e-12;
    config.detection_tokens = 5;
    config.block_positions = again;
    TensorShapes tensors = checkpoint(config, "hf_yolos", "vit.");
    CHECK(tensors.at("vit.embeddings.position_embeddings") == std::vector<uint64_t>{1, 22, 128});
    const std::string mid = "vit.encoder.mid_position_embeddings";
    CHECK(tensors.contains(mid) == again);
    if (again) CHECK(tensors.at(mid) == std::vector<uint64_t>{2, 1, 22, 128});
    tensors["bbox_predictor.layers.0.weight"] = {128, 128};
    const Naming naming = check_read(tensors, "hf_yolos", config);
    if (again) {
      const auto parts = match_tensors(tensors, config, naming, "m");
      CHECK(parts.at("blocks.2.pos_embed") == std::vector<FilePart>{{mid, {2, 1, 22, 128}, 22, 22}});
      CHECK(!parts.contains("blocks.0.pos_embed"));
    }
  }
  ViTConfig config = small();
  config.detection_tokens = 100;
  const TensorShapes tensors = checkpoint(config, "hf_yolos", "");
  ConfigRemarks remarks;
  const Json json{{"model_type", "yolos"}, {"architectures", {"YolosForObjectDetection"}}};
  const ViTConfig read =
      read_config(json, tensors, {&family_named("hf_yolos"), ""}, "config.json", {}, &remarks);
  CHECK(read.image_width == 864);
  CHECK(read.block_positions);
  CHECK(read.detection_tokens == 100);
  REQUIRE(remarks.assumed.size() == 1);
  CHECK_THAT(remarks.assumed[0], ContainsSubstring("classes and boxes"));
}

TEST_CASE("a video is a picture of its tubelets, whose frames are channels") {
  ViTConfig config = small(3);
  config.channels = 6;
  config.image_height = 3 * 32;
  config.image_width = 32;
  config.patch_height = config.patch_width = 8;
  config.class_token = config.key_bias = config.final_norm = false;
  config.positions = Positions::sincos;
  config.pool = Pool::mean;
  config.fc_norm = true;
  config.eps = 1e-12;
  config.final_eps = 1e-5;
  const Naming naming{&family_named("hf_video"), "videomae."};
  const TensorShapes projection{{"videomae.embeddings.patch_embeddings.projection.weight", {128, 3, 2, 8, 8}},
                                {"videomae.encoder.layer.0.attention.attention.q_bias", {128}},
                                {"videomae.encoder.layer.1.attention.attention.q_bias", {128}}};
  TensorShapes tensors;
  for (const Parameter& parameter : parameters_of(config)) {
    if (!parameter.learned()) continue;
    for (const FilePart& part : file_parts(parameter, config, naming, projection)) {
      if (!part.name.empty()) tensors[part.name] = part.shape;
    }
  }
  CHECK(tensors.at(projection.begin()->first) == projection.begin()->second);
  CHECK(!tensors.contains("videomae.encoder.layer.0.attention.attention.query.bias"));
  CHECK(recognise(tensors, "m").family->name == "hf_video");
  Json json{{"model_type", "videomae"}, {"architectures", {"VideoMAEForVideoClassification"}},
            {"num_labels", 3},          {"hidden_size", 128},
            {"num_attention_heads", 2}, {"num_hidden_layers", 2},
            {"intermediate_size", 512}, {"image_size", 32},
            {"patch_size", 8},          {"num_frames", 7}};
  const ViTConfig read = read_config(json, tensors, naming, "config.json");
  check_same(read, config);
  CHECK_NOTHROW(match_tensors(tensors, read, naming, "m"));
  json["image_size"] = 36;
  CHECK_THAT(config_refusal(json, tensors, naming),
             ContainsSubstring("image_size") && ContainsSubstring("whole patches"));
  json["tubelet_size"] = 8;
  CHECK_THAT(config_refusal(json, tensors, naming), ContainsSubstring("\"num_frames\" is 7"));
}

TEST_CASE("what towers' configurations ask for is computed or refused by its name") {
  const auto tensors_of = [](const char* family) {
    ViTConfig c = small();
    c.class_token = family == std::string("hf_mlcd");
    c.pool = Pool::mean;
    c.patch_norm = family == std::string("hf_aimv2");
    c.pre_norm = family != std::string("hf_aimv2") && family != std::string("hf_janus");
    return checkpoint(c, family, "");
  };
  const auto read = [&](const Json& json, const char* family, ConfigRemarks* remarks = nullptr) {
    return read_config(json, tensors_of(family), {&family_named(family), ""}, "config.json", {}, remarks);
  };
  const auto refused = [&](const Json& json, const char* family) {
    return config_refusal(json, tensors_of(family), {&family_named(family), ""});
  };
  ViTConfig config = read({{"model_type", "janus_vision_model"}, {"mlp_ratio", 3.5}}, "hf_janus");
  CHECK(config.dim == 1024);
  CHECK(config.depth == 24);
  CHECK(config.image_height == 384);
  CHECK(config.mlp_width() == 3584);
  CHECK(config.pool == Pool::first);
  CHECK(config.qkv_bias);
  CHECK(!read({{"model_type", "janus_vision_model"}, {"attention_bias", false}}, "hf_janus").qkv_bias);
  CHECK_THAT(refused({{"model_type", "janus_vision_model"}, {"use_qk_norm", true}}, "hf_janus"),
             ContainsSubstring("\"use_qk_norm\" is true"));
  ConfigRemarks remarks;
  config = read({{"model_type", "janus_vision_model"},
                 {"attention_dropout", 0.125},
                 {"projection_dropout", 0.25},
                 {"hidden_dropout_rate", 0.5}},
                "hf_janus", &remarks);
  CHECK(config.attention_dropout == 0.125);
  CHECK(config.dropout == 0);
  REQUIRE(remarks.untrained.size() == 2);
  CHECK_THAT(remarks.untrained[0], ContainsSubstring("\"hidden_dropout_rate\" is 0.5"));
  CHECK_THAT(remarks.untrained[1], ContainsSubstring("\"projection_dropout\" is 0.25"));

  CHECK(read({{"model_type", "mlcd_vision_model"}}, "hf_mlcd").dim == 1664);
  const auto turned = [](const char* type, double base) {
    return Json{{"rope_type", type}, {"rope_theta", base}};
  };
  const auto mlcd = [&](const char* key, const Json& value) {
    return Json{{"model_type", "mlcd_vision_model"}, {key, value}};
  };
  CHECK(read(mlcd("rope_parameters", turned("axial", 500)), "hf_mlcd").rotary_base == 500);
  CHECK(read(mlcd("rope_theta", 300), "hf_mlcd").rotary_base == 300);
  CHECK_THAT(refused(mlcd("rope_parameters", turned("linear", 500)), "hf_mlcd"),
             ContainsSubstring("\"rope_type\" is \"linear\""));
  CHECK_THAT(refused(mlcd("rope_scaling", turned("linear", 2)), "hf_mlcd"),
             ContainsSubstring("rope_scaling"));
  CHECK_THAT(refused(mlcd("num_key_value_groups", 2), "hf_mlcd"), ContainsSubstring("num_key_value_groups"));

  config = read({{"model_type", "pixtral"}}, "hf_pixtral");
  CHECK(config.activation == Activation::gelu);
  CHECK(config.image_width == 1024);
  CHECK_THAT(refused({{"model_type", "pixtral"}, {"head_dim", 32}}, "hf_pixtral"),
             ContainsSubstring("\"head_dim\" is 32"));

  const auto aimv2 = [&](const char* key, const Json& value) {
    return read({{"model_type", "aimv2_vision_model"}, {key, value}}, "hf_aimv2");
  };
  CHECK(aimv2("is_native", true).positions == Positions::sincos_grid);
  CHECK(aimv2("use_head", false).pool == Pool::mean);
  CHECK(aimv2("qkv_bias", true).pool_bias);
  CHECK(aimv2("mlp_bias", true).mlp_bias);
  CHECK(aimv2("rms_norm_eps", 0.5).eps == 0.5);
  CHECK(aimv2("hidden_act", "gelu").activation == Activation::gelu);
}

TEST_CASE("a Hugging Face config that makes no sense is refused with its field") {
  const TensorShapes tensors = checkpoint(clip(0), "hf_clip", "vision_model.");
  const Naming naming = recognise(tensors, "m");
  CHECK_THAT(config_refusal({{"model_type", "clip"}, {"vision_config", 3}}, tensors, naming),
             ContainsSubstring("\"vision_config\" is 3") && ContainsSubstring("an object"));
  CHECK_THAT(
      config_refusal({{"model_type", "clip"}, {"vision_config", {{"hidden_size", "wide"}}}}, tensors, naming),
      ContainsSubstring("(vision_config)") && ContainsSubstring("\"hidden_size\" is \"wide\""));
  CHECK_THAT(config_refusal({{"model_type", "siglip"}}, tensors, naming),
             ContainsSubstring("siglip") && ContainsSubstring("Hugging Face CLIP"));
  const TensorShapes other = checkpoint(dinov2(0, 0), "hf_dinov2", "");
  CHECK_THAT(config_refusal({{"model_type", "dinov2"}, {"mlp_ratio", -1}}, other, recognise(other, "m")),
             ContainsSubstring("mlp_ratio"));
}

TEST_CASE("DeiT without a teacher has both tokens and one classifier") {
  ViTConfig config = small(10);
  config.distillation_token = true;
  config.eps = 1e-12;
  const TensorShapes tensors = checkpoint(config, "hf", "deit.");
  CHECK(tensors.contains("deit.embeddings.distillation_token"));
  TensorShapes renamed = tensors;
  for (const char* leaf : {"weight", "bias"}) {
    auto node = renamed.extract(std::string("cls_classifier.") + leaf);
    if (node.empty()) continue;
    node.key() = std::string("classifier.") + leaf;
    renamed.insert(std::move(node));
  }
  check_read(renamed, "hf", config);
}

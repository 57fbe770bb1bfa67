// Models that only transformers has or names, besides ViT's, CLIP's and SigLIP's: what tells them, and their
// configurations.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/support/checkpoint_shapes.h"

using namespace vitrine;
using namespace vitrine::test;
using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

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

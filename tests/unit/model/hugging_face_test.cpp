// The families of Hugging Face's transformers besides ViT and DeiT: names, inference, config.json.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/support/checkpoint_shapes.h"

using namespace vitrine;
using namespace vitrine::test;
using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

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

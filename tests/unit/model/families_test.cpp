#include "model/families/families.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "model/files/adapter.h"
#include "model/files/config_json.h"
#include "model/vit/presets.h"

using namespace vitrine;
using Catch::Matchers::ContainsSubstring;

namespace {

// The tensors of a checkpoint that `family` would save for this config.
TensorShapes checkpoint(const ViTConfig& config, const char* family, const std::string& prefix = "") {
  TensorShapes tensors;
  for (const Parameter& parameter : parameters_of(config)) {
    if (!parameter.learned()) continue;
    for (const FilePart& part : file_parts(parameter, config, {&family_named(family), prefix}, {})) {
      tensors[part.name] = part.shape;
    }
  }
  return tensors;
}

ViTConfig small(const char* arch) {
  ViTConfig config = preset(arch);
  config.depth = 3;
  return config;
}

// Equal in all that decides shapes and computation; sizes that follow a rule count as the numbers.
void check_same(ViTConfig found, ViTConfig expected) {
  for (ViTConfig* c : {&found, &expected}) {
    c->mlp_hidden = c->mlp_width();
    c->key_width = c->head_key_width();
    c->value_width = c->head_value_width();
    c->layer_scale_init = 0;
    c->position_resize = {};
  }
  CHECK(to_string(found) == to_string(expected));
}

std::string match_refusal(const TensorShapes& tensors, const ViTConfig& config, const Naming& naming) {
  try {
    match_tensors(tensors, config, naming, "m.safetensors");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    return error.what();
  }
  FAIL("was not refused");
  return {};
}

}  // namespace

TEST_CASE("a timm checkpoint's names and shapes tell its configuration") {
  for (const char* arch :
       {"vit_tiny_patch16_224", "vit_base_patch32_384", "deit_tiny_distilled_patch16_224",
        "deit3_small_patch16_224", "vit_base_patch16_reg4_gap_256", "vit_medium_patch16_reg1_gap_256",
        "vit_base_patch16_clip_224", "vit_small_patch14_dinov2", "vit_giant_patch14_reg4_dinov2",
        "vit_base_patch16_224_miil", "vit_huge_patch14_224", "vit_giant_patch14_224",
        "vit_base_patch16_siglip_224", "vit_so400m_patch14_siglip_378", "vit_so150m_patch16_reg4_map_256",
        "vit_large_patch14_reg4_dinov2"}) {
    INFO(arch);
    const ViTConfig config = small(arch);
    const TensorShapes tensors = checkpoint(config, "timm");
    const Naming naming = recognise(tensors, "m.safetensors");
    CHECK(naming.family->name == "timm");
    check_same(infer_config(tensors, naming, "m.safetensors"), config);
    CHECK_NOTHROW(match_tensors(tensors, config, naming, "m.safetensors"));
  }
}

TEST_CASE("representation layer, norm on patches, split widths and no projection are inferred") {
  ViTConfig config = small("vit_tiny_patch16_224");
  config.representation_size = 100;
  config.patch_norm = true;
  config.key_width = 16;
  config.value_width = 24;
  const TensorShapes tensors = checkpoint(config, "timm");
  check_same(infer_config(tensors, recognise(tensors, "m"), "m"), config);

  config = small("vit_tiny_patch16_224");
  config.projection = false;
  const TensorShapes bare = checkpoint(config, "timm");
  check_same(infer_config(bare, recognise(bare, "m"), "m"), config);
}

TEST_CASE("torchvision checkpoints are read under new and old names") {
  const ViTConfig config = small("vit_b_16");
  TensorShapes tensors = checkpoint(config, "torchvision");
  CHECK(tensors.contains("encoder.layers.encoder_layer_2.self_attention.in_proj_weight"));
  CHECK(tensors.contains("encoder.layers.encoder_layer_2.mlp.linear_1.weight") !=
        tensors.contains("encoder.layers.encoder_layer_2.mlp.0.weight"));
  TensorShapes other;
  for (const auto& [name, shape] : tensors) {
    std::string renamed = name;
    for (const auto& [from, to] : {std::pair{"mlp.linear_1", "mlp.0"}, std::pair{"mlp.linear_2", "mlp.3"}}) {
      if (const size_t at = renamed.find(from); at != std::string::npos)
        renamed.replace(at, std::string(from).size(), to);
    }
    other[renamed] = shape;
  }
  CHECK(other.contains("encoder.layers.encoder_layer_2.mlp.0.weight"));
  for (const TensorShapes* names : {&tensors, &other}) {
    const Naming naming = recognise(*names, "m");
    CHECK(naming.family->name == "torchvision");
    check_same(infer_config(*names, naming, "m"), config);
    CHECK(match_tensors(*names, config, naming, "m").size() == parameters_of(config).size());
  }
}

TEST_CASE("Hugging Face checkpoints split q, k and v, and carry a prefix and a pooler") {
  ViTConfig config = small("deit_tiny_distilled_patch16_224");
  config.eps = 1e-12;
  TensorShapes tensors = checkpoint(config, "hf", "deit.");
  CHECK(tensors.contains("deit.embeddings.distillation_token"));
  tensors["deit.pooler.dense.weight"] = {192, 192};
  tensors["deit.pooler.dense.bias"] = {192};
  // The only head of DeiTForImageClassification is called as ViT's.
  const Naming naming = recognise(tensors, "m");
  CHECK(naming.prefix == "deit.");
  const auto parts = match_tensors(tensors, config, naming, "m").at("blocks.2.attn.qkv.weight");
  REQUIRE(parts.size() == 3);
  CHECK(parts[1] == FilePart{"deit.encoder.layer.2.attention.attention.key.weight", {192, 192}});
  tensors["cls_classifier.weight"] = {1000, 192};
  tensors["cls_classifier.bias"] = {1000};
  tensors.erase("classifier.weight");
  tensors.erase("classifier.bias");
  check_same(infer_config(tensors, naming, "m"), config);

  ViTConfig bare = small("vit_tiny_patch16_224");
  bare.eps = 1e-12;
  bare.classes = 0;
  const TensorShapes unprefixed = checkpoint(bare, "hf");
  CHECK(recognise(unprefixed, "m").prefix.empty());
  check_same(infer_config(unprefixed, recognise(unprefixed, "m"), "m"), bare);
}

TEST_CASE("MyViT's heads are separate tensors that make one constant") {
  const ViTConfig config = preset("myvit_mnist");
  const TensorShapes tensors = checkpoint(config, "myvit");
  CHECK(tensors.at("linear_mapper.weight") == std::vector<uint64_t>{8, 16});
  CHECK(tensors.at("class_token") == std::vector<uint64_t>{1, 8});
  CHECK(tensors.at("blocks.1.mhsa.v_mappings.1.weight") == std::vector<uint64_t>{4, 4});
  const Naming naming = recognise(tensors, "m");
  check_same(infer_config(tensors, naming, "m"), config);
  const auto parts = match_tensors(tensors, config, naming, "m");
  CHECK(parts.at("blocks.0.attn.q.bias") == std::vector<FilePart>{{"blocks.0.mhsa.q_mappings.0.bias", {4}},
                                                                  {"blocks.0.mhsa.q_mappings.1.bias", {4}}});
  CHECK_FALSE(parts.contains("pos_embed"));
}

TEST_CASE("a tensor that is missing, left over or of the wrong shape is named") {
  const ViTConfig config = small("vit_tiny_patch16_224");
  const TensorShapes whole = checkpoint(config, "timm");
  const Naming naming = recognise(whole, "m");
  TensorShapes tensors = whole;
  tensors.erase("blocks.1.mlp.fc1.bias");
  CHECK_THAT(match_refusal(tensors, config, naming),
             ContainsSubstring("m.safetensors") && ContainsSubstring("'blocks.1.mlp.fc1.bias' is missing") &&
                 ContainsSubstring("[768]"));
  tensors = whole;
  tensors["pos_embed"] = {1, 196, 192};
  CHECK_THAT(match_refusal(tensors, config, naming),
             ContainsSubstring("'pos_embed' has shape [1, 196, 192], expected [1, 197, 192]"));
  tensors = whole;
  tensors["blocks.3.norm1.weight"] = {192};
  CHECK_THAT(match_refusal(tensors, config, naming),
             ContainsSubstring("'blocks.3.norm1.weight' [192] is left over"));
  tensors = whole;
  tensors["head.weight"] = {192, 1000};
  CHECK_THAT(match_refusal(tensors, config, naming),
             ContainsSubstring("'head.weight'") && ContainsSubstring("[1000, 192]"));
  ViTConfig scaled = config;
  scaled.layer_scale = true;
  CHECK_THAT(match_refusal(checkpoint(config, "torchvision"), scaled, {&family_named("torchvision"), ""}),
             ContainsSubstring("ls1.gamma") && ContainsSubstring("no name for"));
  // Leading ones of tokens mean nothing; a model asked for without its head leaves the head alone.
  tensors = whole;
  tensors["cls_token"] = {192};
  ViTConfig headless = config;
  headless.classes = 0;
  CHECK_NOTHROW(match_tensors(tensors, headless, naming, "m"));
}

TEST_CASE("a file of no known family lists the families") {
  const auto refusal = [](const TensorShapes& tensors) -> std::string {
    try {
      recognise(tensors, "m.safetensors");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      return error.what();
    }
    return "recognised";
  };
  CHECK_THAT(refusal({{"layers.0.weight", {1}}}),
             ContainsSubstring("'layers.0.weight'") && ContainsSubstring("torchvision"));
  CHECK_THAT(refusal({}), ContainsSubstring("no tensors"));
  // A patch projection alone is not enough: DINOv2 shares it with ViT.
  CHECK_THAT(refusal({{"embeddings.patch_embeddings.projection.weight", {8, 3, 2, 2}}}),
             ContainsSubstring("expected one of"));
}

TEST_CASE("sizes that no inference can make sense of are refused") {
  TensorShapes tensors = checkpoint(small("vit_tiny_patch16_224"), "timm");
  const auto refusal = [&](const char* name, std::vector<uint64_t> shape) -> std::string {
    TensorShapes changed = tensors;
    changed[name] = std::move(shape);
    try {
      infer_config(changed, recognise(changed, "m"), "m").validate("m");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      return error.what();
    }
    return "accepted";
  };
  CHECK_THAT(refusal("patch_embed.proj.weight", {192, 768}), ContainsSubstring("rank 4"));
  CHECK_THAT(refusal("patch_embed.proj.weight", {}), ContainsSubstring("rank 4"));
  CHECK_THAT(refusal("patch_embed.proj.weight", {192, 3, 0, 16}), ContainsSubstring("extents"));
  CHECK_THAT(refusal("patch_embed.proj.weight", {1ull << 40, 3, 16, 16}), ContainsSubstring("extents"));
  CHECK_THAT(refusal("patch_embed.proj.weight", {100, 3, 16, 16}), ContainsSubstring("--set heads=N"));
  CHECK_THAT(refusal("pos_embed", {1, 200, 192}), ContainsSubstring("square"));
  CHECK_THAT(refusal("pos_embed", {}), ContainsSubstring("pos_embed"));
  CHECK_THAT(refusal("head.weight", {}), ContainsSubstring("rank 2"));
  CHECK_THAT(refusal("blocks.0.mlp.fc1.weight", {1}), ContainsSubstring("rank 2"));
}

TEST_CASE("a width without a usual head count asks for one") {
  ViTConfig config = small("vit_tiny_patch16_224");
  config.dim = 24;
  for (const char* family : {"timm", "hf", "torchvision"}) {
    INFO(family);
    const TensorShapes tensors = checkpoint(config, family);
    const Naming naming = recognise(tensors, "m");
    CHECK(infer_config(tensors, naming, "m").heads == 0);
    CHECK_THROWS_AS(infer_config(tensors, naming, "m").validate("m"), Error);
    CHECK(infer_config(tensors, naming, "m", {.heads = 3}).heads == 3);
  }
}

TEST_CASE("hints decide what names cannot tell") {
  ViTConfig config = small("vit_tiny_patch16_224");
  config.image_width = 448;
  config.heads = 6;
  const TensorShapes tensors = checkpoint(config, "timm");
  const Naming naming = recognise(tensors, "m");
  check_same(infer_config(tensors, naming, "m", {.heads = 6, .image_height = 224, .image_width = 448}),
             config);
}

TEST_CASE("Hugging Face's config.json is obeyed") {
  ViTConfig config = small("vit_tiny_patch16_224");
  config.classes = 5;
  const TensorShapes tensors = checkpoint(config, "hf", "vit.");
  const Naming naming = recognise(tensors, "m");
  nlohmann::json json = {{"model_type", "vit"},
                         {"architectures", {"ViTForImageClassification"}},
                         {"hidden_size", 192},
                         {"num_hidden_layers", 3},
                         {"num_attention_heads", 4},
                         {"intermediate_size", 768},
                         {"hidden_act", "quick_gelu"},
                         {"layer_norm_eps", 1e-5},
                         {"id2label", {{"0", "a"}, {"1", "b"}, {"2", "c"}, {"3", "d"}, {"4", "e"}}}};
  ViTConfig read = read_config(json, tensors, naming, "config.json");
  CHECK(read.heads == 4);
  CHECK(read.classes == 5);
  CHECK(read.activation == Activation::gelu_quick);
  CHECK(read.eps == 1e-5);
  CHECK_NOTHROW(match_tensors(tensors, read, naming, "m"));

  json["architectures"] = {"ViTModel"};
  CHECK(read_config(json, tensors, naming, "config.json").classes == 0);
  const auto refusal = [&](const char* key, const nlohmann::json& value) -> std::string {
    nlohmann::json changed = json;
    changed[key] = value;
    try {
      read_config(changed, tensors, naming, "config.json").validate("config.json");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      return error.what();
    }
    return "accepted";
  };
  CHECK_THAT(refusal("hidden_size", -1),
             ContainsSubstring("\"hidden_size\" is -1") && ContainsSubstring("whole number"));
  CHECK_THAT(refusal("hidden_size", 1e12), ContainsSubstring("hidden_size"));
  CHECK_THAT(refusal("hidden_size", 1'000'000'000'000), ContainsSubstring("dim is 1000000000000"));
  CHECK_THAT(refusal("hidden_act", "mish"), ContainsSubstring("mish"));
  CHECK_THAT(refusal("image_size", {1, 2, 3}), ContainsSubstring("image_size"));
  CHECK_THAT(refusal("model_type", "bert"),
             ContainsSubstring("\"bert\"") && ContainsSubstring("vit, deit, dinov2"));
  CHECK_THAT(refusal("model_type", "dinov2"),
             ContainsSubstring("dinov2") && ContainsSubstring("Hugging Face ViT or DeiT"));
  CHECK_THAT(refusal("qkv_bias", "yes"), ContainsSubstring("true or false"));
}

TEST_CASE("this project's own config.json is a list of fields") {
  const TensorShapes tensors = checkpoint(small("vit_tiny_patch16_224"), "timm");
  const Naming naming = recognise(tensors, "m");
  const nlohmann::json json = {
      {"vitrine", {{"dim", 64}, {"pool", "mean"}, {"eps", 1e-5}, {"class_token", false}}}};
  const ViTConfig own = read_config(json, tensors, naming, "config.json");
  CHECK(own.dim == 64);
  CHECK(own.eps == 1e-5);
  CHECK_THROWS_AS(read_config({{"vitrine", {{"dim", "wide"}}}}, tensors, naming, "config.json"), Error);
  CHECK_THROWS_AS(read_config({{"nothing", 1}}, tensors, naming, "config.json"), Error);
  CHECK_THROWS_AS(read_config(nlohmann::json::array(), tensors, naming, "config.json"), Error);
}

TEST_CASE("the head of an adapter has a name where the family's library has no classifier") {
  const ViTConfig config = small("vit_tiny_patch16_224");
  const auto head = [&](const char* family, Module module) {
    return library_head(module, config, {&family_named(family), ""});
  };
  CHECK(head("timm", Module::head) == "head");
  CHECK(head("hf_dinov3", Module::head) == "classifier");
  CHECK(head("hf_dinov3", Module::distillation_head).empty());
}

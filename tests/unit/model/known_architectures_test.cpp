// What names and shapes don't tell is taken from published models, asked for, or assumed with a word.
#include "model/families/known_architectures.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "model/families/foreign.h"
#include "model/families/wrappers.h"
#include "model/files/weights.h"
#include "model/vit/presets.h"
#include "tests/support/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace vitrine {
namespace {

// As a checkpoint of this model in this family's names has them.
TensorShapes tensors_of(const ViTConfig& config, const char* family) {
  TensorShapes tensors;
  const Naming naming{&family_named(family), ""};
  for (const Parameter& parameter : parameters_of(config)) {
    if (!parameter.learned()) continue;
    for (const FilePart& part : file_parts(parameter, config, naming, {})) tensors[part.name] = part.shape;
  }
  return tensors;
}

struct Opened {
  ViTConfig config;
  std::vector<std::string> assumed;
  std::string refusal;
};

Opened open(const TensorShapes& tensors, const InferHints& hints = {}) {
  Opened opened;
  try {
    const Naming naming = recognise(tensors, "m");
    opened.config = infer_config(tensors, naming, "m", hints);
    fill_unseen(opened.config, naming, hints, "m", opened.assumed);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    opened.refusal = error.what();
  }
  return opened;
}

}  // namespace

TEST_CASE("a published model without a config.json has its own heads and activation, or is asked about") {
  std::map<std::string_view, std::set<std::pair<uint64_t, Activation>>> by_key;
  for (const KnownArchitecture& known : known_architectures()) {
    if (known.lacks.empty() && known.family != "timm_naflex")
      by_key[known.key].insert({known.heads, known.activation});
  }
  size_t opened_silently = 0, asked = 0;
  for (const KnownArchitecture& known : known_architectures()) {
    const auto preset_of_it = find_preset(known.name);
    if (!preset_of_it) continue;
    INFO(known.name);
    const ViTConfig& config = *preset_of_it;
    CHECK(known.heads == config.heads);
    CHECK(known.activation == config.activation);
    CHECK(known.eps == config.eps);
    ViTConfig made = config_of(known);
    made.image_height = config.image_height;
    made.image_width = config.image_width;
    made.classes = config.classes;
    made.layer_scale_init = config.layer_scale_init;
    made.stochastic_depth = config.stochastic_depth;
    CHECK(to_string(made.resolved()) == to_string(config.resolved()));
    const TensorShapes tensors = tensors_of(config, std::string(known.family).c_str());
    const Opened opened = open(tensors);
    CHECK(opened.assumed.empty());
    if (by_key[known.key].size() > 1) {
      ++asked;
      CHECK_THAT(opened.refusal, ContainsSubstring("--set") && ContainsSubstring(" or "));
      const Opened said = open(tensors, {.heads = config.heads, .activation = config.activation});
      CHECK(said.refusal.empty());
      CHECK(said.config.heads == config.heads);
      continue;
    }
    ++opened_silently;
    CHECK(opened.refusal.empty());
    CHECK(architecture_key(opened.config) == known.key);
    CHECK(opened.config.heads == config.heads);
    CHECK(opened.config.activation == config.activation);
    CHECK(opened.config.eps == config.eps);
  }
  CHECK(opened_silently > 100);
  CHECK(asked > 10);
}

TEST_CASE("a published model with fewer blocks is still told by the others' shapes") {
  ViTConfig config = preset("vit_base_patch16_clip_quickgelu_224");
  config.depth = 2;
  CHECK_THAT(open(tensors_of(config, "timm")).refusal, ContainsSubstring("activation=gelu_quick"));
  config = preset("vit_large_patch16_224");
  config.depth = 2;
  const Opened opened = open(tensors_of(config, "timm"));
  CHECK(opened.config.heads == 16);
  CHECK(opened.assumed.empty());
}

TEST_CASE("what only a name tells from a plain model is taken from the published one of these shapes") {
  ViTConfig config = preset("vit_base_patch16_224");
  config.class_token = false;
  config.qkv_bias = false;
  config.final_norm = false;
  config.fc_norm = true;
  config.pool = Pool::mean;
  const Opened opened = open(tensors_of(config, "timm"));
  CHECK(opened.refusal.empty());
  CHECK(opened.assumed.empty());
  CHECK(opened.config.post_norm);  // vit_base_patch16_rpn_224's
}

TEST_CASE("rotary positions without a config.json are a published model's, and asked for where two differ") {
  ViTConfig config = preset("vit_small_patch16_224");
  config.positions = Positions::none;
  config.registers = 4;
  config.layer_scale = true;
  config.classes = 0;
  config.key_bias = false;
  TensorShapes tensors = tensors_of(config, "hf_dinov3");
  Opened opened = open(tensors);
  CHECK(opened.refusal.empty());
  CHECK(opened.config.rotary == Rotary::halves);
  CHECK(opened.config.rotary_base == 100);
  CHECK(opened.config.rotary_centered);
  CHECK(opened.config.heads == 6);
  CHECK(opened.config.pool == Pool::token);
  CHECK_FALSE(opened.config.key_bias);
  // The heads of H+ are no rule's.
  for (const char* family : {"hf_dinov3", "meta_dinov3"}) {
    ViTConfig huge = config;
    huge.dim = 1280;
    huge.depth = 32;
    huge.heads = 20;
    huge.mlp = MlpKind::swiglu;
    huge.mlp_hidden = 5120;
    TensorShapes names = tensors_of(huge, family);
    if (family == std::string("meta_dinov3")) {
      names["rope_embed.periods"] = {16};
      names["blocks.0.attn.qkv.bias_mask"] = {3840};
    } else {
      for (uint64_t block = 0; block < huge.depth; ++block) {
        const std::string mlp = "layer." + std::to_string(block) + ".mlp.";
        names[mlp + "up_proj.weight"] = names[mlp + "gate_proj.weight"] = {5120, 1280};
        names[mlp + "up_proj.bias"] = names[mlp + "gate_proj.bias"] = {5120};
      }
    }
    const Opened found = open(names);
    CHECK(found.refusal.empty());
    CHECK(found.assumed.empty());
    CHECK(found.config.heads == 20);
    CHECK(found.config.rotary_base == 100);
  }
  // timm's of these names are pooled in two ways.
  tensors.clear();
  for (const auto& [name, shape] : tensors_of(config, "timm")) {
    std::string called = name;
    if (const size_t at = name.find(".ls"); at != name.npos)
      called = name.substr(0, at) + ".gamma_" + name[at + 3];
    if (!called.ends_with("qkv.bias")) tensors[called] = shape;
  }
  for (const char* bias : {"q_bias", "v_bias"}) {
    for (uint64_t block = 0; block < config.depth; ++block)
      tensors["blocks." + std::to_string(block) + ".attn." + bias] = {config.dim};
  }
  opened = open(tensors);
  CHECK_THAT(opened.refusal, ContainsSubstring("--set pool=mean (vit_small_patch16_dinov3_qkvb)") &&
                                 ContainsSubstring("vit_small_patch16_lingbot"));
  opened = open(tensors, {.fields = {{"pool", "token"}}});
  CHECK(opened.refusal.empty());
  CHECK(opened.config.rotary_centered);
}

TEST_CASE("a model of other blocks than the plain one is told by its names, without a config.json") {
  size_t opened_silently = 0;
  for (const KnownArchitecture& known : known_architectures()) {
    const std::string key = " " + std::string(known.key) + " ";
    const auto has = [&](const char* word) { return key.find(word) != key.npos; };
    const bool parallel = has(" parallel ");
    if (!parallel && !has(" branches2 ") && !has(" differential ") && !has(" talking_heads ")) continue;
    INFO(known.name);
    ViTConfig config = config_of(known);
    config.depth = 2;
    TensorShapes tensors;
    for (const auto& [named, extents] : tensors_of(config, std::string(known.family).c_str())) {
      std::string name = named;
      std::vector<uint64_t> shape = extents;
      if (has(" gammas ") && name.find(".ls") != name.npos) {
        const size_t at = name.find(".ls");
        name = name.substr(0, at) + ".gamma_" + name[at + 3];
      }
      // The MLP's bias alone, where queries, keys and values have none.
      if (const size_t at = name.find("in_proj.bias"); at != name.npos && !config.qkv_bias) {
        name.replace(at, name.npos, "mlp_bias");
        shape = {config.mlp_width()};
      }
      // One product of both, where the attention's has no bias of its own.
      if (parallel && !config.projection_bias && name.find("attn_out_proj") != name.npos) continue;
      if (const size_t at = name.find("mlp_out_proj"); at != name.npos && !config.projection_bias) {
        name.erase(at, std::string("mlp_").size());
        if (shape.size() == 2) shape[1] += config.value_columns();
      }
      tensors[name] = shape;
    }
    const Opened opened = open(tensors);
    CHECK(opened.refusal.empty());
    CHECK(opened.assumed.empty());
    ViTConfig found = opened.config.resolved();
    found.position_resize = config.position_resize;
    CHECK(to_string(found) == to_string(config.resolved()));
    CHECK_NOTHROW(match_tensors(tensors, opened.config, recognise(tensors, "m"), "m"));
    ++opened_silently;
  }
  CHECK(opened_silently == 19);
}

TEST_CASE("heads that no published model tells are assumed with a word, and not where they are said") {
  ViTConfig config = preset("vit_tiny_patch16_224");
  config.fc_norm = true;
  config.final_norm = false;
  const Opened like = open(tensors_of(config, "timm"));
  REQUIRE(like.assumed.size() == 1);
  CHECK_THAT(like.assumed[0], ContainsSubstring("3 heads") && ContainsSubstring("vit_tiny_patch16_224"));
  config.dim = 320;
  const Opened alone = open(tensors_of(config, "timm"));
  REQUIRE(alone.assumed.size() == 1);
  CHECK_THAT(alone.assumed[0], ContainsSubstring("5 heads"));
  CHECK(open(tensors_of(config, "timm"), {.heads = 10}).assumed.empty());
  // Published ones that are like it contradict each other.
  ViTConfig gap = preset("vit_base_patch16_224");
  gap.class_token = false;
  gap.pool = Pool::mean;
  gap.layer_scale = true;
  CHECK_THAT(open(tensors_of(gap, "timm")).refusal,
             ContainsSubstring("heads=16") && ContainsSubstring("heads=12"));
}

TEST_CASE("the activation of Hugging Face's CLIP without a config.json is assumed with a word") {
  ViTConfig config = preset("vit_base_patch32_clip_224");
  config.classes = 0;
  const TensorShapes tensors = tensors_of(config, "hf_clip");
  const Opened opened = open(tensors, {.heads = 12});
  CHECK(opened.config.activation == Activation::gelu_quick);
  REQUIRE(opened.assumed.size() == 1);
  CHECK_THAT(opened.assumed[0],
             ContainsSubstring("gelu_quick") && ContainsSubstring("--set activation=gelu"));
  CHECK(open(tensors, {.heads = 12, .activation = Activation::gelu}).assumed.empty());
}

TEST_CASE("rotary positions of heads that nothing tells are asked about, and other periods are refused") {
  const std::string file = std::string(VITRINE_TEST_DATA) + "/parity/fixtures/meta_dinov3/model.safetensors";
  const auto refusal = [&](std::vector<std::string> set) -> std::string {
    try {
      open_model({.model = file, .set = std::move(set)});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK_THAT(refusal({}), ContainsSubstring("--set heads=N"));
  CHECK(refusal({"heads=3"}) == "accepted");
  CHECK_THAT(refusal({"heads=3", "rotary_base=99"}), ContainsSubstring("rope_embed.periods"));
}

TEST_CASE("models that aren't computed are refused by what they are") {
  const std::string fixture = std::string(VITRINE_TEST_DATA) + "/parity/fixtures/foreign_tensors.json";
  const nlohmann::json json = nlohmann::json::parse(test::read_whole_file(fixture));
  const auto refusal = [](const TensorShapes& tensors) -> std::string {
    try {
      refuse_foreign(tensors, "m");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      return error.what();
    }
    return "not refused";
  };
  REQUIRE(json.at("models").size() >= 13);
  for (const nlohmann::json& model : json.at("models")) {
    const auto name = model.at("name").get<std::string>(), called = model.at("called").get<std::string>();
    INFO(name);
    const auto tensors = model.at("tensors").get<TensorShapes>();
    CHECK_THAT(refusal(tensors), ContainsSubstring(called) && ContainsSubstring("not supported yet"));
    TensorShapes within;
    for (const auto& [inner, shape] : tensors) within["model." + inner] = shape;
    CHECK_THAT(refusal(within), ContainsSubstring(called));
    if (!model.contains("type")) continue;
    const auto sentence = foreign_type(model.at("type").get<std::string>());
    if (sentence) CHECK_THAT(*sentence, ContainsSubstring(called));
  }
  CHECK(!foreign_type("vit"));
  CHECK_THAT(refusal({{"patch_embed.backbone.stages.0.blocks.0.conv_dw.weight", {96, 1, 7, 7}}}),
             ContainsSubstring("convolutions of that kind in front"));
  for (const std::string_view arch : preset_names()) {
    INFO(arch);
    const ViTConfig config = preset(arch);
    if (!config.per_head_maps) CHECK(refusal(tensors_of(config, "timm")) == "not refused");
  }
}

TEST_CASE("a model within another one is found by its own names") {
  const ViTConfig config = preset("vit_tiny_patch16_224");
  const TensorShapes plain = tensors_of(config, "timm");
  CHECK(unwrap(plain, "m").outer.empty());
  CHECK(unwrap(plain, "m").tensors == plain);
  for (const std::string outer :
       {"module.", "_orig_mod.", "timm_model.", "_backbone.model.", "model.vision_tower."}) {
    TensorShapes wrapped;
    for (const auto& [name, shape] : plain) wrapped[outer + name] = shape;
    wrapped["lm_head.weight"] = {10, 10};
    const Unwrapped found = unwrap(wrapped, "m");
    CHECK(found.outer == outer);
    CHECK(found.tensors == plain);
    CHECK(found.name_in_file("cls_token") == outer + "cls_token");
    CHECK(found.passed_over == std::vector<std::string>{"lm_head.weight"});
  }
  // What Hugging Face's classes put in front is the family's own, and heads lie beside it.
  TensorShapes hugging_face;
  for (const auto& [name, shape] : tensors_of(config, "hf")) {
    hugging_face[(name.starts_with("classifier") ? "module." : "module.vit.") + name] = shape;
  }
  const Unwrapped found = unwrap(hugging_face, "m");
  CHECK(found.outer == "module.");
  CHECK(found.tensors.contains("vit.embeddings.cls_token"));
  CHECK(found.tensors.contains("classifier.weight"));
  // A classifier beside a tower of another name.
  TensorShapes beside;
  for (const auto& [name, shape] : tensors_of(config, "hf")) {
    beside[(name.starts_with("classifier") ? "" : "encoder_q.") + name] = shape;
  }
  CHECK(unwrap(beside, "m").name_in_file("classifier.weight") == "classifier.weight");
  CHECK(unwrap(beside, "m").name_in_file("embeddings.cls_token") == "encoder_q.embeddings.cls_token");

  // What transformers 5 saves under other names than the modules have.
  for (const auto& [tower, own, saved] :
       {std::tuple{"vit.", "vit.encoder.layer.", "encoder.layer."},
        std::tuple{"vision_model.", "vision_model.encoder.layers.", "vision_model.encoder.layer."}}) {
    const std::string inner = tower;
    ViTConfig other = config;
    other.classes = 0;
    if (inner == "vision_model.") {
      other.pre_norm = other.fc_norm = true;
      other.patch_bias = other.final_norm = false;
    }
    const char* family = inner == "vit." ? "hf" : "hf_clip";
    for (const std::string outer : {"", "module."}) {
      TensorShapes modules, in_file;
      for (const auto& [name, shape] : tensors_of(other, family)) {
        const std::string called = outer + inner + name;
        modules[inner + name] = shape;
        in_file[called.starts_with(outer + own) ? outer + saved + called.substr((outer + own).size())
                                                : called] = shape;
      }
      CHECK(in_file.lower_bound(outer + saved)->first.starts_with(outer + saved));
      const Unwrapped unwrapped = unwrap(in_file, "m");
      CHECK(unwrapped.tensors == modules);
      for (const auto& [name, shape] : modules) CHECK(in_file.contains(unwrapped.name_in_file(name)));
      CHECK(recognise(unwrapped.tensors, "m").family->name == family);
    }
  }

  TensorShapes two;
  for (const auto& [name, shape] : plain) two["student." + name] = two["teacher." + name] = shape;
  try {
    unwrap(two, "m");
    FAIL("two models are taken for one");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("'student.'") && ContainsSubstring("'teacher.'"));
  }
}

}  // namespace vitrine

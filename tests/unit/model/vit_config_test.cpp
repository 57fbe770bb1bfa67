#include "model/vit/vit_config.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <map>

#include "model/families/known_architectures.h"
#include "model/vit/parameters.h"
#include "model/vit/presets.h"
#include "model/vit/stem.h"

using namespace vitrine;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

namespace {

// The sentence that `config` is refused with; fails when it isn't, or not as a bad file.
std::string refusal(const ViTConfig& config) {
  try {
    config.validate("c.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    return error.what();
  }
  FAIL("was not refused");
  return {};
}

std::string set_refusal(const char* assignment) {
  ViTConfig config;
  try {
    set_field(config, assignment);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
  FAIL("was not refused");
  return {};
}

}  // namespace

TEST_CASE("the option --set reads every field that fields_of writes") {
  ViTConfig config = preset("myvit_mnist");
  config.qk_scale = 0.1;
  config.eps = 1e-12;
  config.mlp = MlpKind::swiglu;
  config.activation = Activation::gelu_quick;
  config.position_span = PositionSpan::class_and_patches;
  config.pool = Pool::mean;
  config.stochastic_depth = 0.25;
  config.stem = Stem::bit;
  config.stem_blocks = {3, 4, 9};
  config.global_blocks = {2, 5, 11};
  config.window = 14;
  ViTConfig copy;
  for (const auto& [key, value] : fields_of(config)) set_field(copy, key + "=" + value);
  CHECK(copy == config);
  CHECK(fields_of(config).size() == 86);
}

TEST_CASE("the option --set names the field, what was found and what was expected") {
  CHECK_THAT(set_refusal("heads"), ContainsSubstring("'heads'") && ContainsSubstring("KEY=VALUE"));
  CHECK_THAT(set_refusal("heads=-1"),
             ContainsSubstring("heads") && ContainsSubstring("'-1'") && ContainsSubstring("whole number"));
  CHECK_THAT(set_refusal("heads=12x"), ContainsSubstring("'12x'"));
  CHECK_THAT(set_refusal("eps=nan"), ContainsSubstring("a number"));
  CHECK_THAT(set_refusal("qkv_bias=maybe"), ContainsSubstring("true or false"));
  CHECK_THAT(set_refusal("pool=max"), ContainsSubstring("token, mean, token_and_mean, attention"));
  CHECK_THAT(set_refusal("stem_blocks=1,2,3,4,5"), ContainsSubstring("up to four whole numbers"));
  CHECK_THAT(set_refusal("heds=1"), ContainsSubstring("'heds'") && ContainsSubstring("such as heads"));
  ViTConfig config;
  set_field(config, "image_size=96");
  set_field(config, "patch_size=8");
  CHECK(config.image_height == 96);
  CHECK(config.image_width == 96);
  CHECK(config.patches() == 144);
}

TEST_CASE("fields left at 0 follow the rule beside them") {
  ViTConfig config;
  CHECK(config.head_key_width() == 64);
  CHECK(config.mlp_width() == 3072);
  CHECK(config.attention_scale() == 0.125);
  config.dim = 1536;
  config.mlp = MlpKind::swiglu;
  CHECK(config.mlp_width() == 4096);
  config.qk_scale = 0.25;
  CHECK(config.attention_scale() == 0.25);
}

TEST_CASE("every preset is valid and counts its published parameters") {
  for (const std::string_view name : preset_names()) {
    INFO(name);
    CHECK_NOTHROW(preset(name).validate(std::string(name)));
  }
  const std::pair<const char*, uint64_t> published[] = {
      {"vit_tiny_patch16_224", 5'717'416},
      {"vit_small_patch16_224", 22'050'664},
      {"vit_base_patch16_224", 86'567'656},
      {"vit_base_patch32_224", 88'224'232},
      {"vit_large_patch16_224", 304'326'632},
      {"vit_huge_patch14_224", 632'045'800},
      {"deit_tiny_distilled_patch16_224", 5'910'800},
      {"deit_base_distilled_patch16_224", 87'338'192},
      {"vit_b_16", 86'567'656},
      {"vit_l_32", 306'535'400},
      {"vit_small_patch14_dinov2", 22'056'192},
      {"vit_giant_patch14_dinov2", 1'136'479'232},
      {"vit_base_patch16_gap_224", 86'566'120},
      {"vit_medium_patch16_reg4_gap_256", 38'881'768},
      {"vit_so150m_patch16_reg4_map_256", 141'481'064},
      {"vit_so150m2_patch16_reg1_gap_256", 136'059'560},
      {"vit_intern300m_patch14_448", 304'012'288},
      {"vit_base_patch16_clip_quickgelu_224", 86'193'152},
      {"vit_gigantic_patch14_clip_224", 1'844'908'544},
      {"vit_giant_patch14_reg1_tipsv2", 1'135'949'312},
      {"vit_base_patch16_siglip_224", 92'884'224},
      {"vit_so400m_patch14_siglip_384", 428'225'600},
      {"vit_giantopt_patch16_siglip_256", 1'163'168'256},
      {"vit_large_patch16_siglip_gap_512", 304'147'456},
      {"flexivit_base", 86'589'160},
      {"myvit_mnist", 1'642},
  };
  for (const auto& [name, count] : published) {
    INFO(name);
    CHECK(parameter_count(preset(name)) == count);
  }
}

TEST_CASE("FLOPs are the multiply-adds of the matrix products, counted twice") {
  // Per block 197 tokens x 12 x 768^2, and 2 x 197^2 x 768; 196 patches x 768 x 768; 768 x 1000.
  const double expected =
      2.0 * (12.0 * (197.0 * 12 * 768 * 768 + 2.0 * 197 * 197 * 768) + 196.0 * 768 * 768 + 768.0 * 1000);
  CHECK_THAT(flops(preset("vit_base_patch16_224"), 1), WithinRel(expected, 1e-12));
  CHECK_THAT(flops(preset("vit_base_patch16_224"), 8), WithinRel(8 * expected, 1e-12));
  CHECK(flops(preset("cifar_vit"), 1) > 1e9);
}

TEST_CASE("a tag behind an architecture's name is not looked at, and typing errors get suggestions") {
  CHECK(preset("vit_tiny_patch16_224.augreg_in21k") == preset("vit_tiny_patch16_224"));
  try {
    architecture("vit_base_patch16_225");
    FAIL("was not refused");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    CHECK_THAT(error.what(), ContainsSubstring("vit_base_patch16_224"));
  }
}

TEST_CASE("validation names the first field that makes no sense") {
  const auto refused = [](const std::function<void(ViTConfig&)>& change) {
    ViTConfig config;
    change(config);
    return refusal(config);
  };
  CHECK_THAT(refused([](ViTConfig& c) { c.dim = 0; }),
             ContainsSubstring("c.json") && ContainsSubstring("dim is 0"));
  CHECK_THAT(refused([](ViTConfig& c) { c.heads = 7; }), ContainsSubstring("multiple of the 7 heads"));
  CHECK_THAT(refused([](ViTConfig& c) { c.heads = 0; }), ContainsSubstring("--set heads=N"));
  CHECK_THAT(refused([](ViTConfig& c) { c.heads = 1; }), ContainsSubstring("key_width is 768"));
  CHECK_THAT(refused([](ViTConfig& c) { c.patch_width = 225; }), ContainsSubstring("patch_width is 225"));
  CHECK_THAT(refused([](ViTConfig& c) { c.eps = 0; }), ContainsSubstring("eps"));
  CHECK_THAT(refused([](ViTConfig& c) { c.class_token = false; }), ContainsSubstring("pool=mean"));
  CHECK_THAT(refused([](ViTConfig& c) { c.pool = Pool::token_and_mean, c.class_token = false; }),
             ContainsSubstring("token_and_mean"));
  CHECK_THAT(refused([](ViTConfig& c) { c.pool = Pool::token_and_mean, c.fc_norm = true; }),
             ContainsSubstring("fc_norm"));
  CHECK_THAT(refused([](ViTConfig& c) { c.pool = Pool::attention, c.pool_heads = 7; }),
             ContainsSubstring("multiple of the 7 heads of the pooling"));
  CHECK_THAT(refused([](ViTConfig& c) { c.rotary = Rotary::halves, c.key_width = 66; }),
             ContainsSubstring("a multiple of 4"));
  CHECK_THAT(refused([](ViTConfig& c) { c.rotary = Rotary::halves, c.rotary_base = 0; }),
             ContainsSubstring("rotary_base"));
  CHECK_THAT(refused([](ViTConfig& c) { c.rotary_learned = true; }), ContainsSubstring("rotary_learned"));
  CHECK_THAT(refused([](ViTConfig& c) { c.post_norm = c.layer_scale = true; }),
             ContainsSubstring("post_norm"));
  CHECK_THAT(
      refused([](ViTConfig& c) { c.pool = Pool::attention, c.heads = 7, c.key_width = c.value_width = 9; }),
      ContainsSubstring("heads of the pooling"));
  CHECK_THAT(refused([](ViTConfig& c) { c.embedding_size = c.representation_size = 9; }),
             ContainsSubstring("embedding_size"));
  CHECK_THAT(refused([](ViTConfig& c) { c.distilled_head = true; }), ContainsSubstring("distillation_token"));
  CHECK_THAT(refused([](ViTConfig& c) { c.projection = false, c.value_width = 32; }),
             ContainsSubstring("384 columns"));
  CHECK_THAT(refused([](ViTConfig& c) { c.dropout = 1; }), ContainsSubstring("dropout"));
  CHECK_THAT(refused([](ViTConfig& c) {
               c.patch_height = c.patch_width = 1, c.image_height = c.image_width = 1024;
             }),
             ContainsSubstring("1048577 tokens"));
  // Each size is in range, all of them together are not: about 10^12 parameters.
  CHECK_THAT(refused([](ViTConfig& c) { c.dim = 32768, c.depth = 100, c.heads = 512; }),
             ContainsSubstring("billion parameters"));
  CHECK_THAT(refused([](ViTConfig& c) { c.dim = 1'000'000'000'000; }),
             ContainsSubstring("dim is 1000000000000"));
  CHECK_THAT(refused([](ViTConfig& c) { c.registers = ~0ull; }), ContainsSubstring("registers"));
  CHECK_THAT(refused([](ViTConfig& c) { c.key_width = 1ull << 62; }), ContainsSubstring("key_width"));
}

TEST_CASE("convolutions in front of the patches share the patches' pixels") {
  ViTConfig config = find_architecture("vit_base_r50_s16_224").value();
  CHECK(config.stem_stride() == 16);
  CHECK(config.stem_channels() == 1024);
  CHECK(config.patches() == 196);
  CHECK_NOTHROW(config.validate("c.json"));
  CHECK(parameter_count(config) == 98'659'112);  // timm's, for 1000 classes
  // timm's layers as PyTorch runs them, less the patches'.
  CHECK(stem_multiply_adds(config) == 4'087'136'256.0 - 196.0 * 1024 * 768);
  CHECK(stem_multiply_adds(find_architecture("vit_base_resnet50d_224").value()) ==
        4'403'847'168.0 - 49.0 * 2048 * 768);
  CHECK(find_architecture("vit_tiny_r_s16_p8_224").value().stem_stride() == 4);
  CHECK(find_architecture("vit_base_mci_224").value().stem_channels() == 192);

  config.patch_height = 24;
  CHECK_THAT(refusal(config), ContainsSubstring("patch_height") && ContainsSubstring("multiple of the 16"));
  config.patch_height = 16;
  config.image_width = 230;
  CHECK_THAT(refusal(config), ContainsSubstring("image_width") && ContainsSubstring("whole patches of 16"));
  config.image_width = 224;
  config.stem_width = 48;
  CHECK_THAT(refusal(config), ContainsSubstring("stem_width") && ContainsSubstring("multiple of 32"));
  config.stem_width = 64;
  config.stem_blocks = {3, 0, 9};
  CHECK_THAT(refusal(config), ContainsSubstring("stage without blocks"));
  config.stem = Stem::resnet;
  config.stem_blocks = {};
  config.patch_height = config.patch_width = 16;
  CHECK_THAT(refusal(config), ContainsSubstring("stem is resnet") && ContainsSubstring("stem_blocks"));
}

TEST_CASE("parameters carry timm's names and shapes") {
  ViTConfig config = preset("deit_tiny_distilled_patch16_224");
  config.depth = 2;
  std::map<std::string, Shape> shapes;
  for (const Parameter& parameter : parameters_of(config)) shapes.emplace(parameter.name, parameter.shape);
  CHECK(shapes.size() == 7 + 2 * 12 + 4 + 2 - 2);
  CHECK(shapes.at("dist_token") == Shape{192});
  CHECK(shapes.at("pos_embed") == Shape{198, 192});
  CHECK(shapes.at("patch_embed.proj.weight") == Shape{192, 3, 16, 16});
  CHECK(shapes.at("blocks.1.attn.qkv.weight") == Shape{576, 192});
  CHECK(shapes.at("blocks.1.mlp.fc2.weight") == Shape{192, 768});
  CHECK(shapes.at("head_dist.weight") == Shape{1000, 192});

  config = preset("myvit_mnist");
  for (const Parameter& parameter : parameters_of(config)) {
    if (parameter.name == "blocks.0.attn.k.weight") CHECK(parameter.shape == Shape{2, 4, 4});
    if (parameter.name == "pos_embed") CHECK_FALSE(parameter.learned());
  }
}

TEST_CASE("sine-cosine positions follow the formula") {
  const std::vector<float> table = sincos_positions(50, 8);
  REQUIRE(table.size() == 400);
  CHECK(table[0] == 0.0f);
  CHECK(table[1] == 1.0f);
  CHECK_THAT(table[3 * 8 + 0], WithinRel(0.14112000805986721, 1e-7));   // sin 3
  CHECK_THAT(table[3 * 8 + 1], WithinRel(-0.98999249660044542, 1e-7));  // cos 3
  CHECK_THAT(table[3 * 8 + 4], WithinRel(0.029995500202495661, 1e-7));  // sin(3 / 10000^(4/8))
  CHECK_THAT(table[49 * 8 + 7], WithinRel(0.9987997401808185, 1e-7));   // cos(49 / 10000^(6/8))
}

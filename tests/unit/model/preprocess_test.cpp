// Every profile and configuration file against what the libraries made of the same pictures, bit for bit
// (tests/parity/make_preprocess_fixture.py).
#include "model/pictures/preprocess.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/files/preprocess_files.h"
#include "runtime/ops/pictures/reference_resample.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "tests/support/noise_picture.h"
#include "tests/support/temporary_folder.h"
#include "train/data/picture_dataset.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

auto says(const std::string& text) {
  return Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(text));
}

uint32_t grey(uint32_t pixel) {
  const uint32_t r = pixel & 255, g = pixel >> 8 & 255, b = pixel >> 16 & 255;
  return (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16;
}

// [channels, height, width]
std::vector<float> preprocessed(const Preprocess& p, std::vector<uint32_t> pixels, uint32_t width,
                                uint32_t height, uint64_t channels) {
  if (channels == 1) {
    for (uint32_t& pixel : pixels) pixel = grey(pixel);
  }
  const PreparedPicture prepared = prepare_picture(p, height, width, "picture");
  std::vector<uint32_t> part;
  for (uint32_t y = 0; y < prepared.resample.height; ++y) {
    const auto row = pixels.begin() + (prepared.top + y) * width + prepared.left;
    part.insert(part.end(), row, row + prepared.resample.width);
  }
  const std::vector<ResamplePicture> batch{prepared.resample};
  const auto resized = reference::resample_columns(
      batch, reference::resample_rows(batch, part, resample_needs(prepared.resample).blocks));
  const std::vector<float> values = p.values(channels);
  std::vector<float> out;
  for (uint64_t c = 0; c < channels; ++c) {
    for (const uint32_t pixel : resized) out.push_back(values[c * 256 + (pixel >> (8 * c) & 255)]);
  }
  return out;
}

Preprocess preprocess_of(const Json& entry) {
  if (entry.contains("profile")) {
    const uint64_t size = entry.at("size");
    return profile_named(entry.at("profile").get<std::string>(), size, size);
  }
  const test::TemporaryFolder folder;
  std::ofstream(folder / entry.at("file").get<std::string>()) << entry.at("json").dump();
  return read_preprocess(folder.path(), "hf", {});
}

void check_cases(const char* name, size_t least) {
  const Json file = read_json(std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "preprocessing" / name);
  CHECK(file.at("cases").size() >= least);
  for (const Json& entry : file.at("cases")) {
    const Preprocess p = preprocess_of(entry);
    INFO(entry.at("name").get<std::string>() << ": " << p.to_string());
    for (const Json& picture : entry.at("pictures")) {
      INFO(picture.dump());
      const uint32_t width = picture.at("from")[0], height = picture.at("from")[1];
      const auto& shape = picture.at("shape");
      CHECK(p.height() == shape[1].get<uint64_t>());
      CHECK(p.width() == shape[2].get<uint64_t>());
      const auto out =
          preprocessed(p, test::noise_picture(picture.at("seed"), width, height), width, height, shape[0]);
      CHECK(test::fnv(std::as_bytes(std::span(out))) == picture.at("fnv").get<std::string>());
    }
  }
}

TEST_CASE("every profile gives the libraries' tensors, bit for bit") { check_cases("profiles.json", 38); }

// tests/parity/make_fast_preprocess_fixture.py
TEST_CASE("every profile on PyTorch gives transformers' tensors, bit for bit") {
  check_cases("fast.json", 20);
}

// tests/parity/make_shapes_fixture.py
TEST_CASE("pictures that keep their shape get transformers' sizes and numbers, bit for bit") {
  const Json file =
      read_json(std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "shapes" / "pictures.json");
  CHECK(file.at("pictures").size() >= 12);
  for (const auto& [profile, hash] : {std::pair("naflex", "fnv"), std::pair("naflex-fast", "fast")}) {
    Preprocess p = profile_named(profile, 32, 32);
    p.kept_shape = KeptShape{.patch = file.at("patch"), .most_patches = file.at("most_patches")};
    for (const Json& picture : file.at("pictures")) {
      INFO(profile << ", " << picture.dump());
      const uint32_t width = picture.at("from")[0], height = picture.at("from")[1];
      const Preprocess own = p.of_picture(height, width);
      CHECK_FALSE(own.kept_shape);
      CHECK(own.height() == picture.at("shape")[1].get<uint64_t>());
      CHECK(own.width() == picture.at("shape")[2].get<uint64_t>());
      const auto out =
          preprocessed(own, test::noise_picture(picture.at("seed"), width, height), width, height, 3);
      CHECK(test::fnv(std::as_bytes(std::span(out))) == picture.at(hash).get<std::string>());
    }
  }
  const Preprocess one = profile_named("hf", 32, 32);
  CHECK(one.of_picture(7, 9) == one);
}

TEST_CASE("a processor whose pictures keep their shape is read, and written") {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "preprocessor_config.json")
      << R"({"image_processor_type": "Siglip2ImageProcessor", "patch_size": 8, "max_num_patches": 20})";
  ViTConfig config;
  config.image_height = config.image_width = 32;
  config.patch_height = config.patch_width = 8;
  const Preprocess p = read_preprocess(folder.path(), "hf_siglip2", config);
  CHECK(p.kept_shape == KeptShape{.patch = 8, .most_patches = 20});
  CHECK(p.height() == 32);
  CHECK(p.filter == Filter::bilinear);
  CHECK(p.to_string() == "resize to up to 20 whole patches of 8 x 8 in the picture's shape (bilinear)");
  const Json written(hugging_face_json(p));
  CHECK(written.at("image_processor_type") == "Siglip2ImageProcessor");
  CHECK(read_hugging_face_preprocess(written, "", "f") == p);
  CHECK(vitrine::preprocess_of(Json(to_json(p)), {}, "f") == p);
  // Without a file the family says so.
  std::filesystem::remove(folder / "preprocessor_config.json");
  CHECK(read_preprocess(folder.path(), "hf_siglip2", config).kept_shape == KeptShape{.patch = 8});
  // A size that is asked for is everybody's.
  CHECK_FALSE(p.with_size(64, 48).kept_shape);
  const auto refused = [&](KeptShape shape) {
    Preprocess bad = p;
    bad.kept_shape = shape;
    CHECK_THROWS_MATCHES(bad.validate("f"), Error, says("found up to"));
  };
  refused({.patch = 0});
  refused({.most_patches = 0});
  refused({.patch = 1u << 10, .most_patches = 17});
}

TEST_CASE("a processor of pictures and words is read for its pictures") {
  const test::TemporaryFolder folder;
  const std::string text = R"({"processor_class": "CLIPProcessor", "image_processor":
      {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 40}, "crop_size": 36}})";
  std::ofstream(folder / "processor_config.json") << text;
  const Preprocess p = read_preprocess(folder.path(), "hf_clip", {});
  CHECK(p.resize_height == 40);
  CHECK(p.crop_height == 36);
  // One that is about words alone says nothing.
  std::ofstream(folder / "processor_config.json") << R"({"processor_class": "CLIPProcessor"})";
  CHECK(read_preprocess(folder.path(), "hf_clip", {}).crop_height == 224);
  // A file of its own goes first.
  std::ofstream(folder / "processor_config.json") << text;
  std::ofstream(folder / "preprocessor_config.json")
      << R"({"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 50}, "crop_size": 48})";
  CHECK(read_preprocess(folder.path(), "hf_clip", {}).crop_height == 48);
}

TEST_CASE("the processors of BEiT and DINOv3 are read, and what DINOv3's does otherwise is said") {
  const test::TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    std::ofstream(folder / "preprocessor_config.json") << text;
    return read_preprocess(folder.path(), "hf_beit", {});
  };
  const Preprocess beit =
      read(R"({"feature_extractor_type": "BeitFeatureExtractor", "size": 96, "crop_size": 96,
      "do_center_crop": false, "resample": 2})");
  CHECK(beit.resize == ResizeRule::stretch);
  CHECK(beit.crop == CropRule::none);
  CHECK(beit.height() == 96);
  CHECK(beit.filter == Filter::bilinear);
  CHECK(beit.resampler == Resampler::pillow);
  CHECK(beit.remark.empty());
  CHECK_THROWS_AS(read(R"({"image_processor_type": "BeitImageProcessor", "do_center_crop": true})"), Error);
  const Preprocess dinov3 = read(R"({"image_processor_type": "DINOv3ViTImageProcessorFast",
      "size": {"height": 224, "width": 224}, "rescale_factor": 0.00392156862745098})");
  CHECK(dinov3.resampler == Resampler::torch);
  CHECK(dinov3.filter == Filter::bilinear);
  CHECK(dinov3.mean == std::vector{0.485, 0.456, 0.406});
  CHECK(dinov3.remark.find("up to a level") != std::string::npos);
}

TEST_CASE("files become pixels as each library's loader has it") {
  for (const char* name : {"hf", "clip-fast", "siglip", "naflex", "hf-deit", "hf-dinov2", "hf-dinov3-fast"}) {
    INFO(name);
    const Preprocess p = profile_named(name, 224, 224);
    CHECK(decoding(p).exif);
    CHECK_FALSE(decoding(p, false).exif);
  }
  for (const char* name : {"timm", "torchvision", "grey"}) {
    INFO(name);
    const Preprocess p = profile_named(name, 224, 224);
    CHECK_FALSE(decoding(p).exif);
    CHECK(decoding(p, true).exif);
  }
  for (const char* name : {"clip", "clip-fast", "siglip", "hf-dinov2"})
    CHECK(decoding(profile_named(name, 224, 224)).white);
  for (const char* name : {"hf", "hf-deit", "hf-dinov3", "naflex", "timm", "torchvision"})
    CHECK_FALSE(decoding(profile_named(name, 224, 224)).white);
  const auto white = [](Json json) {
    return decoding(read_hugging_face_preprocess(json, "", "p.json")).white;
  };
  CHECK(white({{"image_processor_type", "BitImageProcessor"}}));
  CHECK_FALSE(white({{"image_processor_type", "BeitImageProcessor"}}));
  CHECK_FALSE(white({{"image_processor_type", "CLIPImageProcessor"}, {"do_convert_rgb", false}}));
  CHECK(white({{"image_processor_type", "ViTImageProcessor"}, {"do_convert_rgb", true}}));
  CHECK_FALSE(white({{"image_processor_type", "ViTImageProcessor"}, {"do_convert_rgb", nullptr}}));
}

TEST_CASE("only what a processor of transformers does is there on PyTorch") {
  CHECK(profile_names().ends_with("siglip-fast, naflex-fast, hf-deit-fast, hf-dinov2-fast, hf-dinov3-fast"));
  for (const char* name : {"timm-fast", "torchvision-fast", "grey-fast", "-fast", "fast"})
    CHECK_THROWS_MATCHES(profile_named(name, 56, 56), Error, says(name));
  CHECK_THROWS_MATCHES(profile_named("timm", 56, 56).on_torch(), Error, says("PyTorch"));
  Preprocess lanczos = profile_named("hf", 56, 56);
  lanczos.filter = Filter::lanczos;
  CHECK_THROWS_MATCHES(lanczos.on_torch(), Error, says("lanczos"));
  // What is written is read as it was.
  for (const char* name : {"hf-fast", "clip-fast", "hf-deit-fast"}) {
    const Preprocess p = profile_named(name, 56, 48);
    CHECK(read_hugging_face_preprocess(Json::parse(hugging_face_json(p).dump()), "", "file") == p);
    CHECK(vitrine::preprocess_of(Json::parse(to_json(p).dump()), {}, "file") == p);
  }
}

TEST_CASE("crops begin where each library lets them begin") {
  const auto top = [](CropRule rule, uint32_t height, uint64_t crop) {
    Preprocess p;
    p.crop = rule;
    p.crop_height = crop;
    p.crop_width = 10;
    return picture_geometry(p, height, 10, "picture").top;
  };
  CHECK(top(CropRule::floor, 227, 224) == 1);
  CHECK(top(CropRule::half_even, 227, 224) == 2);
  CHECK(top(CropRule::floor, 225, 224) == 0);
  CHECK(top(CropRule::half_even, 225, 224) == 0);
  CHECK(top(CropRule::floor, 221, 224) == -2);
  CHECK(top(CropRule::half_even, 221, 224) == -1);
}

TEST_CASE("another image size changes the resize in proportion") {
  const Preprocess timm = profile_named("timm", 224, 224);
  CHECK(timm.resize_height == 248);
  CHECK(timm.with_size(384, 384).resize_height == 426);
  const Preprocess wide = timm.with_size(224, 336);
  CHECK(wide.resize == ResizeRule::cover);
  CHECK(wide.resize_width == 373);
  CHECK(wide.with_size(224, 224).resize == ResizeRule::short_side);
  CHECK(profile_named("torchvision", 384, 384).resize_height == 438);
  CHECK(profile_named("hf-dinov2", 224, 224).with_size(518, 518).resize_height == 592);
  const Preprocess hf = profile_named("hf", 224, 224).with_size(384, 384);
  CHECK(hf.resize_width == 384);
  CHECK(hf.width() == 384);
}

TEST_CASE("the right profile is found without any file") {
  ViTConfig config;
  config.image_height = config.image_width = 96;
  const auto name = [&](const std::string& family) {
    return read_preprocess("m.safetensors", family, config).profile;
  };
  CHECK(name("timm") == "profile timm");
  CHECK(name("hf") == "profile hf");
  CHECK(name("torchvision") == "profile torchvision");
  CHECK(name("myvit") == "profile grey");
  CHECK(name("hf_clip") == "profile clip");
  CHECK(name("hf_siglip") == "profile siglip");
  CHECK(name("hf_aimv2") == "profile clip");
  CHECK(name("hf_mlcd") == "profile clip");
  CHECK(name("hf_dinov2") == "profile hf-dinov2");
  CHECK(name("hf_dinov3") == "profile hf-dinov3-fast");
  CHECK(name("meta_dinov3") == "profile hf-dinov3-fast");
  CHECK(name("hf_beit") == "profile siglip");
  CHECK(name("timm_naflex") == "profile timm");
  CHECK(name("timm_sam") == "profile timm");
  // Its processor's way isn't among the profiles.
  using Catch::Matchers::ContainsSubstring;
  CHECK_THROWS_WITH(name("hf_sam"),
                    ContainsSubstring("SAM's own pictures") && ContainsSubstring("--profile"));
  CHECK_THROWS_WITH(name("hf_janus"), ContainsSubstring("Janus' own pictures"));
  CHECK_THROWS_WITH(name("hf_pixtral"), ContainsSubstring("Pixtral's own pictures"));
  CHECK(read_preprocess("m.safetensors", "timm", config).width() == 96);
  CHECK(read_preprocess("m.safetensors", "hf_dinov2", config).width() == 96);
  config.image_height = config.image_width = 518;
  CHECK(read_preprocess("m.safetensors", "hf_dinov2", config).width() == 224);
  const test::TemporaryFolder folder;
  std::ofstream(folder / "config.json") << R"({"model_type": "dinov2"})";
  CHECK(read_preprocess(folder.path(), "hf", config).profile == "profile hf-dinov2");
}

TEST_CASE("what is written of a preprocessing is read back as the same") {
  std::vector<Preprocess> all;
  for (const char* name :
       {"timm", "hf", "torchvision", "clip", "siglip", "hf-deit", "hf-dinov2", "hf-dinov3", "grey"}) {
    all.push_back(profile_named(name, 224, 224));
    all.push_back(profile_named(name, 96, 161));
  }
  all.push_back(cover_and_crop(28, 28, {0.1307}, {0.3081}));
  all.push_back(cover_and_crop(32, 48, {0.4914, 0.4822, 0.4465}, {0.2, 0.1, 1.0 / 3}));
  Preprocess contain = profile_named("timm", 224, 224);
  contain.resize = ResizeRule::contain;
  contain.fill = {124, 116, 104};
  contain.filter = Filter::lanczos;
  all.push_back(contain);
  Preprocess crop = profile_named("clip", 100, 120);
  crop.resize = ResizeRule::none;
  crop.scale = ScaleRule::none;
  crop.filter = Filter::hamming;
  all.push_back(crop);
  Preprocess factor = profile_named("hf", 64, 64);
  factor.factor = 1 / 127.5;
  factor.mean = {1};
  factor.normalize = false;
  all.push_back(factor);
  for (const Preprocess& p : all) {
    const Json json = Json::parse(hugging_face_json(p).dump(2));
    INFO(p.to_string() << "\n" << json.dump(2));
    const Preprocess again = read_hugging_face_preprocess(json, "", "p.json");
    CHECK(again == p);
    CHECK(again.profile == "p.json");
    CHECK(vitrine::preprocess_of(Json::parse(to_json(p).dump()), {}, "t.json") == p);
    // What is read without the library's own fields comes near: the same size and filter.
    Json plain = json;
    plain.erase("vitrine");
    const Preprocess near = read_hugging_face_preprocess(plain, "", "p.json");
    CHECK(near.height() == p.height());
    CHECK(near.width() == p.width());
    CHECK(near.filter == p.filter);
  }
  // What a class of transformers can say needs no field of ours.
  for (const char* name : {"hf", "clip", "siglip", "hf-deit", "hf-dinov2", "hf-dinov3"})
    CHECK_FALSE(hugging_face_json(profile_named(name, 224, 224)).contains("vitrine"));
  // One that was changed by hand is followed, beside ours.
  Json changed = Json::parse(hugging_face_json(all[0]).dump());
  changed["image_mean"] = {0.1, 0.2, 0.3};
  CHECK(read_hugging_face_preprocess(changed, "", "p.json").mean == std::vector<double>{0.1, 0.2, 0.3});
  CHECK(all[0] != all[1]);
}

TEST_CASE("preprocessing that makes no sense is refused in a sentence") {
  const auto hf = [](const char* text) {
    return read_hugging_face_preprocess(Json::parse(text), "", "p.json");
  };
  CHECK_THROWS_MATCHES(hf(R"({"size": 224})"), Error, says("image_processor_type"));
  CHECK_THROWS_MATCHES(hf(R"({"image_processor_type": "SamImageProcessor"})"), Error,
                       says("SamImageProcessor"));
  CHECK_THROWS_MATCHES(hf(R"({"image_processor_type": "ViTImageProcessor", "size": {"shortest_edge": 2}})"),
                       Error, says("height and width"));
  CHECK_THROWS_MATCHES(hf(R"({"image_processor_type": "BitImageProcessor", "do_center_crop": false})"), Error,
                       says("one size"));
  CHECK_THROWS_MATCHES(hf(R"({"image_processor_type": "ViTImageProcessor", "image_std": [1, 0, 1]})"), Error,
                       says("other than zero"));
  CHECK_THROWS_MATCHES(hf(R"({"image_processor_type": "ViTImageProcessor", "resample": 9})"), Error,
                       says("0 to 5"));
  CHECK_THROWS_MATCHES(hf(R"({"image_processor_type": "ViTImageProcessor", "size": 1e9})"), Error,
                       says("size"));
  CHECK_THROWS_MATCHES(hf(R"({"image_processor_type": "ViTImageProcessor", "size": 100000})"), Error,
                       says("16384"));
  CHECK_THROWS_MATCHES(hf(R"([1])"), Error, says("p.json"));
  const auto own = [&](const std::string& fields) {
    return hf((R"({"image_processor_type": "ViTImageProcessor", "vitrine": )" + fields + "}").c_str());
  };
  CHECK_THROWS_MATCHES(own(R"({"resize": "sometimes"})"), Error, says("short_side"));
  CHECK_THROWS_MATCHES(own(R"({"rezise": "cover"})"), Error, says("rezise"));
  CHECK_THROWS_MATCHES(own(R"({"resize": "cover"})"), Error, says("one size"));
  CHECK_THROWS_MATCHES(own(R"({"fill": [1, 2]})"), Error, says("three bytes"));
  CHECK_THROWS_MATCHES(own(R"({"fill": [1, 2, 256]})"), Error, says("three bytes"));
  CHECK_THROWS_MATCHES(own(R"({"crop_pct": -1})"), Error, says("crop_pct"));
  CHECK_THROWS_MATCHES(own("[]"), Error, says("p.json"));
  const auto timm = [](const char* text) {
    return read_timm_preprocess(Json::parse(text), ViTConfig{}, "c.json");
  };
  CHECK_THROWS_MATCHES(timm(R"({"pretrained_cfg": {"crop_mode": "spiral"}})"), Error, says("spiral"));
  CHECK_THROWS_MATCHES(timm(R"({"pretrained_cfg": {"crop_pct": 0}})"), Error, says("crop_pct"));
  CHECK_THROWS_MATCHES(timm(R"({"pretrained_cfg": {"input_size": [224, 224]}})"), Error, says("input_size"));
  CHECK_THROWS_MATCHES(timm(R"({"pretrained_cfg": {"mean": "x"}})"), Error, says("mean"));
  CHECK_THROWS_MATCHES(profile_named("pytorch", 224, 224), Error, says("torchvision"));
  CHECK_THROWS_MATCHES(profile_named("torchvision", 224, 224).values(1), Error, says("3 channels"));
  CHECK(profile_named("timm", 224, 224).values(1).size() == 256);
}

TEST_CASE("pictures that are too thin are refused in a sentence") {
  CHECK_THROWS_MATCHES(picture_geometry(profile_named("timm", 224, 224), 100'000'000, 1, "thin.png"), Error,
                       says("thin.png"));
  Preprocess contain = profile_named("timm", 224, 224);
  contain.resize = ResizeRule::contain;
  CHECK_THROWS_MATCHES(picture_geometry(contain, 1, 10000, "thin.png"), Error, says("side of 0"));
}

}  // namespace
}  // namespace vitrine

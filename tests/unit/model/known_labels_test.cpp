// The names of ImageNet's classes against timm's own (tests/parity/tables/make_label_tables.py), and whose
// models get them.
#include "model/labels/known_labels.h"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "runtime/util/json.h"

using namespace vitrine;

namespace {

uint32_t crc32(const std::vector<std::string>& lines) {
  uint32_t crc = ~0u;
  const auto add = [&](char c) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  };
  for (const std::string& line : lines) {
    for (const char c : line) add(c);
    add('\n');
  }
  return ~crc;
}

enum class Known { no, assumed, sure };

Known known(const char* config, uint64_t classes = 1000, std::string_view family = "timm") {
  const nlohmann::json json = nlohmann::json::parse(config);
  const KnownLabels labels = known_labels(&json, family, classes);
  CHECK(labels.remark().empty() == !(labels.set && labels.assumed));
  CHECK(labels.names().size() == (labels.set ? classes : 0));
  return !labels.set ? Known::no : labels.assumed ? Known::assumed : Known::sure;
}

}  // namespace

TEST_CASE("every subset of ImageNet has timm's names in timm's order") {
  const nlohmann::json fixture = read_json(VITRINE_TEST_DATA "/parity/labels/imagenet.json");
  CHECK(fixture.at("sets").size() == 6);
  for (const nlohmann::json& entry : fixture.at("sets")) {
    const uint64_t classes = entry.at("classes");
    INFO(classes);
    const imagenet::Set* set = imagenet::set_of(classes);
    REQUIRE(set);
    const std::vector<std::string> names = imagenet::class_names(*set);
    REQUIRE(names.size() == classes);
    CHECK(entry.at("names").size() >= 10);
    for (const auto& [index, name] : entry.at("names").items()) {
      CHECK(names.at(std::stoul(index)) == name.get<std::string>());
    }
    CHECK(crc32(names) == entry.at("crc32"));
  }
  CHECK(imagenet::class_names(*imagenet::set_of(1000))[281] == "tabby, tabby cat");
  for (const uint64_t classes : {0, 10, 999, 1001, 10450, 19168, 21840}) CHECK(!imagenet::set_of(classes));
}

TEST_CASE("timm's tag says that a model's classes are ImageNet's") {
  CHECK(known(R"({"pretrained_cfg": {"tag": "augreg2_in21k_ft_in1k", "num_classes": 1000}})") == Known::sure);
  CHECK(known(R"({"architecture": "deit_tiny_patch16_224.fb_in1k"})") == Known::sure);
  CHECK(known(R"({"model_type": "timm_wrapper", "pretrained_cfg": {"tag": "in1k"}})") == Known::sure);
  CHECK(known(R"({"pretrained_cfg": {"tag": "augreg_in21k"}})", 21843) == Known::sure);
  CHECK(known(R"({"pretrained_cfg": {"tag": "miil_in21k"}})", 11221) == Known::sure);
  CHECK(known(R"({"pretrained_cfg": {"tag": "sw_in12k"}})", 11821) == Known::sure);
  CHECK(known(R"({"pretrained_cfg": {"tag": "in22k_ft_in22k"}})", 21841) == Known::sure);
  CHECK(known(R"({"pretrained_cfg": {"tag": "ms_in22k"}})", 21842) == Known::sure);
}

TEST_CASE("without a tag the number of classes says it, and that is told") {
  const KnownLabels bare = known_labels(nullptr, "torchvision", 1000);
  CHECK(
      bare.remark() ==
      "the class names are those of ImageNet-1k, because the model has 1000 classes and its files name none");
  CHECK(bare.names()[0] == "tench, Tinca tinca");
  CHECK(known("{}") == Known::assumed);
  CHECK(known(R"({"pretrained_cfg": {"tag": "", "num_classes": 1000}})") == Known::assumed);
  CHECK(known(R"({"pretrained_cfg": {"tag": "openai"}})") == Known::assumed);
  // Parts that look like a subset's and are none.
  CHECK(known(R"({"pretrained_cfg": {"tag": "ink_in_k_in1_inside_in1mk__"}})") == Known::assumed);
}

TEST_CASE("no model is given names that aren't its own") {
  CHECK(known("{}", 999) == Known::no);
  CHECK(known("{}", 0) == Known::no);
  // Trained further on a thousand other classes.
  CHECK(known(R"({"pretrained_cfg": {"tag": "augreg_in21k"}})") == Known::no);
  CHECK(known(R"({"architecture": "vit_base_patch16_224_in21k"})") == Known::no);
  CHECK(known(R"({"pretrained_cfg": {"tag": "in21k_ft_in1k", "num_classes": 10}})") == Known::no);
  CHECK(known(R"({"pretrained_cfg": {"tag": "augreg_in1k"}})", 21843) == Known::no);
  CHECK(known(R"({"pretrained_cfg": {"tag": "augreg_inw21k"}})", 1000) == Known::no);
  CHECK(known(R"({"vitrine": {}, "pretrained_cfg": {"tag": "in1k"}})") == Known::no);
  CHECK(known(R"({"model_type": "vit"})") == Known::no);
  CHECK(known(R"({"pretrained_cfg": {"tag": "in1k", "labels": ["a"]}})") == Known::no);
  for (const char* family : {"myvit", "hf_vit", "hf_dinov2", "random"}) {
    CHECK(known("{}", 1000, family) == Known::no);
  }
}

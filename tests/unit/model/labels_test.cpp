#include "model/files/labels.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "runtime/util/error.h"

using namespace vitrine;
using Catch::Matchers::ContainsSubstring;

namespace {

Labels read(const char* json, uint64_t classes = 3) {
  return read_labels(nlohmann::json::parse(json), classes, "config.json");
}

std::string refusal(const char* json, uint64_t classes = 3) {
  try {
    read(json, classes);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    return error.what();
  }
  FAIL("was not refused");
  return {};
}

}  // namespace

TEST_CASE("labels come from Hugging Face's id2label") {
  const Labels labels = read(R"({"id2label": {"2": "c", "0": "a", "1": "b, b\u00e9"}})");
  CHECK(labels[0] == "a");
  CHECK(labels[1] == "b, b\u00e9");
  CHECK(labels[2] == "c");
  CHECK(labels[3] == "class 3");
}

TEST_CASE("labels come from timm's label_names, and their descriptions where there are some") {
  CHECK(read(R"({"label_names": ["a", "b", "c"]})")[2] == "c");
  const Labels sparse = read(R"({"label_names": {"0": "a", "2": "c"}})");
  CHECK(sparse[1] == "class 1");
  CHECK(sparse[2] == "c");
  CHECK(read(R"({"pretrained_cfg": {"label_names": ["a"]}})")[0] == "a");
  CHECK(read(R"({"label_names": ["x"], "pretrained_cfg": {"label_names": ["a"]}})")[0] == "x");
  const Labels described = read(R"({"label_names": ["n1", "n2"],
    "label_descriptions": {"n1": "tabby", "n2": "tench", "n9": "unused"}})");
  CHECK(described[0] == "tabby");
  CHECK(described[1] == "tench");
  CHECK(described[2] == "class 2");
}

TEST_CASE("without labels a class is its index") {
  CHECK(Labels()[281] == "class 281");
  CHECK(Labels().empty());
  CHECK(read(R"({"model_type": "vit"})").empty());
  CHECK(read(R"({"id2label": null, "label_names": null})")[1] == "class 1");
  CHECK(read(R"({"id2label": {"0": "a"}})", 0).empty());
}

TEST_CASE("malformed labels are refused with what was found and what was expected") {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"id2label": ["a", "b", "c"]})", "JSON array"},
      {R"({"id2label": {"0": "a", "1": "b"}})", "2 labels"},
      {R"({"id2label": {"0": "a", "1": "b", "3": "c"}})", "\"3\""},
      {R"({"id2label": {"0": "a", "1": "b", "02": "c"}})", "\"02\""},
      {R"({"id2label": {"0": "a", "1": "b", "-2": "c"}})", "\"-2\""},
      {R"({"id2label": {"0": "a", "1": "b", "two": "c"}})", "\"two\""},
      {R"({"id2label": {"0": "a", "1": "b", "99999999999999999999": "c"}})", "\"99999999999999999999\""},
      {R"({"id2label": {"0": "a", "1": "b", "2": 7}})", "JSON number"},
      {R"({"label_names": "abc"})", "JSON string"},
      {R"({"label_names": ["a", "b", "c", "d"]})", "4 labels"},
      {R"({"label_names": ["a", null]})", "class 1"},
      {R"({"label_names": {"3": "d"}})", "0 to 2"},
      {R"({"label_names": ["a"], "label_descriptions": ["b"]})", "label_descriptions"},
      {R"({"label_names": ["a"], "label_descriptions": {"b": "x"}})", "\"a\""},
      {R"({"label_names": ["a"], "label_descriptions": {"a": 1}})", "JSON number"},
  };
  for (const auto& [json, words] : rows) {
    INFO(json);
    CHECK_THAT(refusal(json),
               ContainsSubstring("config.json") && ContainsSubstring(words) && ContainsSubstring("expected"));
  }
}

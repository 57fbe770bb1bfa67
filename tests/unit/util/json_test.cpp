#include "runtime/util/json.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/util/error.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string refusal_of(const std::string& text, const JsonLimits& limits = {}) {
  try {
    static_cast<void>(parse_json(text, "some.json", limits));
  } catch (const Error& error) {
    const std::string message = error.what();
    CHECK(error.code() == ErrorCode::bad_file);
    CHECK_THAT(message, ContainsSubstring("some.json"));
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.find("[json.") == std::string::npos);  // the library's own words
    return message;
  }
  return "no error";
}

std::string repeated(const std::string& text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("valid JSON gives the tree that it describes") {
  const auto tree = parse_json(
      " {\"a\": [1, -2, 2.5e1, true, false, null],\r\n\t\"b\": {\"c\": \"x\\n\\u00e9\\ud83d\\ude00 \\\" y  "
      "z\"},"
      "\"\": [], \"e\": {}} ",
      "some.json");
  CHECK(tree == nlohmann::json::parse(
                    R"({"a":[1,-2,25.0,true,false,null],"b":{"c":"x\né😀 \" y  z"},"":[],"e":{}})"));
  CHECK(tree["b"]["c"] == "x\n\xC3\xA9\xF0\x9F\x98\x80 \" y  z");
  CHECK(tree["a"][0].is_number_unsigned());
  CHECK(parse_json("18446744073709551615", "x") == std::numeric_limits<uint64_t>::max());
  CHECK(parse_json("18446744073709551616", "x").is_number_float());
  CHECK(parse_json("\"lone\"", "x") == "lone");
}

TEST_CASE("text that is not JSON is refused with the place") {
  CHECK_THAT(refusal_of(""), ContainsSubstring("ends too early"));
  CHECK_THAT(refusal_of("{\"a\": 1"), ContainsSubstring("ends too early"));
  CHECK_THAT(refusal_of("[1, 2"), ContainsSubstring("ends too early"));
  CHECK_THAT(refusal_of("\"open"), ContainsSubstring("ends too early"));
  CHECK_THAT(refusal_of("{\"a\": 1,\n   oops}"), ContainsSubstring("unexpected \"o\" at line 2, column 4"));
  CHECK_THAT(refusal_of("{\"a\"    :   ?}"), ContainsSubstring("unexpected \"?\" at line 1, column 13"));
  CHECK_THAT(refusal_of("[1,]"), ContainsSubstring("unexpected \"]\""));
  CHECK_THAT(refusal_of("{} {}"), ContainsSubstring("unexpected \"{\""));
  CHECK_THAT(refusal_of("{'a': 1}"), ContainsSubstring("unexpected \"'\""));
  CHECK_THAT(refusal_of("[é]"), ContainsSubstring("unexpected \"é\""));
  CHECK_THAT(refusal_of("// c\n1"), ContainsSubstring("unexpected"));
  CHECK_THAT(refusal_of("[01]"), ContainsSubstring("unexpected"));
  CHECK_THAT(refusal_of("[NaN]"), ContainsSubstring("unexpected"));
  CHECK_THAT(refusal_of("[1e999]"), ContainsSubstring("too large"));
  CHECK_THAT(refusal_of("\"\\ud800\""), ContainsSubstring("unexpected"));
  CHECK_THAT(refusal_of("\"tab\tin it\""), ContainsSubstring("unexpected \"\\x09\""));
  CHECK_THAT(refusal_of(std::string("{}\0garbage", 10)), ContainsSubstring("NUL"));
  CHECK_THAT(refusal_of("\"\x1b[31m"), ContainsSubstring("\\x1b"));
}

TEST_CASE("a key that stands twice in one object is refused, in two objects it is not") {
  CHECK_THAT(refusal_of(R"({"width": 1, "depth": 2, "width": 3})"), ContainsSubstring("\"width\" twice"));
  CHECK_THAT(refusal_of(R"([{"a": {"b": 1, "\u0062": 2}}])"), ContainsSubstring("\"b\" twice"));
  CHECK(parse_json(R"([{"a": {"a": 1}}, {"a": 2}])", "x").size() == 2);
}

TEST_CASE("bytes that are not UTF-8 are refused wherever they stand") {
  CHECK_THAT(refusal_of("\"\xFF\""), ContainsSubstring("UTF-8"));
  CHECK_THAT(refusal_of("\"\xC0\x80\""), ContainsSubstring("UTF-8"));          // overlong
  CHECK_THAT(refusal_of("\"\xED\xA0\x80\""), ContainsSubstring("UTF-8"));      // surrogate
  CHECK_THAT(refusal_of("\"\xF4\x90\x80\x80\""), ContainsSubstring("UTF-8"));  // past U+10FFFF
  CHECK_THAT(refusal_of("\"\xE2\x82"), ContainsSubstring("UTF-8"));            // cut
  CHECK_THAT(refusal_of("{} \x80"), ContainsSubstring("UTF-8"));
  // Characters across the borders of the 1 MiB pieces that are checked at a time.
  for (size_t pad = (1 << 20) - 8; pad < (1 << 20) + 2; ++pad) {
    const std::string text = std::string(pad, ' ') + "\"\xF0\x9F\x98\x80\xE2\x82\xAC\xC3\xA9\"";
    CHECK(parse_json(text, "x") == "\xF0\x9F\x98\x80\xE2\x82\xAC\xC3\xA9");
    CHECK_THAT(refusal_of(text.substr(0, text.size() - 2)), ContainsSubstring("UTF-8"));
  }
}

TEST_CASE("depth, size, token length and number of values are bounded") {
  JsonLimits limits;
  CHECK(parse_json(repeated("[", 64) + repeated("]", 64), "x").size() == 1);
  CHECK_THAT(refusal_of(repeated("[", 65) + repeated("]", 65)), ContainsSubstring("deeper than 64"));
  CHECK_THAT(refusal_of(repeated("{\"a\":", 65) + "1" + repeated("}", 65)), ContainsSubstring("deeper"));
  CHECK_THAT(refusal_of(repeated("[", 1'000'000)), ContainsSubstring("deeper"));
  CHECK(parse_json("\"" + repeated("[", 100) + "\"", "x").is_string());  // brackets in a string nest nothing
  CHECK(parse_json("\"\\\"" + repeated("[", 100) + "\"", "x").is_string());

  limits.bytes = 10;
  CHECK_THAT(refusal_of("[1,2,3,4,5,6]", limits), ContainsSubstring("at most 10"));
  limits = {.token = 8};
  CHECK_THAT(refusal_of("\"123456789\"", limits), ContainsSubstring("more than 8 bytes"));
  CHECK_THAT(refusal_of("123456789", limits), ContainsSubstring("more than 8 bytes"));
  CHECK(parse_json("[1234567,1234567,\"123456\"]", "x", limits).size() == 3);
  limits = {.values = 3};
  CHECK(parse_json("[1,2]", "x", limits).size() == 2);
  CHECK_THAT(refusal_of("[1,2,3]", limits), ContainsSubstring("more than 3 values"));
}

TEST_CASE("read_json names the file in every error") {
  const TemporaryFolder folder;
  CHECK(read_json(folder.file("good.json", "{\"a\": 1}"))["a"] == 1);
  for (const auto& path :
       {folder.file("bad.json", "{"), folder / "missing.json", folder.file("empty.json", "")}) {
    CHECK_THROWS_WITH(read_json(path), ContainsSubstring(path.string()));
  }
}

}  // namespace vitrine::test

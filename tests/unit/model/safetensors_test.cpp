#include "model/files/safetensors.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "model/files/safetensors_writer.h"
#include "runtime/util/error.h"
#include "runtime/util/half.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using namespace std::string_literals;

const TemporaryFolder& scratch() {
  static const TemporaryFolder folder;
  return folder;
}

// Another name each time: Windows keeps what is mapped from being written.
SafetensorsFile open(const std::string& bytes) {
  static int files = 0;
  return SafetensorsFile(scratch().file(std::to_string(++files) + "a.safetensors", bytes));
}

std::string refusal_of(const std::string& bytes) {
  try {
    open(bytes);
  } catch (const Error& error) {
    const std::string message = error.what();
    CHECK(error.code() == ErrorCode::bad_file);
    CHECK_THAT(message, ContainsSubstring("a.safetensors"));
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return "no error";
}

std::string refusal(const std::string& header, size_t data_bytes = 0) {
  return refusal_of(safetensors_bytes(header, std::string(data_bytes, '\0')));
}

// One tensor "a" with these fields.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

}  // namespace

TEST_CASE("a safetensors file hands out its tensors, their data and its metadata") {
  const std::string data("\x00\x00\x80\x3f\x00\x00\x00\xc0\x01\x02\x03", 11);
  const auto file = open(safetensors_bytes(
      R"({"bytes":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},"__metadata__":{"format":"pt","é\n":""},)"
      R"("w":{"data_offsets":[0,8],"shape":[1,2],"dtype":"F32"},"none":{"dtype":"I64","shape":[4,0],"data_offsets":[11,11]}})"
      "   ",
      data));
  REQUIRE(file.tensors().size() == 3);
  CHECK(file.tensors()[0].name == "w");
  CHECK(file.metadata().at("format") == "pt");
  CHECK(file.metadata().at("é\n").empty());
  const TensorInfo* w = file.find("w");
  REQUIRE(w != nullptr);
  CHECK(w->shape == std::vector<uint64_t>{1, 2});
  CHECK(w->elements() == 2);
  CHECK(file.floats(*w) == std::vector<float>{1.0F, -2.0F});
  CHECK(std::to_integer<int>(file.bytes(*file.find("bytes"))[2]) == 3);
  CHECK(file.bytes(*file.find("none")).empty());
  CHECK(file.find("v") == nullptr);
  CHECK(file.find("") == nullptr);
  CHECK_THROWS_WITH(file.floats(*file.find("bytes")),
                    ContainsSubstring("U8") && ContainsSubstring("expected F32"));
  CHECK(open(safetensors_bytes("{}", "")).tensors().empty());
}

TEST_CASE("F16 and BF16 become floats, also from odd addresses") {
  std::string data(1, '\x7f');
  std::vector<float> halves;
  std::vector<float> brains;
  for (uint32_t i = 0; i < 5000; ++i) {  // more than is converted at a time
    const auto bits = static_cast<uint16_t>(i * 5);
    data += {static_cast<char>(bits & 255), static_cast<char>(bits >> 8)};
    halves.push_back(f16_to_f32(bits));
    brains.push_back(bf16_to_f32(bits));
  }
  data += data.substr(1);
  const auto file = open(safetensors_bytes(
      R"({"odd":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"h":{"dtype":"F16","shape":[50,100],"data_offsets":[1,10001]},)"
      R"("b":{"dtype":"BF16","shape":[5000],"data_offsets":[10001,20001]}})",
      data));
  CHECK(file.floats(*file.find("h")) == halves);
  CHECK(file.floats(*file.find("b")) == brains);
}

TEST_CASE("every dtype of the format is known, with its size") {
  const std::vector<std::pair<std::string, uint64_t>> sizes{
      {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
      {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
      {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};
  for (const auto& [name, bits] : sizes) {
    INFO(name);
    const auto file = open(
        safetensors_bytes(one(name, "[4,2]", "[0," + std::to_string(bits) + "]"), std::string(bits, 'x')));
    CHECK(name_of(file.find("a")->dtype) == name);
    CHECK(file.find("a")->elements() == 8);
  }
  CHECK_THAT(refusal(one("F4", "[3]", "[0,2]"), 2), ContainsSubstring("whole byte"));
  CHECK_THAT(refusal(one("f32", "[1]", "[0,4]"), 4), ContainsSubstring("unknown dtype \"f32\""));
}

TEST_CASE("a header that is not where or what it should be is refused") {
  CHECK_THAT(refusal_of(""), ContainsSubstring("0 bytes, expected at least 8"));
  CHECK_THAT(refusal_of("1234567"), ContainsSubstring("7 bytes"));
  CHECK_THAT(refusal_of(safetensors_bytes("{}", "", 100'000'001)), ContainsSubstring("at most 100000000"));
  CHECK_THAT(refusal_of(safetensors_bytes("{}", "", UINT64_MAX - 1)), ContainsSubstring("at most"));
  CHECK_THAT(refusal_of(safetensors_bytes("{}", "", 3)), ContainsSubstring("only 2 follow"));
  CHECK_THAT(refusal_of(safetensors_bytes("{}", "", 0)), ContainsSubstring("expected \"{\""));
  CHECK_THAT(refusal(" {}"), ContainsSubstring("starts with \" \""));
  CHECK_THAT(refusal("[]"), ContainsSubstring("starts with \"[\""));
  CHECK_THAT(refusal("{\"\xff\":1}"), ContainsSubstring("UTF-8"));
  CHECK_THAT(refusal("{"), ContainsSubstring("ends too early"));
  CHECK_THAT(refusal("{}x"), ContainsSubstring("unexpected \"x\""));
  CHECK_THAT(refusal("{}\0"s), ContainsSubstring("NUL"));
  CHECK_THAT(refusal("{\"a\":{\"dtype\":[[[["), ContainsSubstring("deeper than 3"));
}

TEST_CASE("fields of the wrong kind are refused by the name of the tensor") {
  CHECK_THAT(refusal(R"({"a":1})"), ContainsSubstring("\"a\" is the number 1"));
  CHECK_THAT(refusal(R"({"a":[]})"), ContainsSubstring("an array"));
  CHECK_THAT(refusal(R"({"a":{}})"), ContainsSubstring("no dtype"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"U8","shape":[0]}})"), ContainsSubstring("no data_offsets"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"U8","data_offsets":[0,0]}})"), ContainsSubstring("no shape"));
  CHECK_THAT(refusal(R"({"a":{"dtype":1}})"), ContainsSubstring("for its dtype"));
  CHECK_THAT(refusal(R"({"a":{"dtype":{}}})"), ContainsSubstring("an object"));
  CHECK_THAT(refusal(R"({"a":{"shape":"[1]"}})"), ContainsSubstring("for its shape"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"U8","dtype":"U8"}})"), ContainsSubstring("\"dtype\" twice"));
  CHECK_THAT(refusal(R"({"a":{"stride":[1]}})"), ContainsSubstring("\"stride\""));
  CHECK_THAT(refusal(R"({"__metadata__":{"a":1}})"), ContainsSubstring("expected a string"));
  CHECK_THAT(refusal(R"({"__metadata__":{"a":{}}})"), ContainsSubstring("expected a string"));
  CHECK_THAT(refusal(R"({"__metadata__":[]})"), ContainsSubstring("expected an object of strings"));
  CHECK_THAT(refusal(R"({"__metadata__":null})"), ContainsSubstring("null"));
  CHECK_THAT(refusal(R"({"__metadata__":{"a":"1","a":"2"}})"), ContainsSubstring("twice"));
  CHECK_THAT(refusal(R"({"__metadata__":{},"__metadata__":{}})"), ContainsSubstring("twice"));
  for (const std::string dim : {"-1", "-0", "1.0", "1e0", "18446744073709551616", "\"1\"", "true", "null"}) {
    INFO(dim);
    CHECK_THAT(refusal(one("U8", "[" + dim + "]", "[0,1]"), 1),
               ContainsSubstring("in its shape, expected whole"));
    CHECK_THAT(refusal(one("U8", "[1]", "[0," + dim + "]"), 1),
               ContainsSubstring("in its data_offsets, expected"));
  }
  CHECK_THAT(refusal(one("U8", "[1]", "[0]"), 1), ContainsSubstring("has 1 data_offsets"));
  CHECK_THAT(refusal(one("U8", "[1]", "[0,1,2]"), 1), ContainsSubstring("more than 2"));
  CHECK_THAT(refusal("{\"\\u001b[31m\\n\":1}"), ContainsSubstring("\\x1b[31m\\x0a"));
}

TEST_CASE("sizes that do not fit shapes, files or 64 bits are refused") {
  CHECK_THAT(refusal(one("F32", "[2,3]", "[0,20]"), 20), ContainsSubstring("has 20 bytes, expected 24"));
  CHECK_THAT(refusal(one("F32", "[]", "[0,8]"), 8), ContainsSubstring("expected 4"));
  CHECK_THAT(refusal(one("F32", "[0]", "[0,4]"), 4), ContainsSubstring("expected 0"));
  CHECK_THAT(refusal(one("F32", "[1]", "[4,0]"), 4), ContainsSubstring("end before they begin"));
  CHECK_THAT(refusal(one("F32", "[2]", "[0,8]"), 4), ContainsSubstring("only 4 bytes"));
  CHECK_THAT(refusal(one("U8", "[18446744073709551615]", "[0,18446744073709551615]"), 4),
             ContainsSubstring("only 4"));
  CHECK_THAT(refusal(one("U8", "[4294967296,4294967296]", "[0,0]")), ContainsSubstring("overflows"));
  CHECK_THAT(refusal(one("F64", "[1152921504606846976]", "[0,0]")), ContainsSubstring("overflows"));
  CHECK_THAT(refusal(one("U8", "[4294967296,4294967296,0]", "[0,0]")), ContainsSubstring("overflows"));
  std::string ones = "[1";
  for (int i = 0; i < 32; ++i) ones += ",1";
  CHECK_THAT(refusal(one("U8", ones + "]", "[0,1]"), 1), ContainsSubstring("32 dimensions"));
}

TEST_CASE("tensors must cover the data: no hole, no overlap, nothing left") {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
  };
  CHECK(open(safetensors_bytes(two("[4,8]", "[0,4]"), std::string(8, 'x'))).tensors()[0].name == "b");
  CHECK_THAT(refusal(two("[0,4]", "[5,9]"), 9),
             ContainsSubstring("\"b\" begins at byte 5") && ContainsSubstring("hole"));
  CHECK_THAT(refusal(two("[0,4]", "[3,7]"), 7),
             ContainsSubstring("\"b\" begins at byte 3") && ContainsSubstring("overlap"));
  CHECK_THAT(refusal(two("[0,4]", "[0,4]"), 4), ContainsSubstring("overlap"));
  CHECK_THAT(refusal(two("[1,5]", "[5,9]"), 9), ContainsSubstring("hole"));
  CHECK_THAT(refusal(two("[0,4]", "[4,8]"), 9), ContainsSubstring("has 9 bytes of data, expected the 8"));
  CHECK_THAT(refusal("{}", 1), ContainsSubstring("has 1 bytes of data"));
  CHECK_THAT(
      refusal(
          R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"),
      ContainsSubstring("\"a\" stands in it twice"));
}

TEST_CASE("cutting a safetensors file anywhere makes it bad, never a crash") {
  const std::string whole = safetensors_bytes(one("F32", "[2,3]", "[0,24]") + "  ", std::string(24, 'x'));
  REQUIRE(open(whole).tensors().size() == 1);
  for (size_t length = 0; length < whole.size(); ++length) {
    INFO(length);
    CHECK(refusal_of(whole.substr(0, length)) != "no error");
  }
}

TEST_CASE("what the writer writes is what the reader reads") {
  const TemporaryFolder folder;
  const std::vector<float> weights{1.0F, -0.0F, INFINITY, 1e-40F, 3.0F, 7.0F};
  const std::vector<uint16_t> half{0x3C00, 0x8001};
  const std::vector<uint8_t> bytes{1, 2, 3};
  const std::vector<TensorToWrite> tensors{
      {"z.bytes", FileDType::u8, {3}, std::as_bytes(std::span(bytes))},
      {"half \"q\"\\\n\x7f é", FileDType::f16, {2, 1}, std::as_bytes(std::span(half))},
      {"weights", FileDType::f32, {2, 3}, std::as_bytes(std::span(weights))},
      {"a.scalar", FileDType::f32, {}, std::as_bytes(std::span(weights).first(1))},
      {"empty", FileDType::i64, {0, 5}, {}}};
  write_safetensors(folder / "m.safetensors", tensors, {{"format", "pt"}, {"a", "\"b\""}});
  const SafetensorsFile file(folder / "m.safetensors");
  CHECK(file.metadata().at("a") == "\"b\"");
  std::vector<std::string> order;
  for (const TensorInfo& info : file.tensors()) order.push_back(info.name);
  CHECK(order == std::vector<std::string>{"empty", "a.scalar", "weights", "half \"q\"\\\n\x7f é", "z.bytes"});
  for (const TensorToWrite& written : tensors) {
    const TensorInfo* read = file.find(written.name);
    REQUIRE(read != nullptr);
    CHECK(read->dtype == written.dtype);
    CHECK(read->shape == written.shape);
    const auto data = file.bytes(*read);
    CHECK(std::equal(data.begin(), data.end(), written.data.begin(), written.data.end()));
  }
  const std::string content = read_whole_file(folder / "m.safetensors");
  CHECK((content.size() - 24 - 4 - 4 - 3) % 8 == 0);  // 8 + the padded header
  write_safetensors(folder / "empty.safetensors", {});
  CHECK(SafetensorsFile(folder / "empty.safetensors").tensors().empty());
  CHECK(read_whole_file(folder / "empty.safetensors") == "\x08\0\0\0\0\0\0\0{}      "s);
}

TEST_CASE("the writer refuses what would be no valid file, and leaves the old one") {
  const TemporaryFolder folder;
  const auto path = folder.file("m.safetensors", "old");
  const std::vector<std::byte> data(4);
  const auto refuses = [&](std::vector<TensorToWrite> tensors, const std::string& word) {
    CHECK_THROWS_WITH(write_safetensors(path, tensors),
                      ContainsSubstring(word) && ContainsSubstring("m.safetensors"));
  };
  refuses({{"a", FileDType::f32, {2}, data}}, "do not fit");
  refuses({{"a", FileDType::u8, {uint64_t{1} << 62, 4}, data}}, "do not fit");
  refuses({{"a", FileDType::f32, {1}, data}, {"a", FileDType::u8, {4}, data}}, "\"a\"");
  refuses({{"__metadata__", FileDType::f32, {1}, data}}, "__metadata__");
  refuses({{"\xff", FileDType::f32, {1}, data}}, "UTF-8");
  CHECK(read_whole_file(path) == "old");
  CHECK(folder.names().size() == 1);
}

}  // namespace vitrine::test

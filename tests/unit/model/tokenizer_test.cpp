// Tokenizers against the libraries' own: the same numbers for 200 texts, and sentences for files that are not
// as they must be.
#include "model/text/tokenizer.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "model/text/protobuf.h"
#include "model/text/unicode.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "tests/support/temporary_folder.h"

using namespace vitrine;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::filesystem::path folder = std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "text";

// How many texts get other numbers than the library's.
void check_ids(const Tokenizer& tokenizer, const char* expected) {
  const nlohmann::json texts = read_json(folder / "texts.json"), answers = read_json(folder / expected);
  const auto length = answers.at("length").get<uint64_t>();
  REQUIRE(texts.size() == 200);
  REQUIRE(answers.at("ids").size() == 200);
  for (size_t i = 0; i < texts.size(); ++i) {
    auto ids = answers.at("ids").at(i).get<std::vector<uint32_t>>();
    ids.resize(length, answers.at("pad").get<uint32_t>());
    INFO("text " << i << ": " << texts.at(i).dump());
    CHECK(tokenizer.encode(texts.at(i).get<std::string>(), length) == ids);
  }
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    return error.what();
  }
  return "nothing was refused";
}

}  // namespace

TEST_CASE("CLIP's tokenizer.json gives the library's numbers") {
  check_ids(*read_tokenizer_json(folder / "clip" / "tokenizer.json"), "clip.json");
}

TEST_CASE("CLIP's vocab.json and merges.txt give the library's numbers") {
  check_ids(*read_clip_vocabulary(folder / "clip" / "vocab.json", folder / "clip" / "merges.txt"),
            "clip.json");
}

TEST_CASE("SigLIP's spiece.model gives the library's numbers") {
  check_ids(*open_tokenizer(folder / "siglip", TextKind::siglip), "siglip.json");
}

TEST_CASE("a unigram's tokenizer.json gives the library's numbers") {
  check_ids(*read_tokenizer_json(folder / "siglip_json" / "tokenizer.json"), "siglip_json.json");
}

TEST_CASE("SigLIP 2's tokenizer.json gives the library's numbers") {
  check_ids(*open_tokenizer(folder / "siglip2", TextKind::siglip, true), "siglip2.json");
  // Of one size: the file says lower case, which its normalizer doesn't do.
  check_ids(*open_tokenizer(folder / "siglip2_square", TextKind::siglip), "siglip2.json");
}

TEST_CASE("text that is no UTF-8 is refused") {
  const auto tokenizer = open_tokenizer(folder / "clip", TextKind::clip);
  try {
    (void)tokenizer->encode("a\xff", 77);
    FAIL("nothing was refused");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    CHECK_THAT(error.what(), ContainsSubstring("UTF-8"));
  }
}

TEST_CASE("what a tokenizer.json asks for and isn't known is refused by name") {
  const auto changed = [](const std::string& from, const std::function<void(nlohmann::json&)>& change) {
    const test::TemporaryFolder temporary;
    nlohmann::json json = read_json(folder / from / "tokenizer.json");
    change(json);
    const std::filesystem::path path = temporary.path() / "tokenizer.json";
    std::ofstream(path) << json.dump();
    return refusal([&] { (void)read_tokenizer_json(path); });
  };
  CHECK_THAT(changed("clip", [](auto& j) { j["normalizer"]["normalizers"][0]["type"] = "NFKC"; }),
             ContainsSubstring("NFKC"));
  CHECK_THAT(changed("siglip_json", [](auto& j) { j["normalizer"] = {{"type", "Precompiled"}}; }),
             ContainsSubstring("Precompiled"));
  CHECK_THAT(changed("clip", [](auto& j) { j["pre_tokenizer"] = {{"type", "BertPreTokenizer"}}; }),
             ContainsSubstring("BertPreTokenizer"));
  CHECK_THAT(
      changed("clip", [](auto& j) { j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "x+"; }),
      ContainsSubstring("x+"));
  CHECK_THAT(
      changed("siglip_json", [](auto& j) { j["normalizer"]["normalizers"][1]["pattern"]["Regex"] = "[^a]"; }),
      ContainsSubstring("[^a]"));
  CHECK_THAT(changed("clip", [](auto& j) { j["model"]["type"] = "WordPiece"; }),
             ContainsSubstring("WordPiece"));
  CHECK_THAT(changed("clip", [](auto& j) { j["model"]["byte_fallback"] = true; }),
             ContainsSubstring("byte_fallback"));
  CHECK_THAT(changed("siglip2", [](auto& j) { j["model"]["byte_fallback"] = false; }),
             ContainsSubstring("byte_fallback"));
  CHECK_THAT(changed("siglip2", [](auto& j) { j["model"]["vocab"].erase("<0xA7>"); }),
             ContainsSubstring("<0xA7>"));
  CHECK_THAT(changed("siglip2", [](auto& j) { j["pre_tokenizer"]["behavior"] = "Removed"; }),
             ContainsSubstring("Split"));
  // No tokenizer_config.json lies beside it.
  CHECK_THAT(changed("siglip2", [](auto&) {}), ContainsSubstring("padding_side"));
  CHECK_THAT(changed("clip", [](auto& j) { j["model"]["merges"][0] = "nowhere tobefound"; }),
             ContainsSubstring("nowhere"));
  CHECK_THAT(changed("siglip_json", [](auto& j) { j["model"]["unk_id"] = 1000000; }),
             ContainsSubstring("unk_id"));
  // Cut to 32 bits it would be a token.
  CHECK_THAT(changed("siglip_json", [](auto& j) { j["padding"] = {{"pad_id", (uint64_t{1} << 32) + 1}}; }),
             ContainsSubstring("pad_id"));
  CHECK_THAT(changed("siglip_json", [](auto& j) { j["post_processor"]["type"] = "Other"; }),
             ContainsSubstring("Other"));
  CHECK_THAT(changed("siglip_json", [](auto& j) { j["added_tokens"][0]["single_word"] = true; }),
             ContainsSubstring("single_word"));
}

TEST_CASE("a cut SentencePiece model is refused wherever it ends") {
  std::ifstream file(folder / "siglip" / "spiece.model", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(bytes.size() > 1000);
  const SentencePieceModel whole = parse_sentencepiece(bytes, "x.model");
  CHECK(whole.pieces.size() > 300);
  size_t refused = 0;
  for (size_t length = 0; length < 300; ++length) {
    try {
      (void)parse_sentencepiece(std::string_view(bytes).substr(0, length), "x.model");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      ++refused;
    }
  }
  CHECK(refused > 250);
  CHECK_THAT(refusal([] { (void)parse_sentencepiece("", "x.model"); }), ContainsSubstring("no unknown one"));
}

TEST_CASE("Unicode's forms are those of the standard") {
  CHECK(unicode::nfc(U"e\u0301") == U"\u00e9");
  CHECK(unicode::nfc(U"a\u0307\u0323") == U"\u1ea1\u0307");
  CHECK(unicode::nfc(U"\u0958") == U"\u0915\u093c");  // not composed again
  CHECK(unicode::nfc(U"\u1100\u1161\u11a8") == U"\uac01");
  CHECK(unicode::lower(U"\u0130\u03a3") == U"i\u0307\u03c3");
  CHECK(unicode::python_lower(U"A\u03a3 \u03a3") == U"a\u03c2 \u03c3");
  CHECK(unicode::encode(unicode::decode("a\u00e9\u20ac\U0001f600")) == "a\u00e9\u20ac\U0001f600");
}

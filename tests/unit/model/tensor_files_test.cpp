#include "model/files/tensor_files.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "model/files/safetensors_writer.h"
#include "runtime/util/error.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;

void write_tensors(const std::filesystem::path& path,
                   const std::vector<std::pair<std::string, float>>& values) {
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, value] : values) {
    tensors.push_back({name, FileDType::f32, {1}, std::as_bytes(std::span(&value, 1))});
  }
  write_safetensors(path, tensors);
}

std::string index_of(const std::string& weight_map) {
  return R"({"metadata":{},"weight_map":)" + weight_map + "}";
}

std::string refusal_of(const std::filesystem::path& path) {
  try {
    const TensorFiles files(path);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a checkpoint is found as a file, as a folder and through an index") {
  const TemporaryFolder folder;
  write_tensors(folder / "model-1.safetensors", {{"b", 2.0F}, {"unlisted", 9.0F}});
  write_tensors(folder / "model-2.safetensors", {{"a", 1.0F}, {"c", 3.0F}});
  folder.file("model.safetensors.index.json",
              index_of(R"({"c":"model-2.safetensors","b":"model-1.safetensors","a":"model-2.safetensors"})"));
  for (const auto& path : {folder.path(), folder / "model.safetensors.index.json"}) {
    const TensorFiles files(path);
    REQUIRE(files.tensors().size() == 3);
    CHECK(files.tensors()[0].info->name == "a");
    CHECK(files.find("c")->floats() == std::vector<float>{3.0F});
    CHECK(files.find("b")->file->path() == folder / "model-1.safetensors");
    CHECK(files.find("unlisted") == nullptr);
    CHECK(files.path() == folder / "model.safetensors.index.json");
  }
  write_tensors(folder / "model.safetensors", {{"whole", 5.0F}});
  TensorFiles files(folder.path());  // a single file goes before an index
  const TensorFiles moved = std::move(files);
  CHECK(moved.find("whole")->floats() == std::vector<float>{5.0F});
  CHECK(moved.path() == folder / "model.safetensors");
}

TEST_CASE("an index cannot lead out of its folder, nor to what is not there") {
  const TemporaryFolder outside;
  write_tensors(outside / "secret.safetensors", {{"a", 1.0F}});
  const TemporaryFolder folder;
  write_tensors(folder / "good.safetensors", {{"a", 1.0F}});
  test::make_link(outside / "secret.safetensors", folder / "link.safetensors");
  test::make_link("good.safetensors", folder / "inner.safetensors");
  const auto index = [&](const std::string& weight_map) {
    return folder.file("x.index.json", index_of(weight_map));
  };
  CHECK(TensorFiles(index(R"({"a":"inner.safetensors"})")).tensors().size() == 1);
  const std::string up = "../" + outside.path().filename().string() + "/secret.safetensors";
  CHECK_THAT(refusal_of(index(R"({"a":")" + up + "\"}")), ContainsSubstring("plain name"));
  CHECK_THAT(refusal_of(index(R"({"a":")" + (outside / "secret.safetensors").string() + "\"}")),
             ContainsSubstring("plain name"));
  CHECK_THAT(refusal_of(index(R"({"a":"..\\secret.safetensors"})")), ContainsSubstring("plain name"));
  CHECK_THAT(refusal_of(index(R"({"a":"good.safetensors\u0000"})")), ContainsSubstring("plain name"));
  CHECK_THAT(refusal_of(index(R"({"a":""})")), ContainsSubstring("plain name"));
  CHECK_THAT(refusal_of(index(R"({"a":"x.index.json"})")), ContainsSubstring("plain name"));
  CHECK_THAT(refusal_of(index(R"({"a":"link.safetensors"})")), ContainsSubstring("leads out"));
  CHECK_THAT(refusal_of(index(R"({"a":"missing.safetensors"})")), ContainsSubstring("no such file"));
  CHECK_THAT(refusal_of(index(R"({"b":"good.safetensors"})")), ContainsSubstring("does not hold"));
  CHECK_THAT(refusal_of(index(R"({"a":1})")), ContainsSubstring("JSON number"));
  CHECK_THAT(refusal_of(index("[]")), ContainsSubstring("no weight_map"));
  CHECK_THAT(refusal_of(folder.file("x.json", "[]")), ContainsSubstring("no weight_map"));
  CHECK_THAT(refusal_of(folder.path()), ContainsSubstring("neither"));
  CHECK_THAT(refusal_of(folder / "missing"), ContainsSubstring("No such file"));
}

TEST_CASE("the links of Hugging Face's cache are followed inside their repository only") {
  const TemporaryFolder cache;
  const auto snapshot = cache / "models--org--vit/snapshots/0123abcd";
  std::filesystem::create_directories(snapshot);
  std::filesystem::create_directories(cache / "models--org--vit/blobs");
  write_tensors(cache / "models--org--vit/blobs/f00", {{"a", 4.0F}});
  write_tensors(cache / "elsewhere", {{"a", 4.0F}});
  test::make_link("../../blobs/f00", snapshot / "m.safetensors");
  test::make_link("../../../elsewhere", snapshot / "n.safetensors");
  cache.file("models--org--vit/snapshots/0123abcd/model.safetensors.index.json",
             index_of(R"({"a":"m.safetensors"})"));
  CHECK(TensorFiles(snapshot).find("a")->floats() == std::vector<float>{4.0F});
  cache.file("models--org--vit/snapshots/0123abcd/model.safetensors.index.json",
             index_of(R"({"a":"n.safetensors"})"));
  CHECK_THAT(refusal_of(snapshot), ContainsSubstring("leads out"));
}

}  // namespace vitrine::test

#include "apps/desktop/engine/model_list.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <map>

#include "runtime/util/error.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::desktop {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

Environment cache_in(const fs::path& folder) {
  return [path = folder.string()](const char* name) -> const char* {
    return std::string_view(name) == "HF_HUB_CACHE" ? path.c_str() : nullptr;
  };
}

// A repository of the cache with these files in its one snapshot.
void add_repository(const test::TemporaryFolder& cache, const std::string& name,
                    const std::map<std::string, std::string>& files) {
  const std::string snapshot = name + "/snapshots/0123abcd";
  fs::create_directories(cache / snapshot);
  for (const auto& [file, content] : files) (void)cache.file(snapshot + "/" + file, content);
}

std::vector<std::string> names_from(const std::vector<ModelChoice>& models, ModelSource source) {
  std::vector<std::string> names;
  for (const ModelChoice& model : models) {
    if (model.source == source) names.push_back(model.name);
  }
  return names;
}

}  // namespace

TEST_CASE("the list has the shipped digits, what the hub's cache holds, and architectures marked as random") {
  const test::TemporaryFolder cache;
  add_repository(cache, "models--google--vit-tiny",
                 {{"config.json", R"({"model_type": "vit"})"}, {"model.safetensors", "x"}});
  add_repository(cache, "models--timm--vit_x--y",
                 {{"config.json", R"({"architecture": "vit_base_patch16_224"})"},
                  {"model.safetensors.index.json", "x"}});
  // What else people have there.
  add_repository(cache, "models--org--bert",
                 {{"config.json", R"({"model_type": "bert"})"}, {"model.safetensors", "x"}});
  add_repository(cache, "models--timm--resnet",
                 {{"config.json", R"({"architecture": "resnet50"})"}, {"model.safetensors", "x"}});
  add_repository(
      cache, "models--timm--swin",
      {{"config.json", R"({"architecture": "swin_tiny_patch4_window7_224"})"}, {"model.safetensors", "x"}});
  add_repository(cache, "models--org--pickled",
                 {{"config.json", R"({"model_type": "vit"})"}, {"pytorch_model.bin", "x"}});
  add_repository(cache, "models--org--broken", {{"config.json", "{"}, {"model.safetensors", "x"}});
  add_repository(cache, "models--nameless",
                 {{"config.json", R"({"model_type": "vit"})"}, {"model.safetensors", "x"}});
  add_repository(cache, "datasets--org--pictures", {{"x", ""}});
  fs::create_directories(cache / "models--org--empty");

  const std::vector<ModelChoice> models = list_models(cache_in(cache.path()));
  REQUIRE_FALSE(models.empty());
  CHECK(models.front().name == "digits");
  CHECK(models.front().source == ModelSource::shipped);
  CHECK(fs::exists(models.front().options.model / "model.safetensors"));
  CHECK(names_from(models, ModelSource::hub) == std::vector<std::string>{"google/vit-tiny", "timm/vit_x--y"});
  for (const ModelChoice& model : models) {
    if (model.source != ModelSource::random) continue;
    INFO(model.name);
    CHECK(model.title.ends_with(", random weights"));
    CHECK(open_model(model.options).family == "random");  // an architecture of this name exists
  }
  CHECK(names_from(models, ModelSource::random).size() >= 4);
  CHECK(model_choice(models, "vit_base_patch16_224").title == "ViT-B/16, random weights");
}

TEST_CASE("a cache that isn't there is an empty one") {
  const test::TemporaryFolder folder;
  CHECK(names_from(list_models(cache_in(folder / "none")), ModelSource::hub).empty());
}

TEST_CASE("a model is chosen by name, path or architecture") {
  const test::TemporaryFolder folder, none;
  (void)folder.file("vit.safetensors", "x");
  const std::vector<ModelChoice> models = list_models(cache_in(none.path()));
  CHECK(model_choice(models, "").name == "digits");
  CHECK(model_choice(models, "digits").source == ModelSource::shipped);
  const ModelChoice file = model_choice(models, folder / "vit.safetensors");
  CHECK(file.source == ModelSource::file);
  CHECK(file.title == "vit.safetensors");
  CHECK(file.options.model == folder / "vit.safetensors");
  CHECK(model_choice(models, (folder.path() / "").string()).title == folder.path().filename());
  const ModelChoice preset = model_choice(models, "vit_huge_patch14_224");
  CHECK(preset.source == ModelSource::random);
  CHECK(preset.title == "vit_huge_patch14_224, random weights");
  CHECK(model_choice(models, "org/name").source == ModelSource::hub);
  CHECK_THROWS_MATCHES(model_choice(models, "conjured"), Error,
                       MessageMatches(ContainsSubstring("conjured")));
  CHECK_THROWS_AS(model_choice({}, ""), Error);
}

TEST_CASE("what comes with Vitrine is found beside the executable first") {
  const test::TemporaryFolder folder;
  const fs::path bin = folder / "bin";
  fs::create_directories(bin);
  fs::create_directories(folder / "share/vitrine/digits");
  CHECK(find_asset("digits", bin) == folder / "share/vitrine/digits");
  fs::create_directories(bin / "assets/digits");
  CHECK(find_asset("digits", bin) == bin / "assets/digits");
  CHECK(find_asset("samples", bin));  // the source tree's
  CHECK_FALSE(find_asset("no such folder", bin));
}

}  // namespace vitrine::desktop

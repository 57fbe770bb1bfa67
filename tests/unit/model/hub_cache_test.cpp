#include "model/files/hub_cache.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <map>

#include "runtime/util/error.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"

using namespace vitrine;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

Environment environment(std::map<std::string, std::string> variables) {
  return [variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

// A cache folder with one model of these snapshots, the later ones newer.
struct Cache {
  test::TemporaryFolder folder;
  fs::path repository = folder / "models--org--name";
  std::vector<std::string> warnings;

  explicit Cache(const std::vector<std::string>& snapshots, const std::string& main = "") {
    fs::create_directories(repository / "refs");
    if (!main.empty()) (void)folder.file("models--org--name/refs/main", main);
    const auto now = fs::file_time_type::clock::now();
    for (size_t i = 0; i < snapshots.size(); ++i) {
      fs::create_directories(repository / "snapshots" / snapshots[i]);
      test::set_time(repository / "snapshots" / snapshots[i], now + std::chrono::hours(static_cast<int>(i)));
    }
  }
  fs::path find(const std::string& name = "org/name") {
    return find_in_hub_cache(
        name, [&](const std::string& warning) { warnings.push_back(warning); },
        environment({{"HF_HUB_CACHE", folder.path().string()}}));
  }
  std::string refusal(const std::string& name = "org/name") {
    try {
      find(name);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      return error.what();
    }
    FAIL("was not refused");
    return {};
  }
};

}  // namespace

TEST_CASE("the hub's cache is where huggingface_hub puts it") {
  const auto folder = [](std::map<std::string, std::string> variables) {
    return hub_cache_folder(environment(std::move(variables))).generic_string();
  };
  CHECK(folder({{"HOME", "/home/a"}}) == "/home/a/.cache/huggingface/hub");
  CHECK(folder({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", "/x"}}) == "/x/huggingface/hub");
  CHECK(folder({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "/h"}}) == "/h/hub");
  CHECK(folder({{"HOME", "/home/a"}, {"HF_HOME", "/h"}, {"HUGGINGFACE_HUB_CACHE", "/old"}}) == "/old");
  CHECK(folder({{"HUGGINGFACE_HUB_CACHE", "/old"}, {"HF_HUB_CACHE", "/c"}, {"HF_HOME", "/h"}}) == "/c");
  CHECK(folder({{"HOME", "/home/a"}, {"HF_HOME", "~/h"}}) == "/home/a/h/hub");
  CHECK(folder({{"HOME", "/home/a"}, {"HF_HOME", "~b/h"}}) == "~b/h/hub");
  CHECK(folder({{"HOME", "/home/a"}, {"HF_HOME", ""}}) == "/home/a/.cache/huggingface/hub");
}

TEST_CASE("a hub name is an organisation and a name, and nothing that leads elsewhere") {
  for (const char* name : {"google/vit-base-patch16-224", "timm/vit_tiny_patch16_224.augreg_in21k", "a/B.9"})
    CHECK(is_hub_name(name));
  for (const char* name : {"", "vit", "/vit", "google/", "a/b/c", "../x", "a/..", "a/.b", "-a/b", "a b/c",
                           "a\\b/c", "a/b\n", "./model"}) {
    INFO(name);
    CHECK_FALSE(is_hub_name(name));
  }
}

TEST_CASE("refs/main says which snapshot is meant") {
  Cache cache({"aaa", "bbb", "ccc"}, "bbb");
  CHECK(cache.find() == cache.repository / "snapshots" / "bbb");
  CHECK(cache.warnings.empty());
  Cache newline({"aaa", "bbb"}, "aaa\n");
  CHECK(newline.find() == newline.repository / "snapshots" / "aaa");
}

TEST_CASE("without a usable refs/main the newest snapshot is taken, and named") {
  for (const char* main : {"", "gone", "../../elsewhere", "/etc", "."}) {
    INFO(main);
    Cache cache({"ccc", "aaa", "bbb"}, main);
    CHECK(cache.find() == cache.repository / "snapshots" / "bbb");
    REQUIRE(cache.warnings.size() == 1);
    CHECK_THAT(cache.warnings[0], ContainsSubstring("org/name") && ContainsSubstring("refs/main") &&
                                      ContainsSubstring("newest") && ContainsSubstring("bbb"));
  }
}

TEST_CASE("a model that isn't in the cache gets a sentence that says where it was looked for") {
  Cache cache({}, "aaa");
  CHECK_THAT(cache.refusal(), ContainsSubstring("no snapshot") && ContainsSubstring("models--org--name") &&
                                  ContainsSubstring("hf download org/name"));
  CHECK_THAT(cache.refusal("org/other"), ContainsSubstring("models--org--other") &&
                                             ContainsSubstring(cache.folder.path().string()) &&
                                             ContainsSubstring("hf download org/other"));
}

TEST_CASE("the cache's models are listed by name") {
  Cache cache({"aaa"}, "aaa");
  for (const char* folder :
       {"models--b--x--y/snapshots/1", "models--a--z/snapshots/1", "models--none/snapshots/1",
        "models--c--empty/snapshots", "datasets--d--data/snapshots/1", "models--e--..", "other"})
    fs::create_directories(cache.folder / folder);
  const Environment here = environment({{"HF_HUB_CACHE", cache.folder.path().string()}});
  const std::vector<std::string> names = names_in_hub_cache(here);
  CHECK(names == std::vector<std::string>{"a/z", "b/x--y", "org/name"});
  for (const std::string& name : names) CHECK(fs::is_directory(find_in_hub_cache(name, {}, here)));
  CHECK(names_in_hub_cache(environment({{"HF_HUB_CACHE", "/nonexistent"}})).empty());
}

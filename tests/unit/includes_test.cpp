// Arrows point down: what the sources of a folder include lies in that folder or in one below it.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

namespace fs = std::filesystem;
using Folders = std::set<std::string>;

// Each part of the program with the parts right below it; whatever is below those is below it, too.
const std::map<std::string, Folders> parts{
    {"runtime/util", {}},
    {"runtime/vk", {"runtime/util"}},
    {"runtime/graph", {"runtime/vk", "shaders"}},
    {"runtime/check", {"runtime/graph"}},
    {"runtime/ops", {"runtime/check"}},
    {"runtime/selftest", {"runtime/ops"}},
    {"runtime/tune", {"runtime/selftest"}},
    {"shaders", {}},
    {"images", {"runtime/util"}},
    {"model/vit", {"runtime/tune"}},
    {"model/pictures", {"runtime/tune"}},
    {"model/families", {"model/vit"}},
    {"model/labels", {}},
    {"model/files", {"model/families", "model/pictures", "model/labels"}},
    {"model/run", {"model/files"}},
    {"model/look", {"model/run"}},
    {"model", {"model/look"}},
    {"train", {"model", "images"}},
    {"apps/cli", {"train"}},
    {"apps/desktop/engine", {"train"}},
    {"apps/desktop/gpu", {"apps/desktop/engine"}},
    {"apps/desktop/script", {"runtime/util"}},
    {"apps/desktop/panels", {"apps/desktop"}},
    // The window and its panels know each other.
    {"apps/desktop",
     {"apps/desktop/engine", "apps/desktop/gpu", "apps/desktop/script", "apps/desktop/panels"}},
    {"bench", {"train"}},
};

// The part that a file lies in: of those that its path begins with, the longest. None for what is nobody's
// part, which generated headers and those of libraries are.
std::optional<std::string> part_of(std::string_view path) {
  std::optional<std::string> found;
  for (const auto& [part, below] : parts) {
    if (path.starts_with(part + "/") && (!found || part.size() > found->size())) found = part;
  }
  return found;
}

void add_below(const std::string& part, Folders& all) {
  if (!all.insert(part).second) return;
  for (const std::string& next : parts.at(part)) add_below(next, all);
}

// Each include of the text that points up, as FILE:LINE: INCLUDE.
std::vector<std::string> arrows_up(const std::string& file, const std::string& text) {
  Folders allowed;
  add_below(part_of(file).value(), allowed);
  std::vector<std::string> found;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    constexpr std::string_view begin = "#include \"";
    if (!line.starts_with(begin)) continue;
    const std::string included = line.substr(begin.size(), line.find('"', begin.size()) - begin.size());
    const auto part = part_of(included);
    if (part && !allowed.contains(*part))
      found.push_back(file + ":" + std::to_string(number) + ": " + included);
  }
  return found;
}

}  // namespace

TEST_CASE("no source includes what lies above it") {
  const fs::path tree = fs::path(VITRINE_TEST_DATA).parent_path();
  std::vector<std::string> found;
  size_t files = 0;
  for (const std::string room : {"runtime", "shaders", "images", "model", "train", "apps", "bench"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(tree / room)) {
      const std::string ending = entry.path().extension().string();
      if (ending != ".h" && ending != ".cpp") continue;
      const std::string file = fs::relative(entry.path(), tree).generic_string();
      INFO(file);
      REQUIRE(part_of(file));  // a new folder has its place among the parts
      std::ranges::copy(arrows_up(file, read_whole_file(entry.path())), std::back_inserter(found));
      ++files;
    }
  }
  CHECK(files > 400);
  CHECK(found == std::vector<std::string>{});
}

TEST_CASE("an include that points up is found with its file and line") {
  const std::string text =
      "// A comment: #include \"runtime/ops/elementwise/binary.h\"\n#include <map>\n#include "
      "\"runtime/vk/device.h\"\n"
      "#include \"runtime/ops/elementwise/binary.h\"\n#include \"model/vit/presets.h\"  // why\n#include "
      "\"imgui.h\"\n";
  CHECK(arrows_up("runtime/graph/plan.cpp", text) ==
        std::vector<std::string>{"runtime/graph/plan.cpp:4: runtime/ops/elementwise/binary.h",
                                 "runtime/graph/plan.cpp:5: model/vit/presets.h"});
  CHECK(arrows_up("apps/cli/main.cpp", text).empty());
  // What operators' cases are made of knows no operator.
  CHECK(arrows_up("runtime/check/op_case.cpp", text).size() == 2);
  CHECK(arrows_up("runtime/ops/elementwise/a.cpp", "#include \"runtime/check/op_case.h\"\n").empty());
  CHECK(arrows_up("images/png.cpp", text).size() == 3);
  CHECK(arrows_up("apps/desktop/engine/a.h", "#include \"apps/desktop/gpu/b.h\"\n").size() == 1);
}

}  // namespace vitrine::test

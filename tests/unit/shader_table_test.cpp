// Every shader of this build is valid SPIR-V for Vulkan 1.3, also those that no device here can run.
#include "runtime/vk/shader_table.h"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <regex>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace vitrine {
namespace {

constexpr int no_such_program = 127;

TEST_CASE("every shader variant is valid SPIR-V") {
  if (test::run_command({"/usr/bin/env", "spirv-val", "--version"}).status == no_such_program) {
    SKIP("spirv-val is not installed (Debian: spirv-tools)");
  }
  REQUIRE_FALSE(all_shaders().empty());
  const test::TemporaryFolder folder;
  for (const ShaderVariant& shader : all_shaders()) {
    const std::string name = std::string(shader.shader) + "." + std::string(shader.variant);
    const std::string_view bytes(reinterpret_cast<const char*>(shader.words.data()),
                                 shader.words.size_bytes());
    const test::CommandResult result = test::run_command(
        {"/usr/bin/env", "spirv-val", "--target-env", "vulkan1.3", folder.file(name, bytes).string()});
    INFO(name << ": " << result.out << result.err);
    CHECK(result.status == 0);
  }
}

TEST_CASE("specialization constants have the names that the sources give them") {
  const std::regex declaration(R"(constant_id = (\d+)\) const \w+ (\w+))");
  const auto sources = std::filesystem::path(VITRINE_TEST_DATA).parent_path() / "shaders";
  size_t declared = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(sources)) {
    if (entry.path().extension() != ".comp") continue;
    const std::string text = test::read_whole_file(entry.path());
    for (const ShaderVariant& shader : all_shaders()) {
      if (shader.shader != entry.path().stem().string()) continue;
      INFO(shader.shader << "." << shader.variant);
      const std::span<const std::string> names = constant_names_of(shader);
      for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at) {
        const size_t id = std::stoul((*at)[1]);
        REQUIRE(id < names.size());
        CHECK(names[id] == (*at)[2].str());
        ++declared;
      }
    }
  }
  CHECK(declared > 500);
}

}  // namespace
}  // namespace vitrine

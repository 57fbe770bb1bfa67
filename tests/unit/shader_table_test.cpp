// Every shader of this build is valid SPIR-V for Vulkan 1.3, also those that no device here can run.
#include "runtime/vk/shader_table.h"

#include <catch2/catch_test_macros.hpp>
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

}  // namespace
}  // namespace vitrine

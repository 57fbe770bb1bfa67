// Which kernels are for which devices: their names, their shaders' folders and the choice agree.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/graph/kernel_choice.h"
#include "runtime/selftest/self_test.h"
#include "tests/support/made_up/made_up_device.h"

namespace vitrine::test {
namespace {

namespace fs = std::filesystem;

constexpr std::array targets{Target::any, Target::cpu, Target::matrix_units};

std::string folder_of(Target target) {
  return target == Target::cpu ? "cpu" : target == Target::matrix_units ? "matrix_units" : "";
}

// Each shader's folder below its group's, by its name.
std::map<std::string, std::string, std::less<>> shader_folders() {
  const fs::path shaders = fs::path(VITRINE_TEST_DATA).parent_path() / "shaders";
  std::map<std::string, std::string, std::less<>> folders;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(shaders)) {
    if (entry.path().extension() != ".comp") continue;
    const fs::path place = fs::relative(entry.path().parent_path(), shaders);
    folders[entry.path().stem().string()] = place.has_parent_path() ? place.filename().string() : "";
  }
  return folders;
}

}  // namespace

TEST_CASE("a kernel's name says what it is for") {
  for (const OpDef* op : all_ops()) {
    for (const KernelDef& kernel : op->kernels) {
      INFO(op->name << "=" << kernel.name);
      CHECK(kernel.name.starts_with("cpu_") == (kernel.target == Target::cpu));
      CHECK(kernel.name.starts_with("coopmat") == (kernel.target == Target::matrix_units));
    }
  }
}

TEST_CASE("what lies in a target's folder is dispatched by that target's kernels alone") {
  const auto folders = shader_folders();
  for (const Target target : targets) {
    INFO(folder_of(target));
    CHECK(std::ranges::any_of(folders, [&](const auto& each) { return each.second == folder_of(target); }));
  }
  for (const Capabilities& device : {plain_gpu(), rich_gpu(), software_driver()}) {
    const selftest::SelfTests all(device);
    for (const selftest::SelfTest& test : all.tests()) {
      for (const std::string& certificate : test.certificates) {
        // "operator=kernel shader.variant#hash"
        const size_t begin = certificate.find(' ') + 1;
        const std::string shader = certificate.substr(begin, certificate.find('.', begin) - begin);
        INFO(test.name() << " dispatches " << shader);
        REQUIRE(folders.contains(shader));
        const std::string& folder = folders.at(shader);
        CHECK((folder.empty() || folder == folder_of(test.candidate.kernel->target)));
      }
    }
  }
}

TEST_CASE("GPUs choose no kernel that is for CPUs where they have another") {
  for (const Capabilities& device : {plain_gpu(), rich_gpu()}) {
    for (const OpDef* op : all_ops()) {
      for (const reference::OpCase& op_case : op->cases()) {
        const std::shared_ptr<const Graph> graph = reference::graph_of(op_case);
        for (const Node& node : graph->nodes()) {
          const std::vector<Candidate> candidates = candidates_of({*graph, node, device});
          if (candidates.empty()) continue;
          INFO(op->name << ", " << op_case.label << ": " << candidates.front().name());
          CHECK(candidates.front().kernel->target != Target::cpu);
        }
      }
    }
  }
}

}  // namespace vitrine::test

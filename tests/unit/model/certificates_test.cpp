// The self-test runs the code that models run: on devices that are made up, what they choose for the products
// and attentions of real models is certified when all self-tests of the device have passed.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <set>

#include "model/vit/presets.h"
#include "model/vit/vit_graph.h"
#include "runtime/graph/fusion.h"
#include "runtime/graph/kernel_choice.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/tokens/patch_embed.h"
#include "runtime/selftest/self_test.h"
#include "tests/support/made_up_device.h"

using namespace vitrine;

namespace {

Capabilities named(std::string name, Capabilities device) {
  device.name = std::move(name);
  return device;
}

Capabilities without_matrices() {
  Capabilities device = test::rich_gpu();
  device.has = Need::storage16 | Need::fp16 | Need::subgroup_control;
  device.cooperative_shapes.clear();
  return device;
}

std::vector<Capabilities> devices() {
  std::vector<Capabilities> all{
      named("f32 only", test::plain_gpu()), named("16x16x16 matrices", test::rich_gpu()),
      named("f16 without matrices", without_matrices()), named("llvmpipe", test::software_driver())};
  Capabilities& older = all.emplace_back(named("older llvmpipe", test::software_driver()));
  older.loops_gather = true;
  Capabilities& integrated = all.emplace_back(named("integrated", without_matrices()));
  integrated.type = DeviceType::integrated;
  integrated.max_workgroup_size = {128, 128, 64};
  integrated.max_workgroup_invocations = 128;
  integrated.max_shared_bytes = 16 << 10;
  Capabilities& rdna = all.emplace_back(named("RDNA", without_matrices()));
  rdna.vendor_id = 0x1002;
  rdna.max_shared_bytes = 64 << 10;
  Capabilities& gcn = all.emplace_back(named("GCN", rdna));
  gcn.subgroup_size = gcn.min_subgroup_size = 64;
  Capabilities& turing = all.emplace_back(named("16x8x16 matrices", test::rich_gpu()));
  turing.cooperative_shapes = {{16, 8, 8, "f16", "f16", "f32", "f32"},
                               {16, 8, 16, "f16", "f16", "f32", "f32"}};
  turing.max_shared_bytes = 48 << 10;
  turing.multiprocessors = 40;
  // With all of VK_NV_cooperative_matrix2; the granularities are made up.
  Capabilities& flexible = all.emplace_back(named("flexible matrices", turing));
  flexible.max_subgroup_size = 32;
  flexible.has = flexible.has | Need::coopmat2_elements | Need::coopmat2_reductions |
                 Need::coopmat2_conversions | Need::coopmat2_tensors | Need::coopmat2_workgroups;
  flexible.flexible_max_dimension = 1024;
  flexible.flexible_shapes = {{16, 16, 16, "f16", "f16", "f32", "f32", 128},
                              {32, 32, 16, "f16", "f16", "f32", "f32", 256},
                              {16, 16, 16, "f16", "f16", "f32", "f32", 0}};
  return all;
}

// As if `vitrine doctor` had run and every test had passed.
KernelChoices all_passed(const Capabilities& device) {
  KernelChoices known;
  for (const char* op : {"matmul", "attention", "patch_embed"}) {
    const selftest::SelfTests tests(device, op);
    for (const selftest::SelfTest& test : tests.tests()) {
      for (const std::string& key : test.certificates) known.certificates[key] = "";
    }
  }
  return known;
}

// The certificates that what is chosen for the graph's products and attentions has and has not got.
struct Certified {
  std::set<std::string> kernels;  // that were chosen
  std::set<std::string> missing;
};
void look_up(const Graph& graph, const Capabilities& device, const KernelChoices& known,
             Certified& certified) {
  std::set<std::string> seen;
  for (const Node& node : graph.nodes()) {
    if (node.op != &op_matmul && node.op != &op_attention && node.op != &op_patch_embed) continue;
    if (!seen.insert(node_key(graph, node)).second) continue;
    const LowerContext context(graph, node, device);
    const Candidate chosen = choose_kernel(graph, context, "", &known).candidate;
    certified.kernels.insert(std::string(node.op->name) + "=" + std::string(chosen.kernel->name));
    for (const std::string& key : certificate_keys(*node.op, chosen, lower_as(context, chosen))) {
      if (!known.certificates.contains(key)) certified.missing.insert(node.name + ": " + key);
    }
  }
}

}  // namespace

TEST_CASE("certificates: what real models choose is what the self-test runs") {
  std::map<std::string, std::set<std::string>> chosen;
  for (const Capabilities& device : devices()) {
    const KernelChoices known = all_passed(device);
    for (const char* arch :
         {"vit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224", "vit_large_patch16_224"}) {
      ViTConfig config = preset(arch);
      config.depth = 1;  // the blocks are alike
      for (const DType dtype : {DType::f32, DType::f16}) {
        if (dtype == DType::f16 && !device.supports(Need::storage16)) continue;
        for (const uint64_t batch : {1u, 8u}) {
          INFO(device.name << ": " << arch << " " << name_of(dtype) << " batch " << batch);
          const auto graph =
              fuse(make_vit_graph(config, {.batch = batch, .dtype = dtype}), all_fusions()).graph;
          Certified certified;
          look_up(*graph, device, known, certified);
          CHECK(certified.missing == std::set<std::string>{});
          chosen[device.name].merge(certified.kernels);
        }
      }
    }
  }
  // The devices do differ.
  CHECK(chosen["f32 only"].contains("matmul=tiled"));
  CHECK(chosen["f32 only"].contains("matmul=few_rows"));
  CHECK(chosen["16x16x16 matrices"].contains("matmul=coopmat"));
  CHECK(chosen["16x16x16 matrices"].contains("attention=coopmat"));
  CHECK(chosen["llvmpipe"].contains("matmul=cpu_direct"));
  CHECK(chosen["older llvmpipe"].contains("matmul=cpu_chunks"));
  if (try_find_shader("matmul_coopmat2", "f16")) {
    CHECK(chosen["flexible matrices"].contains("matmul=coopmat2"));
    CHECK(chosen["flexible matrices"].contains("attention=coopmat2"));
  }
}

TEST_CASE("certificates: another path through the same shader is another certificate, another size is not") {
  const Capabilities device = test::rich_gpu();
  const auto keys_of = [&](uint64_t m, uint64_t n, uint64_t k, const char* kernel) {
    Graph graph;
    matmul(graph, "y", graph.input("x", {m, k}, DType::f16), graph.constant("w", {n, k}, DType::f16));
    const LowerContext context(graph, graph.nodes()[0], device);
    const Candidate candidate{candidate_named(op_matmul, kernel).kernel, "16x32x16/4x4/overlap"};
    return certificate_keys(op_matmul, candidate, lower_as(context, candidate));
  };
  for (const char* kernel : {"tiled", "few_rows"}) {
    INFO(kernel);
    const std::vector<std::string> aligned = keys_of(8, 192, 768, kernel);
    CHECK(aligned.size() == 1);
    CHECK(aligned == keys_of(5, 768, 3072, kernel));
    CHECK(aligned != keys_of(8, 192, 767, kernel));
  }
  CHECK(keys_of(8, 192, 768, "tiled") != keys_of(8, 191, 768, "tiled"));
  CHECK_THAT(keys_of(8, 192, 768, "tiled").front(),
             Catch::Matchers::EndsWith("k_multiple=16,aligned_n,overlap"));
}

TEST_CASE("certificates: a slice of a sum runs the same code whatever their number") {
  Graph graph;
  matmul(graph, "y", graph.input("x", {197, 768}), graph.constant("w", {192, 768}));
  const Capabilities device = test::plain_gpu();
  const LowerContext context(graph, graph.nodes()[0], device);
  std::set<std::string> keys;
  size_t sliced = 0;
  for (const Candidate& candidate : candidates_of(context)) {
    if (candidate.configuration.find("/slices") == std::string::npos) continue;
    ++sliced;
    for (const std::string& key : certificate_keys(op_matmul, candidate, lower_as(context, candidate))) {
      CHECK_THAT(key, !Catch::Matchers::ContainsSubstring("slices2") &&
                          !Catch::Matchers::ContainsSubstring("slices4"));
      keys.insert(key);
    }
  }
  CHECK(sliced > 1);
  CHECK(keys.size() == 2 * sliced);  // the product of each tile, and what adds up its slices
}

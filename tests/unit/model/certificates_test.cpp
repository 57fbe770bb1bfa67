// The self-test runs the code that models run: on devices that are made up, what they choose for the
// products, norms and attentions of real models is certified when all self-tests of the device have passed.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <set>

#include "model/families/known_architectures.h"
#include "model/vit/vit_graph.h"
#include "runtime/graph/fusion.h"
#include "runtime/graph/kernel_choice.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/rotary_matmul.h"
#include "runtime/ops/tokens/patch_embed.h"
#include "tests/support/made_up/certified.h"
#include "tests/support/made_up/made_up_device.h"

using namespace vitrine;

TEST_CASE("certificates: what real models choose is what the self-test runs") {
  std::map<std::string, std::set<std::string>> chosen;
  for (const Capabilities& device : test::devices_of_all_kinds()) {
    const KernelChoices known = test::all_self_tests_passed(device);
    for (const char* arch : {"vit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224",
                             "vit_large_patch16_224", "vit_base_patch16_dinov3"}) {
      ViTConfig config = architecture(arch);
      config.depth = 1;  // the blocks are alike
      for (const DType dtype : {DType::f32, DType::f16}) {
        if (dtype == DType::f16 && !device.supports(Need::storage16)) continue;
        for (const uint64_t batch : {1u, 8u}) {
          INFO(device.name << ": " << arch << " " << name_of(dtype) << " batch " << batch);
          const auto graph =
              fuse(make_vit_graph(config, {.batch = batch, .dtype = dtype}), all_fusions(), &device).graph;
          const test::Certified certified = test::certified(
              *graph, device, known,
              {&op_matmul, &op_rotary_matmul, &op_attention, &op_patch_embed, &op_layer_norm});
          CHECK(certified.missing == std::set<std::string>{});
          chosen[device.name].insert(certified.kernels.begin(), certified.kernels.end());
        }
      }
    }
  }
  // The devices do differ.
  CHECK(chosen["f32 only"].contains("matmul=tiled"));
  CHECK(chosen["f32 only"].contains("matmul=few_rows"));
  CHECK(chosen["f32 only"].contains("rotary_matmul=tiled"));
  CHECK(chosen["16x16x16 matrices"].contains("matmul=coopmat"));
  CHECK(chosen["16x16x16 matrices"].contains("rotary_matmul=coopmat"));
  CHECK(chosen["16x16x16 matrices"].contains("attention=coopmat"));
  CHECK(chosen["Arc GPU"].contains("matmul=coopmat"));
  CHECK(chosen["Arc GPU"].contains("attention=tiled"));  // matrix units lack registers for heads of 64
  CHECK(chosen["Xe2 GPU"].contains("matmul=coopmat"));
  CHECK(chosen["Xe2 GPU"].contains("attention=coopmat"));
  CHECK(chosen["matrices whose sums are operands"].contains("attention=coopmat_columns"));
  CHECK(chosen["f32 only"].contains("layer_norm=simple"));
  CHECK(chosen["f16 without matrices"].contains("layer_norm=subgroups"));
  CHECK(chosen["llvmpipe"].contains("layer_norm=cpu_lanes"));
  CHECK(chosen["llvmpipe"].contains("matmul=cpu_direct"));
  CHECK(chosen["older llvmpipe"].contains("matmul=cpu_chunks"));
  CHECK(chosen["flexible matrices"].contains("matmul=coopmat"));
  if (try_find_shader("attention_coopmat2", "f16")) {
    CHECK(chosen["flexible matrices"].contains("attention=coopmat2"));
  }
}

TEST_CASE("certificates: another path through the same shader is another certificate, another size is not") {
  const Capabilities device = test::rich_gpu();
  const auto keys_of = [&](uint64_t m, uint64_t n, uint64_t k, const char* kernel) {
    Graph graph;
    matmul(graph, "y", graph.input("x", {m, k}, DType::f16), graph.constant("w", {n, k}, DType::f16));
    const LowerContext context(graph, graph.nodes()[0], device);
    const Candidate candidate{candidate_named(op_matmul, kernel).kernel, "16x32x16/4x4/ahead1"};
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
             Catch::Matchers::EndsWith("k_multiple=16,aligned_n,ahead=1,one_way"));
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

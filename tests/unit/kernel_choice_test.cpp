// Which kernel is taken, with made-up kernels, tables and devices.
#include "runtime/graph/kernel_choice.h"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>

#include "runtime/graph/plan.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/tokens/patch_embed.h"
#include "runtime/util/error.h"
#include "tests/support/made_up/made_up_device.h"
#include "tests/support/plan_text.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

struct Tile {
  const char* label;
  std::string name() const { return label; }
};
const std::vector<Tile> tiles{{"large"}, {"small"}};

std::optional<std::string> never(const LowerContext&) { return std::nullopt; }
std::optional<std::string> needs_matrices(const LowerContext& c) {
  if (c.device().supports(Need::coopmat)) return std::nullopt;
  return "the device lacks coopmat";
}
double prefers(const LowerContext&) { return 1; }
double prefers_most(const LowerContext&) { return 2; }

// What a kernel lowers to shows which of its configurations was asked for.
Lowered lower_copy(const LowerContext& c, std::string note) {
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("convert", "f32_f16");
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.groups = spread_groups(c.device(), 1);
  dispatch.note = std::move(note);
  return lowered;
}
Lowered lower_simple(const LowerContext& c) { return lower_copy(c, "simple"); }
Lowered lower_tiles(const LowerContext& c) { return lower_copy(c, configured(c, tiles).name()); }
std::vector<std::string> tile_names(const LowerContext&) { return names_of(tiles); }

constexpr std::array kernels{
    KernelDef{"simple", Target::any, never, no_preference, lower_simple},
    KernelDef{"tiled", Target::any, never, prefers, lower_tiles, tile_names},
    KernelDef{"matrix", Target::matrix_units, needs_matrices, prefers_most, lower_tiles, tile_names},
};
// The same, but nobody has seen the last one run yet.
constexpr std::array newer_kernels{kernels[0], kernels[1], unproven(kernels[2])};
void infer(InferContext& c) { c.output(c.input(0).shape, c.input(0).dtype); }
double flops(const LowerContext&) { return 1; }
const OpDef made_up_op{"made_up", infer, flops, kernels};
const OpDef newer_op{"made_up", infer, flops, newer_kernels};

std::shared_ptr<const Graph> graph_of(uint64_t rows = 4, const OpDef& op = made_up_op) {
  auto graph = std::make_shared<Graph>();
  graph->output(graph->add(op, "node", {graph->input("x", {rows, 8})})[0], "y");
  return graph;
}

struct Chosen {
  std::string name, text, note;
};
Chosen choose(const Capabilities& device, std::string_view wish = {}, const KernelChoices& known = {},
              uint64_t rows = 4, const OpDef& op = made_up_op) {
  const auto graph = graph_of(rows, op);
  const LowerContext context(*graph, graph->nodes()[0], device);
  const KernelChoice choice = choose_kernel(*graph, context, wish, &known);
  return {choice.candidate.name(), choice.text, lower_as(context, choice.candidate).dispatches.at(0).note};
}
std::string refusal(const Capabilities& device, std::string_view wish, const KernelChoices& known = {}) {
  try {
    choose(device, wish, known);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::failed);
    return error.what();
  }
  FAIL("a kernel was chosen");
  return {};
}

std::string key_of(uint64_t rows = 4) {
  const auto graph = graph_of(rows);
  return node_key(*graph, graph->nodes()[0]);
}
std::string certificate_of(std::string_view name) {
  const auto graph = graph_of();
  const Capabilities device = test::rich_gpu();
  const LowerContext context(*graph, graph->nodes()[0], device);
  const Candidate candidate = candidate_named(made_up_op, name);
  return certificate_keys(made_up_op, candidate, lower_as(context, candidate)).at(0);
}

}  // namespace

TEST_CASE("kernel choice: without a table the kernels' own order decides") {
  const Chosen plain = choose(test::plain_gpu());
  CHECK(plain.name == "tiled:large");
  CHECK(plain.note == "large");
  CHECK(plain.text == "tiled:large, by heuristics (not matrix: the device lacks coopmat)");
  CHECK(choose(test::rich_gpu()).name == "matrix:large");
}

TEST_CASE("kernel choice: the table goes before heuristics, for its own node only") {
  const KernelChoices known{.tuned = {{key_of(4), "tiled:small"}, {key_of(5), "simple"}}, .certificates = {}};
  const Chosen tuned = choose(test::rich_gpu(), "", known, 4);
  CHECK(tuned.name == "tiled:small");
  CHECK(tuned.note == "small");
  CHECK_THAT(tuned.text, ContainsSubstring("by the table"));
  CHECK(choose(test::rich_gpu(), "", known, 5).name == "simple");
  CHECK(choose(test::rich_gpu(), "", known, 6).name == "matrix:large");
}

TEST_CASE("kernel choice: a table that doesn't fit any more is passed over, and said so") {
  for (const char* stale : {"matrix:large", "tiled:huge", "tiled", "gone", "gone:large", ""}) {
    INFO(stale);
    const KernelChoices known{.tuned = {{key_of(), stale}}, .certificates = {}};
    const Chosen chosen = choose(test::plain_gpu(), "", known);
    CHECK(chosen.name == "tiled:large");
    CHECK_THAT(chosen.text, ContainsSubstring("by heuristics"));
    if (*stale != '\0') CHECK_THAT(chosen.text, ContainsSubstring(std::string(stale) + ", the table's"));
  }
}

TEST_CASE("kernel choice: a wish goes before the table") {
  const KernelChoices known{.tuned = {{key_of(), "tiled:small"}}, .certificates = {}};
  CHECK(choose(test::rich_gpu(), "simple", known).text == "simple, by a wish");
  CHECK(choose(test::rich_gpu(), "tiled", known).name == "tiled:large");
  CHECK(choose(test::rich_gpu(), "matrix:small", known).note == "small");
  CHECK_THAT(refusal(test::plain_gpu(), "matrix:small"),
             ContainsSubstring("by 'matrix:small'") && ContainsSubstring("lacks coopmat"));
  CHECK_THAT(refusal(test::rich_gpu(), "tiled:huge"), ContainsSubstring("large, small"));
  CHECK_THAT(refusal(test::rich_gpu(), "simple:large"), ContainsSubstring("one configuration"));
  CHECK_THAT(refusal(test::rich_gpu(), "fast"), ContainsSubstring("no kernel of that name"));
}

TEST_CASE("kernel choice: what failed its self-test is refused, whoever asks for it") {
  KernelChoices known{.tuned = {{key_of(), "matrix:large"}},
                      .certificates = {{certificate_of("matrix:large"), "relative error 0.5"}}};
  const Chosen next = choose(test::rich_gpu(), "", known);
  CHECK(next.name == "matrix:small");
  CHECK_THAT(next.text, ContainsSubstring("matrix:large: failed its self-test here (relative error 0.5)"));
  CHECK_THAT(refusal(test::rich_gpu(), "matrix:large", known), ContainsSubstring("relative error 0.5"));
  CHECK(choose(test::rich_gpu(), "matrix", known).name == "matrix:small");

  // Of other code nothing is known.
  const KernelChoices other{.tuned = {},
                            .certificates = {{certificate_of("matrix:large") + "0", "relative error 0.5"}}};
  CHECK(choose(test::rich_gpu(), "", other).name == "matrix:large");

  for (const char* name : {"matrix:small", "tiled:large", "tiled:small", "simple"})
    known.certificates.emplace(certificate_of(name), "device lost");
  CHECK_THAT(refusal(test::rich_gpu(), "", known), ContainsSubstring("simple: failed its self-test here"));
}

TEST_CASE("kernel choice: what nobody has seen run comes last until it has passed its self-test here") {
  const auto choose_newer = [](const Capabilities& device, std::string_view wish,
                               const KernelChoices& known) {
    return choose(device, wish, known, 4, newer_op);
  };
  const Capabilities device = test::rich_gpu();
  const Chosen behind = choose_newer(device, "", {});
  CHECK(behind.name == "tiled:large");
  CHECK_THAT(behind.text, ContainsSubstring("matrix: has passed no self-test on this device yet"));
  CHECK(choose_newer(device, "matrix", {}).name == "matrix:large");
  // One of its configurations has passed.
  KernelChoices known{.tuned = {}, .certificates = {{certificate_of("matrix:small"), ""}}};
  CHECK(choose_newer(device, "", known).name == "matrix:small");
  known.certificates[certificate_of("matrix:large")] = "relative error 0.5";
  CHECK(choose_newer(device, "", known).name == "matrix:small");
  known.certificates[certificate_of("matrix:small")] = "device lost";
  CHECK(choose_newer(device, "", known).name == "tiled:large");
  // What was measured was checked, too.
  CHECK(choose_newer(device, "", {.tuned = {{key_of(), "matrix:large"}}, .certificates = {}}).name ==
        "matrix:large");
  // A plain device has none of it to tell of.
  CHECK_THAT(choose_newer(test::plain_gpu(), "", {}).text, !ContainsSubstring("no self-test"));
}

TEST_CASE("kernel choice: a node's key tells what kernels see apart, and nothing else") {
  Graph graph;
  const ValueId x = graph.input("x", {5, 8}), y = graph.input("y", {5, 8}, DType::f16);
  const ValueId w = graph.constant("w", {3, 8}), v = graph.constant("v", {3, 8}),
                computed = graph.input("u", {3, 8});
  const ValueId h = graph.constant("h", {3, 8}, DType::f16);
  matmul(graph, "a", x, w);
  matmul(graph, "b", x, v);
  matmul(graph, "c", x, computed);
  matmul(graph, "d", y, h);
  matmul(graph, "e", x, w, {.activation = Activation::gelu});
  matmul(graph, "f", x, w, {.bias = graph.constant("bias", {3})});
  std::vector<std::string> keys;
  for (const Node& node : graph.nodes()) keys.push_back(node_key(graph, node));
  CHECK(keys[0] == keys[1]);
  CHECK(std::set<std::string>(keys.begin(), keys.end()).size() == 5);
}

TEST_CASE("kernel choice: every configuration that the kernels list is one of its own") {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {197, 64}, DType::f16);
  matmul(*graph, "matmul", x, graph->constant("w", {192, 64}, DType::f16));
  const ValueId q = graph->input("q", {1, 197, 192});
  attention(*graph, "attention", q, q, q, {.heads = 1, .key_width = 64, .k_offset = 64, .v_offset = 128});
  patch_embed(*graph, "patches", graph->input("image", {1, 3, 32, 32}), graph->constant("p", {64, 3, 8, 8}),
              {}, {.patch_height = 8, .patch_width = 8});
  for (const Capabilities& device : {test::rich_gpu(), test::software_driver()}) {
    for (const Node& node : graph->nodes()) {
      const LowerContext context(*graph, node, device);
      std::set<std::string> names;
      std::set<std::vector<std::pair<std::string_view, std::vector<uint32_t>>>> code;
      const std::vector<Candidate> candidates = candidates_of(context);
      for (const Candidate& candidate : candidates) {
        INFO(node.name << " " << candidate.name());
        CHECK(names.insert(candidate.name()).second);
        CHECK(candidate.name().find_first_of(" ,=") == std::string::npos);
        const Lowered lowered = lower_as(context, candidate);
        const Dispatch& last = lowered.dispatches.back();
        std::vector<std::pair<std::string_view, std::vector<uint32_t>>> all;
        for (const Dispatch& dispatch : lowered.dispatches)
          all.emplace_back(dispatch.shader->shader, constants_by_id(dispatch));
        CHECK(code.insert(all).second);
        // The first one is what the kernel takes by itself.
        const bool first =
            &candidate == &*std::ranges::find(candidates, candidate.kernel, &Candidate::kernel);
        const Lowered plain = candidate.kernel->lower(context);
        CHECK((plain.dispatches.back().constants == last.constants) == first);
      }
      CHECK(candidates.size() > 2);
    }
  }
}

TEST_CASE("kernel choice: a plan says who chose, and carries the configuration") {
  auto graph = std::make_shared<Graph>();
  graph->output(matmul(*graph, "y", graph->input("x", {197, 64}), graph->constant("w", {192, 64})), "out");
  const Capabilities device = test::plain_gpu();
  CHECK_THAT(test::text_of(make_plan(graph, device)), ContainsSubstring("by heuristics"));

  // Those that the heuristics like least.
  const std::vector<Candidate> candidates = candidates_of(LowerContext(*graph, graph->nodes()[0], device));
  REQUIRE(candidates.size() > 3);
  const std::string last = candidates.back().configuration,
                    before = candidates[candidates.size() - 2].configuration;
  PlanOptions options;
  options.known = std::make_shared<KernelChoices>(KernelChoices{
      .tuned = {{node_key(*graph, graph->nodes()[0]), candidates.back().name()}}, .certificates = {}});
  const Plan tuned = make_plan(graph, device, options);
  CHECK(tuned.steps[0].configuration == last);
  CHECK_THAT(test::text_of(tuned), ContainsSubstring("tiled:" + last + ", by the table"));

  options.variants = parse_variants("matmul=tiled:" + before);
  const Plan forced = make_plan(graph, device, options);
  CHECK(forced.steps[0].configuration == before);
  CHECK_THAT(test::text_of(forced), ContainsSubstring("tiled:" + before + ", by a wish"));
}

}  // namespace vitrine

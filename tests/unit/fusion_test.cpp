// The rules on graphs made by hand: no GPU is touched.
#include "runtime/graph/fusion.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "model/vit/presets.h"
#include "model/vit/vit_graph.h"
#include "runtime/graph/plan.h"
#include "runtime/ops/attention/rotary.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/moves/concat.h"
#include "runtime/ops/moves/repeat.h"
#include "runtime/ops/moves/transpose.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/rotary_matmul.h"
#include "runtime/ops/tokens/assemble_tokens.h"
#include "runtime/ops/tokens/patch_embed.h"
#include "runtime/util/error.h"
#include "tests/support/made_up/made_up_device.h"
#include "tests/support/plan_text.h"

namespace vitrine {
namespace {

using Parts = std::vector<std::string_view>;

size_t count(const Graph& graph, const OpDef& op) {
  return static_cast<size_t>(
      std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op == &op; }));
}

const Node& only(const Graph& graph, const OpDef& op) {
  REQUIRE(count(graph, op) == 1);
  return *std::ranges::find_if(graph.nodes(), [&](const Node& node) { return node.op == &op; });
}

// A linear layer as somebody writes it who has never heard of fusion.
struct Linear {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  ValueId x, product, biased, active, scaled, sum;

  explicit Linear(Activation activation = Activation::gelu, DType dtype = DType::f32) {
    Graph& g = *graph;
    x = g.input("x", {5, 12}, dtype);
    const ValueId stream = g.input("stream", {5, 8});
    product = matmul(g, "fc", x, g.constant("w", {8, 12}, dtype), {.out = DType::f32});
    biased = add(g, "fc.b", product, g.constant("b", {8}));
    active = activate(g, "fc.a", biased, activation);
    scaled = multiply(g, "fc.s", active, g.constant("s", {8}));
    sum = add(g, "fc.r", stream, scaled);
  }
  FusedGraph fused(const FusionSet& rules = all_fusions()) { return fuse(graph, rules); }
};

TEST_CASE("fusion: bias, activation, layer scale and residual go into the product, whatever the activation") {
  for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::gelu_quick,
                                      Activation::silu, Activation::tanh}) {
    Linear linear(activation);
    linear.graph->output(linear.sum, "y");
    const FusedGraph fused = linear.fused();
    REQUIRE(fused.graph->nodes().size() == 1);
    const Node& node = only(*fused.graph, op_matmul);
    CHECK(node.name == "fc");
    CHECK(fused_parts(node) == Parts{"bias", "activation", "layer_scale", "residual"});
    CHECK(node.attributes.integer("activation") == static_cast<int64_t>(activation));
    CHECK(fused.graph->value(node.inputs[2]).name == "b");
    CHECK(fused.graph->value(node.inputs[3]).name == "s");
    CHECK(fused.graph->value(node.inputs[4]).name == "stream");
    CHECK(fused.graph->value(node.outputs[0]).name == "y");
    CHECK(fused.changes.size() == 4);
  }
}

TEST_CASE("fusion: a rule that is switched off is not applied, nor what comes behind its part") {
  const Parts order{"bias", "activation", "layer_scale", "residual"};
  for (size_t off = 0; off < order.size(); ++off) {
    Linear linear;
    linear.graph->output(linear.sum, "y");
    FusionSet rules = all_fusions();
    rules.erase(std::string(order[off]));
    const FusedGraph fused = linear.fused(rules);
    INFO(order[off]);
    CHECK(fused_parts(only(*fused.graph, op_matmul)) == Parts(order.begin(), order.begin() + off));
    CHECK(fused.graph->nodes().size() == 1 + order.size() - off);
  }
  Linear linear;
  linear.graph->output(linear.sum, "y");
  CHECK(linear.fused({}).graph == linear.graph);
  CHECK(linear.fused({}).changes.empty());
}

TEST_CASE("fusion: what a second node reads, or the outside, stays") {
  for (const int kept : {0, 1, 2, 3}) {
    for (const bool as_output : {false, true}) {
      Linear linear;
      Graph& g = *linear.graph;
      const ValueId value = std::array{linear.product, linear.biased, linear.active, linear.scaled}[kept];
      g.output(linear.sum, "y");
      if (as_output) {
        g.output(value, "tap");
      } else {
        g.output(scale(g, "reader", value, 2), "tap");
      }
      const FusedGraph fused = linear.fused();
      INFO(kept << (as_output ? " output" : " second reader"));
      const Graph& result = *fused.graph;
      const Parts all{"bias", "activation", "layer_scale", "residual"};
      CHECK(fused_parts(only(result, op_matmul)) == Parts(all.begin(), all.begin() + kept));
      CHECK(result.nodes().size() == static_cast<size_t>(5 - kept + !as_output));
      // Outputs keep their order.
      std::vector<std::string> names;
      for (const ValueId id : result.with_role(Role::output)) names.push_back(result.value(id).name);
      std::vector<std::string> before;
      for (const ValueId id : g.with_role(Role::output)) before.push_back(g.value(id).name);
      CHECK(names == before);
    }
  }
}

TEST_CASE("fusion: a value that one node reads twice stays") {
  auto graph = std::make_shared<Graph>();
  const ValueId product = matmul(*graph, "fc", graph->input("x", {5, 12}), graph->constant("w", {8, 12}));
  graph->output(add(*graph, "twice", product, product), "y");
  CHECK(fuse(graph, all_fusions()).graph == graph);
}

TEST_CASE("fusion: of two products that are added, the later one takes the other as its residual") {
  for (const bool swapped : {false, true}) {
    auto graph = std::make_shared<Graph>();
    const ValueId x = graph->input("x", {5, 12});
    const ValueId a = matmul(*graph, "a", x, graph->constant("wa", {8, 12}));
    const ValueId b = matmul(*graph, "b", x, graph->constant("wb", {8, 12}));
    graph->output(swapped ? add(*graph, "sum", b, a) : add(*graph, "sum", a, b), "y");
    const auto fused = fuse(graph, all_fusions()).graph;
    REQUIRE(fused->nodes().size() == 2);
    CHECK(fused->nodes()[0].name == "a");
    CHECK(fused->nodes()[1].name == "b");
    CHECK(fused->nodes()[1].inputs[4] == fused->nodes()[0].outputs[0]);
  }
}

TEST_CASE("fusion: a residual that is computed between product and sum is there in time") {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {5, 8});
  const ValueId product = matmul(*graph, "fc", x, graph->constant("w", {8, 8}));
  const ValueId late = scale(*graph, "late", x, 2);
  graph->output(add(*graph, "sum", product, late), "y");
  const auto fused = fuse(graph, all_fusions()).graph;
  REQUIRE(fused->nodes().size() == 2);
  CHECK(fused->nodes()[0].name == "late");
  CHECK(fused->nodes()[1].name == "fc");
}

TEST_CASE("fusion: no read of a state moves behind what is stored there") {
  // A product of a state, a store, and a bias that would take the product's read to where the store is past.
  const auto fused_around = [](const StatePlace& read, const StatePlace& stored, bool by_sum) {
    auto graph = std::make_shared<Graph>();
    const ValueId x = graph->input("x", {5, 8});
    const ValueId product = matmul(*graph, "fc", x, graph->state("w", {8, 8}, read));
    if (!by_sum) graph->store(scale(*graph, "next", graph->input("z", {5, 8}), 2), stored);
    const ValueId sum = add(*graph, "sum", product, graph->constant("b", {8}));
    if (by_sum) {
      graph->store(sum, stored);
    } else {
      graph->output(sum, "y");
    }
    return fuse(graph, all_fusions()).graph != graph;
  };
  for (const bool by_sum : {false, true}) {
    INFO((by_sum ? "the sum stores" : "a node between stores"));
    CHECK_FALSE(fused_around({"weights"}, {"weights"}, by_sum));
    CHECK_FALSE(fused_around({"weights", 64}, {"weights", 25}, by_sum));   // its first element
    CHECK_FALSE(fused_around({"weights", 64}, {"weights", 127}, by_sum));  // its last
    CHECK(fused_around({"weights", 64}, {"weights", 24}, by_sum));
    CHECK(fused_around({"weights", 64}, {"weights", 128}, by_sum));
    CHECK(fused_around({"weights"}, {"others"}, by_sum));
  }
}

TEST_CASE("fusion: what a node stored is read before it is overwritten, too") {
  for (const char* next : {"buffer", "another"}) {
    auto graph = std::make_shared<Graph>();
    const ValueId x = graph->input("x", {8, 8});
    const ValueId kept = scale(*graph, "kept", x, 2);
    graph->store(kept, {"buffer"});
    const ValueId turned = transpose_rows(*graph, "turned", kept);
    graph->store(scale(*graph, "next", x, 3), {next});
    graph->output(matmul(*graph, "fc", x, turned), "y");
    INFO(next);
    CHECK((fuse(graph, all_fusions()).graph == graph) == (next == std::string_view("buffer")));
  }
}

TEST_CASE("fusion: what the epilogue can't do is left alone") {
  const auto untouched = [](auto&& append) {
    auto graph = std::make_shared<Graph>();
    const ValueId x = graph->input("x", {5, 8}, DType::f16);
    const ValueId w = graph->constant("w", {8, 8}, DType::f16);
    graph->output(append(*graph, x, w), "y");
    const FusedGraph fused = fuse(graph, all_fusions());
    CHECK(fused.graph == graph);
    CHECK(fused.changes.empty());
  };
  // An f16 row and an f16 residual: the epilogue reads f32.
  untouched([](Graph& g, ValueId x, ValueId w) {
    return add(g, "sum", matmul(g, "fc", x, w), g.constant("b", {8}, DType::f16));
  });
  untouched([](Graph& g, ValueId x, ValueId w) { return add(g, "sum", matmul(g, "fc", x, w), x); });
  // A factor is no activation.
  untouched([](Graph& g, ValueId x, ValueId w) { return scale(g, "half", matmul(g, "fc", x, w), 0.5); });
  // The result of f16 is rounded before it is widened.
  untouched(
      [](Graph& g, ValueId x, ValueId w) { return convert(g, "wide", matmul(g, "fc", x, w), DType::f32); });
  // A bias behind an activation.
  untouched([](Graph& g, ValueId x, ValueId w) {
    return add(g, "sum", matmul(g, "fc", x, w, {.activation = Activation::tanh, .out = DType::f32}),
               g.constant("b", {8}));
  });
  // Positions: the end of the shape, but no row.
  untouched([](Graph& g, ValueId, ValueId) {
    const ValueId y = matmul(g, "fc", g.input("z", {3, 5, 8}), g.constant("v", {8, 8}),
                             {.residual = g.input("r", {3, 5, 8})});
    return add(g, "sum", y, g.constant("positions", {5, 8}));
  });
}

// A layer of queries, keys and values whose queries and keys are turned.
std::shared_ptr<Graph> turned_heads(const MatmulOptions& options, uint64_t width = 4, uint64_t heads = 6) {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {1, 5, 12});
  const ValueId product = matmul(*graph, "qkv", x, graph->constant("w", {24, 12}), options);
  const ValueId table = graph->constant("angles", {3, 2, width / 2});
  graph->output(rotary(*graph, "rotary", product, table,
                       {.width = width, .turned = 2, .heads = heads, .pairs = RotaryPairs::halves}),
                "y");
  return graph;
}

TEST_CASE("fusion: rotary positions go into the product in front of them, on GPUs alone") {
  const Capabilities gpu = test::plain_gpu();
  Capabilities cpu = gpu;
  cpu.type = DeviceType::cpu;
  const auto graph = turned_heads({});
  const auto fused = fuse(graph, all_fusions(), &gpu).graph;
  REQUIRE(fused->nodes().size() == 1);
  CHECK(fused_parts(only(*fused, op_rotary_matmul)) == Parts{"rotary"});
  CHECK(fuse(graph, all_fusions(), &cpu).graph == graph);
  CHECK(fuse(graph, all_fusions()).graph == graph);
  FusionSet others = all_fusions();
  others.erase("rotary");
  CHECK(fuse(graph, others, &gpu).graph == graph);

  // Switched off it is split, on any device; left on it stays as it was written.
  CHECK(fuse(fused, all_fusions(), &cpu).graph == fused);
  const auto split = fuse(fused, others, &cpu).graph;
  CHECK(count(*split, op_matmul) == 1);
  CHECK(count(*split, op_rotary) == 1);
  CHECK(fuse(split, all_fusions(), &gpu).graph->nodes().size() == 1);
}

TEST_CASE("fusion: rotary positions stay behind products that do something else first") {
  const Capabilities gpu = test::plain_gpu();
  const auto untouched = [&](const std::shared_ptr<Graph>& graph) {
    return count(*fuse(graph, all_fusions(), &gpu).graph, op_rotary) == 1;
  };
  CHECK(untouched(turned_heads({.activation = Activation::gelu})));
  CHECK(untouched(turned_heads({.rounded = true})));
  CHECK(untouched(turned_heads({}, 6, 4)));  // heads that don't come by fours
  CHECK(untouched(turned_heads({}, 4, 5)));  // columns that nobody turns or copies
}

TEST_CASE("fusion: conversions to f16 go into whatever computes in f32 and stores f16") {
  auto graph = std::make_shared<Graph>();
  const ValueId image = graph->input("image", {1, 3, 4, 4});
  const ValueId w = graph->constant("w", {8, 3, 2, 2});
  ValueId x =
      patch_embed(*graph, "patches", image, w, {}, {.patch_height = 2, .patch_width = 2, .out = DType::f32});
  x = convert(*graph, "c1", add(*graph, "b", x, graph->constant("bias", {8})), DType::f16);
  x = layer_norm(*graph, "norm", x, graph->constant("gamma", {8}), graph->constant("beta", {8}),
                 {.out = DType::f32});
  x = convert(*graph, "c2", x, DType::f16);
  x = matmul(*graph, "fc", x, graph->constant("v", {8, 8}, DType::f16), {.out = DType::f32});
  graph->output(convert(*graph, "c3", activate(*graph, "a", x, Activation::silu), DType::f16), "y");
  const auto fused = fuse(graph, all_fusions()).graph;
  REQUIRE(fused->nodes().size() == 3);
  CHECK(count(*fused, op_convert) == 0);
  CHECK(fused_parts(only(*fused, op_patch_embed)) == Parts{"conversion", "bias"});
  CHECK(fused_parts(only(*fused, op_layer_norm)) == Parts{"conversion"});
  CHECK(fused_parts(only(*fused, op_matmul)) == Parts{"conversion", "activation"});
}

struct Tokens {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  ValueId patches = graph->input("patches", {2, 9, 8});
  ValueId token(const char* name) {
    return repeat_tokens(*graph, name, graph->constant(std::string(name) + ".c", {8}), 2);
  }
  ValueId registers(uint64_t count) {
    return repeat_tokens(*graph, "registers", graph->constant("registers.c", {count, 8}), 2);
  }
  ValueId rows(uint64_t count) { return graph->constant("positions", {count, 8}); }
};

TEST_CASE("fusion: tokens and positions in plain operators become one node") {
  Tokens t;
  Graph& g = *t.graph;
  const ValueId all = concat(g, "tokens", {t.token("cls"), t.token("dist"), t.registers(4), t.patches}, 1);
  g.output(add(g, "placed", all, t.rows(15)), "y");
  const auto fused = fuse(t.graph, all_fusions()).graph;
  REQUIRE(fused->nodes().size() == 1);
  const Node& node = only(*fused, op_assemble_tokens);
  CHECK(node.name == "tokens");
  std::vector<std::string> names;
  for (const ValueId id : node.inputs) names.push_back(fused->value(id).name);
  CHECK(names == std::vector<std::string>{"patches", "cls.c", "dist.c", "registers.c", "positions"});
  CHECK(fuse(t.graph, {}).graph == t.graph);
}

TEST_CASE("fusion: tokens alone, registers alone, positions of the patches alone") {
  {
    Tokens t;
    t.graph->output(concat(*t.graph, "tokens", {t.registers(4), t.patches}, -2), "y");
    const auto fused = fuse(t.graph, all_fusions()).graph;
    const Node& node = only(*fused, op_assemble_tokens);
    CHECK_FALSE(node.inputs[1]);
    CHECK(node.inputs[3]);
    CHECK(fused->nodes().size() == 1);
  }
  {
    Tokens t;
    const ValueId placed = add(*t.graph, "placed", t.patches, t.rows(9));
    t.graph->output(concat(*t.graph, "tokens", {t.token("cls"), placed}, 1), "y");
    const auto fused = fuse(t.graph, all_fusions()).graph;
    CHECK(fused->nodes().size() == 1);
    CHECK(fused->value(only(*fused, op_assemble_tokens).inputs[4]).name == "positions");
  }
}

TEST_CASE("fusion: tokens in another order, or read by somebody else, stay concatenated") {
  {
    Tokens t;  // registers in front of the class token
    t.graph->output(concat(*t.graph, "tokens", {t.registers(4), t.token("cls"), t.patches}, 1), "y");
    CHECK(fuse(t.graph, all_fusions()).graph == t.graph);
  }
  {
    Tokens t;  // the class token behind
    t.graph->output(concat(*t.graph, "tokens", {t.patches, t.token("cls")}, 1), "y");
    CHECK(fuse(t.graph, all_fusions()).graph == t.graph);
  }
  {
    Tokens t;
    const ValueId cls = t.token("cls");
    t.graph->output(concat(*t.graph, "tokens", {cls, t.patches}, 1), "y");
    t.graph->output(scale(*t.graph, "reader", cls, 2), "z");
    CHECK(fuse(t.graph, all_fusions()).graph == t.graph);
  }
  {
    Tokens t;  // along the batch
    t.graph->output(concat(*t.graph, "tokens", {t.patches, t.patches}, 0), "y");
    CHECK(fuse(t.graph, all_fusions()).graph == t.graph);
  }
}

TEST_CASE("fusion: what was written as one node comes apart where a rule is off, and together again") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const auto graph = make_vit_graph(preset("vit_b_16"), {.dtype = dtype});
    CHECK(fuse(graph, all_fusions()).graph == graph);
    const auto plain = fuse(graph, {}).graph;
    for (const Node& node : plain->nodes()) CHECK(fused_parts(node).empty());
    CHECK(plain->nodes().size() > graph->nodes().size());
    CHECK(fuse(plain, all_fusions()).graph->to_string() == graph->to_string());
    for (const std::string& rule : all_fusions()) {
      FusionSet others = all_fusions();
      others.erase(rule);
      const auto without = fuse(graph, others).graph;
      INFO(rule);
      for (const Node& node : without->nodes()) {
        const auto parts = fused_parts(node);
        CHECK(std::ranges::find(parts, rule) == parts.end());
      }
      CHECK(fuse(without, all_fusions()).graph->to_string() == graph->to_string());
    }
  }
}

TEST_CASE("fusion: the plan of the plain operators is that of the fused ones") {
  const auto fused = make_vit_graph(preset("vit_b_16"), {.batch = 2});
  const auto plain = fuse(fused, {}).graph;
  for (const Capabilities& device : {test::plain_gpu(), test::software_driver()}) {
    const Plan from_fused = make_plan(fused, device), from_plain = make_plan(plain, device);
    CHECK(from_fused.fusion_changes.empty());
    CHECK_FALSE(from_plain.fusion_changes.empty());
    CHECK(from_plain.steps.size() == from_fused.steps.size());
    CHECK(from_plain.arena_bytes() == from_fused.arena_bytes());
    PlanOptions none;
    none.fusions = {};
    none.layouts = false;
    const Plan apart = make_plan(fused, device, none);
    CHECK(apart.steps.size() > from_fused.steps.size());
    CHECK(test::text_of(apart).find("off: ") != std::string::npos);
    CHECK(test::text_of(make_plan(plain, device)) == test::text_of(from_plain));
  }
}

TEST_CASE("layouts: on a CPU no product of a ViT packs its rows, the patches' apart") {
  const auto graph = make_vit_graph(preset("vit_b_16"));
  PlanOptions rows;
  rows.layouts = false;
  const Plan blocks = make_plan(graph, test::software_driver());
  const size_t products = 12 * 4 + 1;
  CHECK(blocks.laid_out.size() == products);
  CHECK(blocks.steps.size() + products == make_plan(graph, test::software_driver(), rows).steps.size());
  CHECK(make_plan(graph, test::plain_gpu()).laid_out.empty());
  CHECK(make_plan(graph, test::rich_gpu()).laid_out.empty());
}

TEST_CASE("fusion: wishes that name no rule are refused") {
  CHECK(parse_fusions("all") == all_fusions());
  CHECK(parse_fusions("none").empty());
  CHECK(parse_fusions("bias,residual") == FusionSet{"bias", "residual"});
  for (const char* wrong : {"", "everything", "bias,", ",bias", "bias residual", "all,bias"}) {
    INFO(wrong);
    CHECK_THROWS_AS(parse_fusions(wrong), Error);
  }
}

}  // namespace
}  // namespace vitrine

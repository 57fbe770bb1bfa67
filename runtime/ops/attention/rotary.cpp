#include "runtime/ops/attention/rotary.h"

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/moves/pad.h"
#include "runtime/util/text.h"
#include "shaders/attention/rotary.h"

namespace vitrine {
namespace {

constexpr uint64_t run = 4;  // pairs of an invocation of rotary_quads.comp

uint64_t attribute(const Attributes& attributes, std::string_view name) {
  return static_cast<uint64_t>(attributes.integer(name));
}

void infer(InferContext& c) {
  const Value& x = c.input(0);
  c.require(is_computable(x.dtype), "x is " + std::string(name_of(x.dtype)) + ", expected f32 or f16");
  require_turns(c, x.shape, c.input(1));
  const uint64_t columns = attribute(c.attributes(), "heads") * attribute(c.attributes(), "width");
  c.output({x.shape[0], x.shape[1], columns}, x.dtype);
}

double flops(const LowerContext& c) { return 3.0 * static_cast<double>(c.output(0).shape.elements()); }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "rotary", name_of(c.input(0).dtype));
}

std::optional<std::string> refuses_quads(const LowerContext& c) {
  if (auto reason = refuse(c, "rotary_quads", name_of(c.input(0).dtype))) return reason;
  const uint64_t width = attribute(c.attributes(), "width"), row = c.input(0).shape[2];
  if (width % (2 * run) != 0 || row % run != 0) {
    return "heads of " + std::to_string(width) + " in rows of " + std::to_string(row) +
           " can't be moved four columns at a time";
  }
  return std::nullopt;
}

double prefers_quads(const LowerContext&) { return 2; }

Lowered lower_as(const LowerContext& c, std::string_view shader, uint64_t pairs_each) {
  const Shape &x = c.input(0).shape, &table = c.input(1).shape;
  const Attributes& attributes = c.attributes();
  const uint64_t pairs = attribute(attributes, "width") / 2, heads = attribute(attributes, "heads");
  Dispatch dispatch;
  dispatch.shader = &find_shader(shader, name_of(c.input(0).dtype));
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"pairs", to_u32(pairs)},
                        {"turned", to_u32(attribute(attributes, "turned"))},
                        {"heads", to_u32(heads)},
                        {"tokens", to_u32(x[1])},
                        {"first", to_u32(x[1] - table[-3])},
                        {"tables", to_u32(table.rank() == 4 ? table[0] : 1)},
                        {"halves", attributes.flag("halves")}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::output(0)};
  const uint64_t rows = x[0] * x[1];
  dispatch.set_params(shader::RotaryParams{
      .rows = to_u32(rows), .x_stride = to_u32(x[2]), .sign = attributes.flag("back") ? -1.0f : 1.0f});
  dispatch.groups = spread_groups(
      c.device(), ceil_div(rows * heads * (pairs / pairs_each), dispatch.constant("local_size")));
  Lowered lowered;
  if (x[2] == heads * 2 * pairs) lowered.in_place = {{0, 0}};
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

Lowered lower(const LowerContext& c) { return lower_as(c, "rotary", 1); }
Lowered lower_quads(const LowerContext& c) { return lower_as(c, "rotary_quads", run); }

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower},
                                 {"quads", Target::any, refuses_quads, prefers_quads, lower_quads}};

void backward(GradContext& c) {
  if (c.wants(1)) c.refuse("its angles are to be learned, for which it has no derivative here");
  Attributes attributes = c.attributes();
  attributes.set("back", int64_t{!attributes.flag("back")});
  const ValueId turned =
      c.graph().add(op_rotary, c.name("x"), {c.gradient(0), c.input(1)}, std::move(attributes))[0];
  const uint64_t width = c.input_value(0).shape[2];
  c.add(0, c.graph().value(turned).shape[2] == width ? turned
                                                     : pad(c.graph(), c.name("pad"), turned, 2, 0, width));
}

}  // namespace

void require_turns(InferContext& c, const Shape& x, const Value& table) {
  const uint64_t width = attribute(c.attributes(), "width"), heads = attribute(c.attributes(), "heads");
  const uint64_t turned = attribute(c.attributes(), "turned");
  constexpr uint64_t sensible = 1u << 20;
  c.require(
      width > 0 && width % 2 == 0 && width < sensible && heads > 0 && heads < sensible && turned <= heads,
      counted(turned, "head") + " of " + std::to_string(heads) + " of width " + std::to_string(width) +
          " were to be turned, expected an even width and at most all of them");
  c.require(
      x.rank() == 3 && x[2] >= heads * width,
      "x is " + x.to_string() + ", expected [batch, tokens, at least " + std::to_string(heads * width) + "]");
  const Shape& t = table.shape;
  c.require(table.dtype == DType::f32 && (t.rank() == 3 || t.rank() == 4) && t[-1] == width / 2 &&
                t[-2] == 2 && t[-3] <= x[1],
            "the table is " + t.to_string() + ", expected f32 [at most " + std::to_string(x[1]) + ", 2, " +
                std::to_string(width / 2) + "], or several");
}

const OpDef op_rotary{"rotary", infer, flops, kernels, rotary_cases, backward};

ValueId rotary(Graph& graph, std::string name, ValueId x, ValueId table, const RotaryOptions& options) {
  const auto integer = [](uint64_t value) { return static_cast<int64_t>(value); };
  return graph.add(op_rotary, std::move(name), {x, table},
                   {{"width", integer(options.width)},
                    {"turned", integer(options.turned)},
                    {"heads", integer(options.heads)},
                    {"halves", int64_t{options.pairs == RotaryPairs::halves}},
                    {"back", int64_t{options.back}}})[0];
}

}  // namespace vitrine

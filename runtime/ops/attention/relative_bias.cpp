#include "runtime/ops/attention/relative_bias.h"

#include "runtime/ops/lowering.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

struct Grid {
  uint64_t height = 1, width = 1, first = 0;
};

Grid grid_of(const Attributes& attributes) {
  if (!has_relative_bias(attributes)) return {};
  const auto attribute = [&](std::string_view name) {
    return static_cast<uint64_t>(attributes.integer(name));
  };
  return {attribute("bias_height"), attribute("bias_width"), attribute("bias_first")};
}

}  // namespace

bool has_relative_bias(const Attributes& attributes) { return attributes.has("bias_width"); }

bool has_bias_rows(const Attributes& attributes) { return attributes.flag("bias_rows"); }

ValueId relative_bias_of(const AttentionOptions& options) {
  return options.bias_rows ? options.bias_rows : options.bias;
}

void set_relative_bias(Attributes& attributes, const AttentionOptions& options) {
  if (!relative_bias_of(options) && options.bias_height == 0 && options.bias_width == 0) return;
  attributes.set("bias_height", static_cast<int64_t>(options.bias_height));
  attributes.set("bias_width", static_cast<int64_t>(options.bias_width));
  attributes.set("bias_first", static_cast<int64_t>(options.bias_first));
  if (options.bias_rows) attributes.set("bias_rows", int64_t{1});
  if (options.bias_rows && options.bias) attributes.set("bias_twice", int64_t{1});
}

void require_relative_bias(InferContext& c, uint32_t input, uint64_t heads, uint64_t queries, uint64_t keys) {
  if (!has_relative_bias(c.attributes())) return;
  const auto [height, width, first] = grid_of(c.attributes());
  constexpr uint64_t sensible = 1u << 14;
  c.require(c.has_input(input), "its relative bias has no table");
  c.require(!c.attributes().flag("bias_twice"),
            "it has a table of relative biases and rows of them, one was expected");
  c.require(height > 0 && width > 0 && height < sensible && width < sensible && first <= 1,
            "its relative bias is for " + counted(first, "token") + " in front of " + std::to_string(height) +
                " x " + std::to_string(width) + " patches, at most one and some patches were expected");
  const uint64_t tokens = first + height * width;
  c.require(queries == tokens && keys == tokens,
            std::to_string(queries) + " queries and " + counted(keys, "key") + ", " + std::to_string(tokens) +
                " were expected of both by its relative bias: " + std::to_string(first) + " in front of " +
                std::to_string(height) + " x " + std::to_string(width) + " patches");
  const Value& table = c.input(input);
  const bool rows = has_bias_rows(c.attributes());
  c.require(!rows || first == 0, "its relative bias is of rows, and a token is in front of the patches");
  const Shape expected = rows ? Shape{c.input(0).shape[0], heads, tokens, height + width}
                              : Shape{(2 * height - 1) * (2 * width - 1) + 3 * first, heads};
  c.require(table.dtype == DType::f32 && table.shape == expected,
            "its relative bias is " + std::string(name_of(table.dtype)) + " " + table.shape.to_string() +
                ", f32 " + expected.to_string() + " was expected for " + std::to_string(height) + " x " +
                std::to_string(width) + " patches" + (first == 0 ? "" : " behind a token"));
}

void add_relative_bias(const LowerContext& context, Dispatch& dispatch) {
  dispatch.add_constants(
      {{"bias_table", has_relative_bias(context.attributes()) && !has_bias_rows(context.attributes())},
       {"bias_rows", has_bias_rows(context.attributes())}});
  add_relative_grid(context, dispatch);
}

void add_relative_grid(const LowerContext& context, Dispatch& dispatch) {
  const auto [height, width, first] = grid_of(context.attributes());
  dispatch.add_constants(
      {{"bias_height", to_u32(height)}, {"bias_width", to_u32(width)}, {"bias_first", to_u32(first)}});
}

Operand relative_bias_operand(const LowerContext& context, uint32_t input) {
  return has_relative_bias(context.attributes()) ? Operand::input(input) : Operand::nothing();
}

std::optional<std::string> refuse_relative_bias(const LowerContext& context) {
  if (has_relative_bias(context.attributes())) return "it adds nothing to scores, and the node has a bias";
  return std::nullopt;
}

}  // namespace vitrine

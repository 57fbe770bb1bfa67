#include "runtime/ops/tokens/patch_embed_cpu.h"

#include <algorithm>
#include <utility>

#include "runtime/ops/lowering.h"
#include "runtime/ops/products/cpu/direct_product.h"
#include "runtime/ops/tokens/patch_places.h"
#include "shaders/lib/activation.h"
#include "shaders/tokens/cpu/patch_embed_cpu_chunk.h"
#include "shaders/tokens/cpu/patch_embed_cpu_rows.h"

namespace vitrine {
namespace {

using namespace patch_embed_input;

DirectProduct product_of(const LowerContext& c, bool in_chunks = false) {
  const Shape& weight = c.input(weight_input).shape;
  const bool has_bias = c.has_input(bias_input);
  return {.rows = c.output(0).shape.rows(),
          .columns = weight[0],
          .depth = weight.elements() / weight[0],
          .weight_input = weight_input,
          .weight = c.input(weight_input).dtype,
          .out = c.output(0).dtype,
          .epilogue = {{"epilogue_activation", VITRINE_ACTIVATION_NONE},
                       {"epilogue_has_bias", has_bias},
                       {"epilogue_has_scale", false},
                       {"epilogue_has_residual", false}},
          .extras = {has_bias ? Operand::input(bias_input) : Operand::nothing(), Operand::nothing(),
                     Operand::nothing()},
          .configuration = c.configuration(),
          .in_chunks = in_chunks};
}

std::optional<std::string> refuses_packed(const LowerContext& c, const DirectProduct& product) {
  if (auto reason = refuse(c, "patch_embed_cpu_rows", "f32")) return reason;
  return refuse_direct_product(c, product);
}

Lowered lower_packed(const LowerContext& c, const DirectProduct& product) {
  const Shape& image = c.input(image_input).shape;
  const Shape& weight = c.input(weight_input).shape;
  const uint64_t count = product.packed_elements() / product.unroll;
  const uint32_t threads = workgroup_size(c.device(), 64);
  Dispatch rows;
  rows.shader = &find_shader("patch_embed_cpu_rows", "f32");
  rows.constants = {{"local_size", threads},
                    {"block_rows", product.block_rows()},
                    {"unroll", product.unroll},
                    {"patch_height", to_u32(weight[2])},
                    {"patch_width", to_u32(weight[3])}};
  rows.operands = {Operand::input(image_input), Operand::scratch(0)};
  rows.set_params(shader::PatchEmbedRowsParams{.rows = to_u32(product.rows),
                                               .steps = to_u32(product.steps()),
                                               .count = to_u32(count),
                                               .channels = to_u32(image[1]),
                                               .height = to_u32(image[2]),
                                               .width = to_u32(image[3]),
                                               .patch_rows = to_u32(image[2] / weight[2]),
                                               .patch_columns = to_u32(image[3] / weight[3])});
  rows.groups = striding_groups(c.device(), count, threads);
  Lowered lowered;
  add_direct_product(c, product, std::move(rows), lowered);
  return lowered;
}

// How patches are multiplied where they lie.
struct InPlace {
  uint64_t patch_columns = 0, patch_height = 0, patch_width = 0;
  uint32_t block_rows = 0;
  std::vector<uint64_t> lengths;  // of the chunks, in steps; empty where K can't be cut into such
};

InPlace in_place(const LowerContext& c) {
  constexpr uint64_t most_rows = 12;  // whose sums stay in registers
  const Shape &image = c.input(image_input).shape, &weight = c.input(weight_input).shape;
  InPlace p{.patch_columns = image[3] / weight[3], .patch_height = weight[2], .patch_width = weight[3]};
  p.block_rows = to_u32(largest_divisor(p.patch_columns, most_rows));
  // Whole lines, and of several channels whole patches, or an equal part of each.
  const auto lies_alike = [&](uint64_t values) {
    const uint64_t lines = values / p.patch_width;
    return values % p.patch_width == 0 && (lines % p.patch_height == 0 || p.patch_height % lines == 0);
  };
  const uint64_t depth = weight.elements() / weight[0];
  for (uint64_t left = depth; left > 0;) {
    const auto fits = [&](uint64_t steps) {
      const uint64_t values = steps * DirectProduct::unroll;
      return values <= left && (depth - left) % values == 0 && lies_alike(values);
    };
    const auto length = std::ranges::find_if(chunk_steps, fits);
    if (length == chunk_steps.end()) {
      p.lengths.clear();
      break;
    }
    p.lengths.push_back(*length);
    left -= *length * DirectProduct::unroll;
  }
  return p;
}

}  // namespace

std::optional<std::string> refuse_patch_direct(const LowerContext& c) {
  return refuses_packed(c, product_of(c));
}
std::optional<std::string> refuse_patch_chunks(const LowerContext& c) {
  return refuses_packed(c, product_of(c, true));
}
Lowered lower_patch_direct(const LowerContext& c) { return lower_packed(c, product_of(c)); }
Lowered lower_patch_chunks(const LowerContext& c) { return lower_packed(c, product_of(c, true)); }
std::vector<std::string> patch_direct_configurations(const LowerContext& c) {
  return direct_product_configurations(product_of(c));
}
std::vector<std::string> patch_chunks_configurations(const LowerContext& c) {
  return direct_product_configurations(product_of(c, true));
}

std::optional<std::string> refuse_patch_in_place(const LowerContext& c) {
  constexpr uint32_t fewest_rows = 4;
  const DirectProduct product = product_of(c, true);
  if (auto reason = c.missing("patch_embed_cpu_chunk", name_of(product.weight))) return reason;
  if (auto reason = refuse_direct_product(c, product)) return reason;
  const InPlace p = in_place(c);
  if (p.block_rows < fewest_rows)
    return std::to_string(p.patch_columns) + " patches beside each other can't be cut into blocks of " +
           std::to_string(fewest_rows) + " or more";
  if (p.lengths.empty())
    return "patches of " + std::to_string(p.patch_height) + " x " + std::to_string(p.patch_width) +
           " pixels can't be cut into chunks that lie alike";
  constexpr uint64_t most_blocks = 1u << 16;  // that shaders/lib/known.glsl can look up
  const uint64_t blocks = product.rows / p.block_rows;
  if (blocks > most_blocks || blocks > c.device().max_workgroup_count[1]) return "there are too many patches";
  return std::nullopt;
}

// Another shader to compile, which is worth it where packing takes longer than the product.
double prefer_patch_in_place(const LowerContext& c) {
  constexpr uint64_t narrow = 64;
  const DirectProduct product = product_of(c, true);
  return product.columns <= narrow && !is_small_product(product) ? prefer_chunked_product(c) + 1 : -2;
}

Lowered lower_patch_in_place(const LowerContext& c) {
  const DirectProduct product = product_of(c, true);
  const InPlace p = in_place(c);
  const Shape& image = c.input(image_input).shape;
  const uint32_t lanes = c.device().subgroup_size;
  const uint32_t blocks = to_u32(product.rows / p.block_rows),
                 panels = to_u32(ceil_div(product.columns, lanes));
  Lowered lowered;
  const Operand weight = weight_of(c, product, lowered);
  const Operand sums = Operand::scratch(to_u32(lowered.scratch.size()));
  lowered.scratch.push_back(uint64_t{blocks} * panels * p.block_rows * lanes * sizeof(float));
  uint64_t first = 0;
  for (const uint64_t length : p.lengths) {
    const uint64_t line = first * DirectProduct::unroll / p.patch_width;
    const uint64_t pixel = line / p.patch_height * image[2] * image[3] + line % p.patch_height * image[3];
    Dispatch& chunk = lowered.dispatches.emplace_back();
    chunk.shader = &find_shader("patch_embed_cpu_chunk", name_of(product.weight));
    chunk.constants = {{"local_size", lanes},
                       {"lanes", lanes},
                       {"block_rows", p.block_rows},
                       {"unroll", DirectProduct::unroll},
                       {"steps", to_u32(length)}};
    add_patch_places(image, {p.patch_height, p.patch_width}, chunk);
    chunk.subgroup_size = lanes;
    chunk.operands = {Operand::input(image_input), weight, sums};
    chunk.set_params(shader::with_digits(shader::PatchEmbedChunkParams{.blocks = blocks,
                                                                       .steps = to_u32(product.steps()),
                                                                       .first_step = to_u32(first),
                                                                       .first_pixel = to_u32(pixel),
                                                                       .go_on = first != 0}));
    chunk.groups = {panels, blocks, 1};
    chunk.note = std::to_string(p.block_rows) + " patches a lane, depth " +
                 std::to_string(first * DirectProduct::unroll) + " to " +
                 std::to_string((first + length) * DirectProduct::unroll);
    first += length;
  }
  add_chunk_end(c, product, p.block_rows, sums, lowered);
  return lowered;
}

}  // namespace vitrine

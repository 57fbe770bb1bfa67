#include "runtime/ops/tokens/patch_weight_gradient.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/ops/lowering.h"
#include "runtime/ops/tokens/patch_places.h"
#include "shaders/products/weight_gradient.h"
#include "shaders/tokens/patch_weight_gradient.h"

namespace vitrine {
namespace {

constexpr uint32_t dy_input = 0, image_input = 1;
constexpr uint64_t side = 4;  // of a workgroup's tile

template <typename Context>
PatchSize patch_of(const Context& c) {
  return {static_cast<uint64_t>(c.attributes().integer("patch_height")),
          static_cast<uint64_t>(c.attributes().integer("patch_width"))};
}

void infer(InferContext& c) {
  const Value &dy = c.input(dy_input), &image = c.input(image_input);
  const PatchSize patch = patch_of(c);
  for (const Value* value : {&dy, &image})
    c.require(value->dtype == DType::f32,
              "'" + value->name + "' is " + std::string(name_of(value->dtype)) + ", expected f32");
  c.require(image.shape.rank() == 4 && patch.height > 0 && patch.width > 0 &&
                image.shape[2] >= patch.height && image.shape[3] >= patch.width,
            "the image is " + image.shape.to_string() +
                ", expected [images, channels, height, width] of at least a patch");
  const uint64_t patches = (image.shape[2] / patch.height) * (image.shape[3] / patch.width);
  c.require(dy.shape.rank() == 3 && dy.shape[0] == image.shape[0] && dy.shape[1] == patches,
            "dy is " + dy.shape.to_string() + ", expected [" + std::to_string(image.shape[0]) + ", " +
                std::to_string(patches) + ", columns]");
  c.output({dy.shape[2], image.shape[1] * patch.height * patch.width}, DType::f32);
}

double flops(const LowerContext& c) {
  return 2.0 * static_cast<double>(c.input(dy_input).shape.rows()) *
         static_cast<double>(c.output(0).shape.elements());
}

std::optional<std::string> refuse_simple(const LowerContext& c) {
  return refuse(c, "patch_weight_gradient", "f32");
}

Lowered lower_simple(const LowerContext& c) {
  const Shape& dw = c.output(0).shape;
  const uint64_t tiles = ceil_div(dw[0], side) * ceil_div(dw[1], side);
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("patch_weight_gradient", "f32");
  dispatch.constants = {
      {"local_size", workgroup_size(c.device(), 128)}, {"n", to_u32(dw[0])}, {"k", to_u32(dw[1])}};
  add_patch_places(c.input(image_input).shape, patch_of(c), dispatch);
  dispatch.operands = {Operand::input(dy_input), Operand::input(image_input), Operand::output(0)};
  dispatch.set_params(
      shader::PatchWeightGradientParams{to_u32(c.input(dy_input).shape.rows()), to_u32(tiles)});
  dispatch.groups = spread_groups(c.device(), tiles);
  return lowered;
}

// How the kernel `cpu_lanes` shares out the work: see its shader.
struct Lanes {
  uint64_t lanes = 0, sums = 0, chunk = 0, chunks = 0, pieces = 0;
};

Lanes lanes_of(const LowerContext& c) {
  constexpr uint64_t most_sums = 24;      // that stay in registers, or nearly
  constexpr uint64_t most_patches = 100;  // in line: more take longer to compile than they save
  const Shape &dy = c.input(dy_input).shape, &image = c.input(image_input).shape;
  const PatchSize patch = patch_of(c);
  const uint64_t columns = image[3] / patch.width;
  Lanes l{.lanes = c.device().subgroup_size, .sums = largest_divisor(patch.width, most_sums)};
  // Of a batch no more than a power of two decides how many images that is: few pipelines serve all batches.
  const uint64_t alike = dy[0] & (~dy[0] + 1);
  l.chunk = dy[1] <= most_patches ? dy[1] * std::min(alike, std::bit_floor(most_patches / dy[1]))
                                  : columns * largest_divisor(image[2] / patch.height,
                                                              std::max<uint64_t>(most_patches / columns, 1));
  l.chunks = dy.rows() / l.chunk;
  l.pieces = ceil_div(dy[2], std::max<uint64_t>(l.lanes, 1)) * (c.output(0).shape[1] / l.sums);
  return l;
}

std::optional<std::string> refuse_lanes(const LowerContext& c) {
  constexpr uint32_t most_lanes = 16;
  constexpr uint64_t fewest_sums = 4, most_chunk = 256, most_groups = 1u << 16;
  const uint32_t lanes = c.device().subgroup_size;
  if (lanes == 0 || lanes > most_lanes)
    return "subgroups of " + std::to_string(lanes) + " lanes are too wide";
  if (auto reason = c.missing("weight_gradient_cpu_sums", "f32")) return reason;
  if (auto reason = refuse(c, "patch_weight_gradient_cpu_lanes", "f32")) return reason;
  const Lanes l = lanes_of(c);
  if (l.sums < fewest_sums) {
    return "lines of " + std::to_string(patch_of(c).width) + " pixels can't be cut into some of " +
           std::to_string(fewest_sums) + " or more";
  }
  if (l.chunk > most_chunk) return "rows of " + std::to_string(l.chunk) + " patches are too long";
  const auto& most = c.device().max_workgroup_count;
  if (l.pieces < std::min<uint64_t>(most_groups, most[0]) &&
      l.chunks < std::min<uint64_t>(most_groups, most[1]) &&
      l.chunks * c.output(0).shape.elements() <= UINT32_MAX / 4)
    return std::nullopt;
  return "the sums need more workgroups than the device takes";
}

Lowered lower_lanes(const LowerContext& c) {
  const Lanes l = lanes_of(c);
  const Shape& dw = c.output(0).shape;
  Lowered lowered;
  Dispatch& rows = lowered.dispatches.emplace_back();
  rows.shader = &find_shader("patch_weight_gradient_cpu_lanes", "f32");
  rows.constants = {
      {"local_size", to_u32(l.lanes)}, {"lanes", to_u32(l.lanes)}, {"n", to_u32(dw[0])}, {"k", to_u32(dw[1])},
      {"sums", to_u32(l.sums)},        {"chunk", to_u32(l.chunk)}};
  add_patch_places(c.input(image_input).shape, patch_of(c), rows);
  rows.operands = {Operand::input(dy_input), Operand::input(image_input),
                   l.chunks == 1 ? Operand::output(0) : Operand::scratch(0)};
  rows.set_params(shader::with_digits(shader::PatchWeightGradientLanesParams{}));
  rows.groups = {to_u32(l.pieces), to_u32(l.chunks), 1};
  rows.subgroup_size = to_u32(l.lanes);
  rows.note = std::to_string(l.sums) + " sums of " + std::to_string(l.chunk) + " patches";
  lowered.overread_bytes = l.lanes * sizeof(float);  // columns behind the last one
  if (l.chunks == 1) return lowered;

  lowered.scratch.push_back(l.chunks * dw.elements() * sizeof(float));
  Dispatch& sums = lowered.dispatches.emplace_back();
  sums.shader = &find_shader("weight_gradient_cpu_sums", "f32");
  sums.constants = {{"local_size", workgroup_size(c.device(), 64)}};
  sums.operands = {Operand::scratch(0), Operand::nothing(), Operand::output(0), Operand::nothing()};
  sums.set_params(shader::WeightGradientSumsParams{to_u32(l.chunks), to_u32(dw.elements()), 0});
  sums.groups = {to_u32(ceil_div(dw.elements(), sums.constant("local_size"))), 1, 1};
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuse_simple, no_preference, lower_simple},
                                 {"cpu_lanes", Target::cpu, refuse_lanes, prefer_on_cpu, lower_lanes}};

}  // namespace

const OpDef op_patch_weight_gradient{"patch_weight_gradient", infer, flops, kernels,
                                     patch_weight_gradient_cases};

ValueId patch_weight_gradient(Graph& graph, std::string name, ValueId dy, ValueId image, PatchSize patch) {
  return graph.add(op_patch_weight_gradient, std::move(name), {dy, image},
                   {{"patch_height", static_cast<int64_t>(patch.height)},
                    {"patch_width", static_cast<int64_t>(patch.width)}})[0];
}

}  // namespace vitrine

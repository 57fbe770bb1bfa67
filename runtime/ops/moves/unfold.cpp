#include "runtime/ops/moves/unfold.h"

#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "shaders/moves/unfold.h"

namespace vitrine {
namespace {

template <typename Context>
PatchSize patch_of(const Context& c) {
  return {static_cast<uint64_t>(c.attributes().integer("patch_height")),
          static_cast<uint64_t>(c.attributes().integer("patch_width"))};
}

std::string text_of(PatchSize patch) {
  return std::to_string(patch.height) + " x " + std::to_string(patch.width);
}

void require_patch(const InferContext& c, PatchSize patch, uint64_t height, uint64_t width) {
  c.require(patch.height > 0 && patch.width > 0, "a patch of " + text_of(patch) + " pixels was asked for");
  c.require(height >= patch.height && width >= patch.width,
            "an image of " + text_of({height, width}) + " is smaller than a patch of " + text_of(patch));
}

void infer_unfold(InferContext& c) {
  const Value& image = c.input(0);
  c.require(image.shape.rank() == 4 && image.dtype == DType::f32,
            "the image is " + std::string(name_of(image.dtype)) + " " + image.shape.to_string() +
                ", expected f32 [images, channels, height, width]");
  const PatchSize patch = patch_of(c);
  require_patch(c, patch, image.shape[2], image.shape[3]);
  c.output({image.shape[0], (image.shape[2] / patch.height) * (image.shape[3] / patch.width),
            image.shape[1] * patch.height * patch.width},
           DType::f32);
}

void infer_fold(InferContext& c) {
  const Value& x = c.input(0);
  const PatchSize patch = patch_of(c);
  const auto height = static_cast<uint64_t>(c.attributes().integer("image_height"));
  const auto width = static_cast<uint64_t>(c.attributes().integer("image_width"));
  require_patch(c, patch, height, width);
  const uint64_t patches = (height / patch.height) * (width / patch.width);
  c.require(x.dtype == DType::f32 && x.shape.rank() == 3 && x.shape[1] == patches &&
                x.shape[2] % (patch.height * patch.width) == 0,
            "x is " + std::string(name_of(x.dtype)) + " " + x.shape.to_string() + ", expected f32 [images, " +
                std::to_string(patches) + ", channels * " + text_of(patch) + "]");
  c.output({x.shape[0], x.shape[2] / (patch.height * patch.width), height, width}, DType::f32);
}

double flops(const LowerContext&) { return 0; }

Lowered lower_as(const LowerContext& c, std::string_view shader, const Shape& image,
                 NamedConstant last_constant, uint64_t count) {
  const PatchSize patch = patch_of(c);
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader(shader, "f32");
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"patch_height", to_u32(patch.height)},
                        {"patch_width", to_u32(patch.width)},
                        {"patch_rows", to_u32(image[2] / patch.height)},
                        {"patch_columns", to_u32(image[3] / patch.width)},
                        last_constant};
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(
      shader::UnfoldParams{to_u32(count), to_u32(image[1]), to_u32(image[2]), to_u32(image[3])});
  dispatch.groups = spread_groups(c.device(), ceil_div(count, dispatch.constant("local_size")));
  return lowered;
}

std::optional<std::string> refuse_unfold(const LowerContext& c) { return refuse(c, "unfold", "f32"); }

Lowered lower_unfold(const LowerContext& c) {
  const Shape& rows = c.output(0).shape;
  return lower_as(c, "unfold", c.input(0).shape, {"depth", to_u32(rows[2])}, rows.elements());
}

std::optional<std::string> refuse_runs(const LowerContext& c) {
  if (auto reason = refuse(c, "unfold_cpu_runs", "f32")) return reason;
  if (auto reason = refuse_half_word(c.input(0))) return reason;
  const uint64_t width = patch_of(c).width, image_width = c.input(0).shape[3];
  if (width % 2 == 0 && image_width % 2 == 0) return std::nullopt;
  return "lines of " + std::to_string(width) + " pixels in images " + std::to_string(image_width) +
         " wide can't be moved by twos";
}

Lowered lower_runs(const LowerContext& c) {
  const uint64_t lines = c.input(0).shape[1] * patch_of(c).height;
  return lower_as(c, "unfold_cpu_runs", c.input(0).shape, {"lines", to_u32(lines)},
                  c.output(0).shape.rows() * lines);
}

std::optional<std::string> refuse_fold(const LowerContext& c) { return refuse(c, "fold", "f32"); }

Lowered lower_fold(const LowerContext& c) {
  const Shape& image = c.output(0).shape;
  return lower_as(c, "fold", image, {"depth", to_u32(c.input(0).shape[2])}, image.elements());
}

void unfold_backward(GradContext& c) {
  const Shape& image = c.input_value(0).shape;
  c.add(0, fold(c.graph(), c.name("image"), c.gradient(0), image[2], image[3], patch_of(c)));
}

void fold_backward(GradContext& c) { c.add(0, unfold(c.graph(), c.name("x"), c.gradient(0), patch_of(c))); }

constexpr KernelDef unfold_kernels[] = {{"simple", Target::any, refuse_unfold, no_preference, lower_unfold},
                                        {"cpu_runs", Target::cpu, refuse_runs, prefer_on_cpu, lower_runs}};
constexpr KernelDef fold_kernels[] = {{"simple", Target::any, refuse_fold, no_preference, lower_fold}};

}  // namespace

const OpDef op_unfold{"unfold", infer_unfold, flops, unfold_kernels, unfold_cases, unfold_backward};
const OpDef op_fold{"fold", infer_fold, flops, fold_kernels, fold_cases, fold_backward};

ValueId unfold(Graph& graph, std::string name, ValueId image, PatchSize patch) {
  return graph.add(op_unfold, std::move(name), {image},
                   {{"patch_height", static_cast<int64_t>(patch.height)},
                    {"patch_width", static_cast<int64_t>(patch.width)}})[0];
}

ValueId fold(Graph& graph, std::string name, ValueId x, uint64_t image_height, uint64_t image_width,
             PatchSize patch) {
  return graph.add(op_fold, std::move(name), {x},
                   {{"image_height", static_cast<int64_t>(image_height)},
                    {"image_width", static_cast<int64_t>(image_width)},
                    {"patch_height", static_cast<int64_t>(patch.height)},
                    {"patch_width", static_cast<int64_t>(patch.width)}})[0];
}

}  // namespace vitrine

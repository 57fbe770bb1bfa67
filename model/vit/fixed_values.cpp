#include "model/vit/fixed_values.h"

#include <algorithm>

#include "model/vit/lambda.h"
#include "model/vit/neck.h"
#include "model/vit/relative_table.h"
#include "model/vit/rotary_table.h"
#include "model/vit/stem.h"

namespace vitrine {
namespace {

std::vector<float> key_mask(const ViTConfig& c, uint64_t count) {
  std::vector<float> mask(count, 1.0f);
  std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(c.key_columns()), c.key_columns(), 0.0f);
  return mask;
}

std::vector<float> rotary_angles(const Parameter& parameter, const ViTConfig& c, const ValuesOf& values_of) {
  if (!c.rotary_learned) return rotary_table(c, {}, 0);
  const std::string name(canonical_path(Module::rotary_frequencies));
  const std::vector<float> frequencies =
      ask(values_of, {.name = name, .module = Module::rotary_frequencies, .shape = frequencies_shape(c)});
  return rotary_table(c, frequencies, parameter.block);
}

std::vector<float> relative_places(const Parameter& parameter, const ViTConfig& c,
                                   const ValuesOf& values_of) {
  const bool shared = parameter.module == Module::shared_relative_bias;
  const uint64_t hidden = c.relative_hidden;
  const auto part = [&](const char* at, Leaf leaf, Module own, Module of_all, Shape shape) {
    return ask(values_of, {.name = parameter.name + at,
                           .module = shared ? of_all : own,
                           .leaf = leaf,
                           .block = parameter.block,
                           .shape = shape});
  };
  using enum Module;
  RelativeMlp mlp;
  mlp.fc1 = part(".fc1.weight", Leaf::weight, relative_fc1, shared_relative_fc1, {hidden, 2});
  mlp.fc1_bias = part(".fc1.bias", Leaf::bias, relative_fc1, shared_relative_fc1, {hidden});
  mlp.fc2 = part(".fc2.weight", Leaf::weight, relative_fc2, shared_relative_fc2, {c.heads, hidden});
  if (!c.relative_swin)
    mlp.fc2_bias = part(".fc2.bias", Leaf::bias, relative_fc2, shared_relative_fc2, {c.heads});
  return relative_table(c, mlp);
}

std::vector<float> shares(const Parameter& parameter, const ViTConfig& c, const ValuesOf& values_of) {
  const auto part = [&](const char* end, Module module) {
    return ask(values_of, {.name = parameter.name + end,
                           .module = module,
                           .block = parameter.block,
                           .branch = parameter.branch,
                           .shape = {c.head_key_width()}});
  };
  using enum Module;
  const double share = lambda_of(part("_q1", lambda_q1), part("_k1", lambda_k1), part("_q2", lambda_q2),
                                 part("_k2", lambda_k2), parameter.block);
  return std::vector<float>(parameter.shape.elements(), static_cast<float>(-share));
}

}  // namespace

std::vector<float> ask(const ValuesOf& values_of, const Parameter& wanted) {
  if (!values_of)
    throw Error(ErrorCode::failed, "'" + wanted.name + "' isn't known, which others are made of");
  return values_of(wanted);
}

std::vector<float> fixed_values(const Parameter& parameter, const ViTConfig& c, const ValuesOf& values_of) {
  switch (parameter.module) {
    case Module::neck_kernel: {
      const Shape shape{c.neck, c.neck, neck_side, neck_side};
      return kernel_rows(ask(values_of, {.name = parameter.name + ".weight",
                                         .module = Module::neck_convolution,
                                         .leaf = Leaf::weight,
                                         .shape = shape}),
                         shape);
    }
    case Module::stem_kernel:
    case Module::stem_shift:
      return stem_values(parameter, c, values_of);
    case Module::lambda:
      return shares(parameter, c, values_of);
    case Module::qkv_mask:
      return key_mask(c, parameter.shape.elements());
    case Module::rotary:
      return rotary_angles(parameter, c, values_of);
    case Module::relative_bias:
    case Module::shared_relative_bias:
      return relative_places(parameter, c, values_of);
    default:
      return sincos_positions(c.position_rows(), c.dim);
  }
}

}  // namespace vitrine

#include "model/vit/fixed_values.h"

#include <algorithm>
#include <cmath>

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
  const auto asked = [&](bool there, Module module, Shape shape) {
    const std::string name(canonical_path(module));
    return there ? ask(values_of, {.name = name, .module = module, .shape = shape}) : std::vector<float>();
  };
  const std::vector<float> frequencies =
      asked(c.rotary_learned, Module::rotary_frequencies, frequencies_shape(c));
  const std::vector<float> class_token = asked(c.rotary_class, Module::rotary_class, class_angles_shape(c));
  return rotary_table(c, {frequencies, class_token}, parameter.block);
}

// Sines and cosines of a patch's column, then of its row.
std::vector<float> grid_positions(const ViTConfig& c) {
  const uint64_t quarter = c.dim / 4;
  std::vector<float> table;
  table.reserve(c.patches() * c.dim);
  for (uint64_t row = 0; row < c.grid_height(); ++row) {
    for (uint64_t column = 0; column < c.grid_width(); ++column) {
      for (uint64_t i = 0; i < c.dim; ++i) {
        const auto place = static_cast<double>(i < 2 * quarter ? column : row);
        const double share = static_cast<double>(i % quarter) / static_cast<double>(quarter);
        const double angle = place / std::pow(10000.0, share);
        table.push_back(static_cast<float>(i / quarter % 2 ? std::cos(angle) : std::sin(angle)));
      }
    }
  }
  return table;
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
      return c.positions == Positions::sincos_grid ? grid_positions(c)
                                                   : sincos_positions(c.position_rows(), c.dim);
  }
}

}  // namespace vitrine

#include "model/parameters.h"

#include <cmath>

namespace vitrine {
namespace {

class List {
 public:
  explicit List(const ViTConfig& config) : config_(config) {}

  void add(Module module, Leaf leaf, Shape shape, uint64_t block = 0) {
    std::string name(canonical_path(module));
    if (const size_t star = name.find('*'); star != std::string::npos)
      name.replace(star, 1, std::to_string(block));
    if (leaf == Leaf::weight) name += ".weight";
    if (leaf == Leaf::bias) name += ".bias";
    list.push_back({std::move(name), module, leaf, block, shape, false});
  }
  void norm(Module module, uint64_t block = 0) {
    add(module, Leaf::weight, {config_.dim}, block);
    add(module, Leaf::bias, {config_.dim}, block);
  }
  void linear(Module module, uint64_t out, uint64_t in, bool bias = true, uint64_t block = 0) {
    add(module, Leaf::weight, {out, in}, block);
    if (bias) add(module, Leaf::bias, {out}, block);
  }
  void maps(Module module, uint64_t width, uint64_t block) {
    add(module, Leaf::weight, {config_.heads, width, config_.dim / config_.heads}, block);
    if (config_.qkv_bias) add(module, Leaf::bias, {config_.heads, width}, block);
  }
  void add_block(uint64_t i) {
    const ViTConfig& c = config_;
    norm(Module::norm1, i);
    if (c.per_head_maps) {
      maps(Module::q, c.head_key_width(), i);
      maps(Module::k, c.head_key_width(), i);
      maps(Module::v, c.head_value_width(), i);
    } else {
      linear(Module::qkv, 2 * c.key_columns() + c.value_columns(), c.dim, c.qkv_bias, i);
    }
    if (c.projection) linear(Module::projection, c.dim, c.value_columns(), true, i);
    if (c.layer_scale) add(Module::scale1, Leaf::whole, {c.dim}, i);
    norm(Module::norm2, i);
    linear(Module::fc1, c.mlp_width() * (c.mlp == MlpKind::swiglu ? 2 : 1), c.dim, true, i);
    linear(Module::fc2, c.dim, c.mlp_width(), true, i);
    if (c.layer_scale) add(Module::scale2, Leaf::whole, {c.dim}, i);
  }

  std::vector<Parameter> list;

 private:
  const ViTConfig& config_;
};

}  // namespace

bool Parameter::is_norm() const {
  return module == Module::patch_norm || module == Module::pre_norm || module == Module::norm1 ||
         module == Module::norm2 || module == Module::norm || module == Module::fc_norm;
}

bool Parameter::is_matrix() const { return leaf == Leaf::weight && !is_norm(); }

std::string_view canonical_path(Module module) {
  switch (module) {
    case Module::patch:
      return "patch_embed.proj";
    case Module::patch_norm:
      return "patch_embed.norm";
    case Module::class_token:
      return "cls_token";
    case Module::distillation_token:
      return "dist_token";
    case Module::registers:
      return "reg_token";
    case Module::positions:
      return "pos_embed";
    case Module::pre_norm:
      return "norm_pre";
    case Module::norm1:
      return "blocks.*.norm1";
    case Module::qkv:
      return "blocks.*.attn.qkv";
    case Module::q:
      return "blocks.*.attn.q";
    case Module::k:
      return "blocks.*.attn.k";
    case Module::v:
      return "blocks.*.attn.v";
    case Module::projection:
      return "blocks.*.attn.proj";
    case Module::scale1:
      return "blocks.*.ls1.gamma";
    case Module::norm2:
      return "blocks.*.norm2";
    case Module::fc1:
      return "blocks.*.mlp.fc1";
    case Module::fc2:
      return "blocks.*.mlp.fc2";
    case Module::scale2:
      return "blocks.*.ls2.gamma";
    case Module::norm:
      return "norm";
    case Module::fc_norm:
      return "fc_norm";
    case Module::pre_logits:
      return "pre_logits.fc";
    case Module::head:
      return "head";
    case Module::distillation_head:
      return "head_dist";
  }
  return "?";
}

std::vector<Parameter> parameters_of(const ViTConfig& c) {
  List all(c);
  if (c.class_token) all.add(Module::class_token, Leaf::whole, {c.dim});
  if (c.distillation_token) all.add(Module::distillation_token, Leaf::whole, {c.dim});
  if (c.registers) all.add(Module::registers, Leaf::whole, {c.registers, c.dim});
  if (c.positions != Positions::none) {
    all.add(Module::positions, Leaf::whole, {c.position_rows(), c.dim});
    all.list.back().fixed = c.positions == Positions::sincos;
  }
  all.add(Module::patch, Leaf::weight, {c.dim, c.channels, c.patch_height, c.patch_width});
  if (c.patch_bias) all.add(Module::patch, Leaf::bias, {c.dim});
  if (c.patch_norm) all.norm(Module::patch_norm);
  if (c.pre_norm) all.norm(Module::pre_norm);
  for (uint64_t i = 0; i < c.depth; ++i) all.add_block(i);
  if (c.final_norm) all.norm(Module::norm);
  if (c.fc_norm) all.norm(Module::fc_norm);
  if (c.representation_size) all.linear(Module::pre_logits, c.representation_size, c.dim);
  if (c.classes) all.linear(Module::head, c.classes, c.feature_width());
  if (c.classes && c.distilled_head) all.linear(Module::distillation_head, c.classes, c.dim);
  return std::move(all.list);
}

std::vector<float> sincos_positions(uint64_t rows, uint64_t width) {
  std::vector<float> table(rows * width);
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < width; ++j) {
      const double exponent = static_cast<double>(j - j % 2) / static_cast<double>(width);
      const double angle = static_cast<double>(i) / std::pow(10000.0, exponent);
      table[i * width + j] = static_cast<float>(j % 2 ? std::cos(angle) : std::sin(angle));
    }
  }
  return table;
}

}  // namespace vitrine

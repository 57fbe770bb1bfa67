// timm's Vision Transformers with other blocks than the plain one.
#include <algorithm>

#include "model/families/timm_tables.h"

namespace vitrine {
namespace {

ModulePath& path_of(Family& family, Module module) {
  return *std::ranges::find(family.paths, module, &ModulePath::module);
}

// What the shapes of products of both don't tell where they are taken for one's.
void adjust_parallel(const TensorShapes& tensors, ViTConfig& c) {
  const auto shape_of = [&](const char* name) {
    const auto found = tensors.find(name);
    return found == tensors.end() || found->second.size() != 2 ? std::vector<uint64_t>{0, 0} : found->second;
  };
  const uint64_t of_both = shape_of("blocks.0.out_proj.weight")[1];
  c.block = BlockKind::parallel;
  c.mlp = MlpKind::plain;
  c.activation = Activation::gelu;
  c.mlp_hidden = of_both ? of_both - std::min(of_both, c.dim) : shape_of("blocks.0.mlp_out_proj.weight")[1];
  c.key_width = c.value_width = 0;
  c.projection = true;
  // A product of both has one bias: the MLP's.
  c.projection_bias = tensors.contains("blocks.0.attn_out_proj.bias");
  c.mlp_bias = tensors.contains("blocks.0.mlp_out_proj.bias") || tensors.contains("blocks.0.out_proj.bias");
  c.mlp_scale = true;
}

void adjust_branches(const TensorShapes& tensors, ViTConfig& c) {
  c.branches = 1;
  while (tensors.contains("blocks.0.attns." + std::to_string(c.branches) + ".norm.weight")) ++c.branches;
}

}  // namespace

const Family& timm_parallel() {
  static const Family family = [] {
    Family parallel = timm();
    parallel.name = "timm_parallel";
    parallel.title = "timm ViT of parallel blocks";
    parallel.landmarks.back() = "blocks.0.in_norm.weight";
    path_of(parallel, Module::norm1).parts = {"blocks.*.in_norm."};
    path_of(parallel, Module::qkv) = {Module::qkv, {"blocks.*.in_proj."}};
    path_of(parallel, Module::fc1) = {
        .module = Module::fc1, .parts = {"blocks.*.in_proj."}, .biases = {"blocks.*.mlp_bias"}};
    path_of(parallel, Module::q_norm).parts = {"blocks.*.q_norm."};
    path_of(parallel, Module::k_norm).parts = {"blocks.*.k_norm."};
    path_of(parallel, Module::lambda_q1).parts = {"blocks.*.lambda_q1"};
    path_of(parallel, Module::lambda_k1).parts = {"blocks.*.lambda_k1"};
    path_of(parallel, Module::lambda_q2).parts = {"blocks.*.lambda_q2"};
    path_of(parallel, Module::lambda_k2).parts = {"blocks.*.lambda_k2"};
    path_of(parallel, Module::sub_norm).parts = {"blocks.*.sub_norm."};
    path_of(parallel, Module::projection) = {
        Module::projection, {"blocks.*.attn_out_proj."}, {"blocks.*.out_proj."}};
    path_of(parallel, Module::fc2) = {Module::fc2, {"blocks.*.mlp_out_proj."}, {"blocks.*.out_proj."}};
    path_of(parallel, Module::scale1) = {Module::scale1, {"blocks.*.ls.gamma"}};
    parallel.fused_branches = true;
    parallel.adjust = adjust_parallel;
    return parallel;
  }();
  return family;
}

const Family& timm_branches() {
  static const Family family = [] {
    Family branches = timm();
    branches.name = "timm_branches";
    branches.title = "timm ViT of blocks with branches";
    branches.landmarks.back() = "blocks.0.attns.0.norm.weight";
    path_of(branches, Module::norm1).parts = {"blocks.*.attns.%.norm."};
    path_of(branches, Module::qkv) = {Module::qkv, {"blocks.*.attns.%.attn.qkv."}};
    path_of(branches, Module::q_norm).parts = {"blocks.*.attns.%.attn.q_norm."};
    path_of(branches, Module::k_norm).parts = {"blocks.*.attns.%.attn.k_norm."};
    path_of(branches, Module::attention_norm).parts = {"blocks.*.attns.%.attn.norm."};
    path_of(branches, Module::projection).parts = {"blocks.*.attns.%.attn.proj."};
    path_of(branches, Module::scale1) = {Module::scale1, {"blocks.*.attns.%.ls.gamma"}};
    path_of(branches, Module::norm2).parts = {"blocks.*.ffns.%.norm."};
    path_of(branches, Module::fc1) = {Module::fc1, {"blocks.*.ffns.%.mlp.fc1."}};
    path_of(branches, Module::mlp_norm).parts = {"blocks.*.ffns.%.mlp.norm."};
    path_of(branches, Module::fc2).parts = {"blocks.*.ffns.%.mlp.fc2."};
    path_of(branches, Module::scale2) = {Module::scale2, {"blocks.*.ffns.%.ls.gamma"}};
    branches.adjust = adjust_branches;
    return branches;
  }();
  return family;
}

}  // namespace vitrine

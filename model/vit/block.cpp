#include "model/vit/block.h"

#include <utility>

#include "runtime/ops/elementwise/binary.h"

namespace vitrine {
namespace {

// What the attention of a block is given: windows are what those that see all are without.
ViTConfig attention_config(ViTConfig config, uint64_t block) {
  if (config.sees_all(block)) config.window = 0;
  return config;
}

}  // namespace

Block::Block(const ViTConfig& config, std::string name, uint64_t index)
    : ModuleBase(config, std::move(name)) {
  const ViTConfig of_attention = attention_config(config, index);
  if (config.block_positions && index > 0)
    declare(Module::block_positions, Leaf::whole, "pos_embed", {config.position_rows(), config.dim});
  if (config.branches == 1) {
    branches_.push_back({Attention(of_attention, path("attn"), index), Mlp(config, path("mlp")), "norm1",
                         "ls1.gamma", "norm2", "ls2.gamma"});
  } else {
    for (uint64_t i = 0; i < config.branches; ++i) {
      const std::string attention = "attns." + std::to_string(i), mlp = "ffns." + std::to_string(i);
      branches_.push_back({Attention(of_attention, path(attention + ".attn"), index),
                           Mlp(config, path(mlp + ".mlp")), attention + ".norm", attention + ".ls.gamma",
                           mlp + ".norm", mlp + ".ls.gamma"});
    }
  }
  const bool parallel = config.block == BlockKind::parallel;
  // In the order of PyTorch's state dict: all attentions come first.
  for (const Branch& branch : branches_) {
    const size_t first = parameters_.size();
    declare_norm(Module::norm1, branch.norm1);
    declare_all_of(branch.attention);
    if (config.layer_scale) declare(Module::scale1, Leaf::whole, branch.scale1, {config.dim});
    number_from(first, branch);
  }
  for (const Branch& branch : branches_) {
    const size_t first = parameters_.size();
    if (!parallel) declare_norm(Module::norm2, branch.norm2);
    declare_all_of(branch.mlp);
    if (config.layer_scale && config.mlp_scale && !parallel)
      declare(Module::scale2, Leaf::whole, branch.scale2, {config.dim});
    number_from(first, branch);
  }
  for (Parameter& parameter : parameters_) parameter.block = index;
  if (config.depth > 1) {
    drop_rate_ = config.stochastic_depth * static_cast<double>(index) / static_cast<double>(config.depth - 1);
  }
}

void Block::number_from(size_t first, const Branch& branch) {
  for (size_t i = first; i < parameters_.size(); ++i)
    parameters_[i].branch = static_cast<uint64_t>(&branch - branches_.data());
}

// Of a branch that is normalised behind: what follows its norm.
ValueId Block::behind(GraphBuilder& builder, std::string_view norm_at, ValueId branch,
                      ValueId residual) const {
  const ValueId normed = norm(builder, norm_at, branch, DType::f32);
  return end_branch(builder, path(norm_at), normed, {.residual = residual, .drop_rate = drop_rate_});
}

ValueId Block::scale_of(GraphBuilder& builder, const std::string& at) const {
  return constant_if(has(at), builder, at, DType::f32);
}

void Block::add_post_norm(GraphBuilder& builder, const AttentionKeeps& keeps, BlockValues& out) const {
  out.normed1 = out.in;
  out.attention = attention().values(builder, out.in, keeps);
  out.attention.out = behind(builder, "norm1", out.attention.out, out.in);
  out.normed2 = out.attention.out;
  out.mlp = mlp().values(builder, out.normed2);
  out.mlp.out = behind(builder, "norm2", out.mlp.out, out.normed2);
  out.out = out.mlp.out;
}

void Block::add_parallel(GraphBuilder& builder, const AttentionKeeps& keeps, BlockValues& out) const {
  const DType of_attention = builder.dtype(attention().name()), of_mlp = builder.dtype(mlp().name());
  out.normed1 = norm(builder, "norm1", out.in, of_attention == of_mlp ? of_mlp : DType::f32);
  out.normed2 = out.normed1;
  const ValueId scale = scale_of(builder, "ls1.gamma");
  if (!builder.training() || drop_rate_ == 0) {
    out.attention = attention().values(builder, out.normed1, keeps, {.scale = scale, .residual = out.in});
    out.mlp = mlp().values(builder, out.normed2, {.scale = scale, .residual = out.attention.out});
  } else {  // a sample is dropped from both or from neither
    out.attention = attention().values(builder, out.normed1, keeps);
    out.mlp = mlp().values(builder, out.normed2, {.residual = out.attention.out});
    if (scale) out.mlp.out = multiply(builder.graph(), path("ls1"), out.mlp.out, scale);
    out.mlp.out =
        end_branch(builder, path("sum"), out.mlp.out, {.residual = out.in, .drop_rate = drop_rate_});
  }
  out.out = out.mlp.out;
}

void Block::add_branches(GraphBuilder& builder, const AttentionKeeps& keeps, BlockValues& out) const {
  out.beside.resize(branches_.size() - 1, {.in = out.in});
  const auto values_of = [&](size_t i) -> BlockValues& { return i == 0 ? out : out.beside[i - 1]; };
  ValueId sum = out.in;
  for (size_t i = 0; i < branches_.size(); ++i) {
    const auto& [attention, mlp, norm1, scale1, norm2, scale2] = branches_[i];
    BlockValues& values = values_of(i);
    values.normed1 = norm(builder, norm1, out.in, builder.dtype(attention.name()));
    values.attention =
        attention.values(builder, values.normed1, keeps,
                         {.scale = scale_of(builder, scale1), .residual = sum, .drop_rate = drop_rate_});
    sum = values.attention.out;
  }
  const ValueId attended = sum;
  for (size_t i = 0; i < branches_.size(); ++i) {
    const auto& [attention, mlp, norm1, scale1, norm2, scale2] = branches_[i];
    BlockValues& values = values_of(i);
    values.normed2 = norm(builder, norm2, attended, builder.dtype(mlp.name()));
    values.mlp = mlp.values(builder, values.normed2,
                            {.scale = scale_of(builder, scale2), .residual = sum, .drop_rate = drop_rate_});
    sum = values.mlp.out;
  }
  out.out = sum;
}

BlockValues Block::values(GraphBuilder& builder, ValueId x, const AttentionKeeps& keeps) const {
  if (has("pos_embed"))
    x = add(builder.graph(), path("positions"), x, constant(builder, "pos_embed", DType::f32));
  BlockValues out{.in = x};
  if (config_.post_norm) {
    add_post_norm(builder, keeps, out);
  } else if (config_.block == BlockKind::parallel) {
    add_parallel(builder, keeps, out);
  } else {
    add_branches(builder, keeps, out);
  }
  return out;
}

}  // namespace vitrine

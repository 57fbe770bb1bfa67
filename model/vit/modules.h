// The parts of a Vision Transformer, each usable alone. A module is made from the fields of a ViTConfig
// that concern it; it says which parameters it needs, and its call appends nodes to a graph:
//
//   const Attention attention({.dim = 512, .heads = 8, .qkv_bias = false});
//   GraphBuilder builder;
//   const ValueId tokens = builder.graph().input("tokens", {1, 10, 512});
//   builder.graph().output(attention(builder, tokens), "out");
//
// A module's name goes in front of its parameters' names, with a dot between them: "qkv.weight" of an
// Attention without a name is "blocks.0.attn.qkv.weight" in a model. Dropouts concern
// graphs alone whose builder is training().
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/vit/graph_builder.h"
#include "model/vit/parameters.h"
#include "model/vit/vit_config.h"
#include "runtime/ops/attention/attention.h"

namespace vitrine {

class ConvolutionalStem;

// What follows a module's last linear layer.
struct Epilogue {
  ValueId scale{};       // [dim] f32, or none
  ValueId residual{};    // [B, N, dim] f32, or none
  double drop_rate = 0;  // while training, the share of samples of which only the residual is left
};

// What all modules share.
class ModuleBase {
 public:
  const ViTConfig& config() const { return config_; }
  const std::string& name() const { return name_; }
  // With their full names, in the order of PyTorch's state dict.
  std::span<const Parameter> parameters() const { return parameters_; }

 protected:
  ModuleBase(const ViTConfig& config, std::string name) : config_(config), name_(std::move(name)) {}
  ~ModuleBase() = default;
  ModuleBase(const ModuleBase&) = default;
  ModuleBase& operator=(const ModuleBase&) = default;

  // "NAME.leaf", or the leaf alone where the module has no name.
  std::string path(std::string_view leaf) const;
  const Parameter& parameter(std::string_view leaf) const;  // throws where it has none
  double eps_of(Module norm) const;
  bool has(std::string_view leaf) const;

  void declare(Module module, Leaf leaf, std::string_view at, Shape shape);
  void declare_linear(Module module, std::string_view at, uint64_t out, uint64_t in, bool bias = true);
  void declare_norm(Module module, std::string_view at) { declare_norm(module, at, config_.dim); }
  void declare_norm(Module module, std::string_view at, uint64_t width);
  void declare_all_of(const ModuleBase& part, uint64_t block = 0);

  // The declared parameter of this name, of which only the end is given.
  ValueId constant(GraphBuilder& builder, std::string_view leaf, DType matrices) const;
  ValueId constant_if(bool present, GraphBuilder& builder, std::string_view leaf, DType matrices) const;
  // Several of them as one, see GraphBuilder::joined.
  ValueId joined(GraphBuilder& builder, std::initializer_list<std::string_view> leaves) const;
  ValueId norm(GraphBuilder& builder, std::string_view at, ValueId x, DType out) const;
  // The same under another name in the graph.
  ValueId norm_as(GraphBuilder& builder, std::string_view node, std::string_view at, ValueId x,
                  DType out) const;
  // And under the node's full name.
  ValueId norm_at(GraphBuilder& builder, std::string node, std::string_view at, ValueId x, DType out) const;
  // The linear layer `at`, and the pair beside it where it has one. f32 where it has.
  ValueId linear(GraphBuilder& builder, std::string_view at, std::string node, ValueId x, ValueId weight,
                 MatmulOptions options) const;
  // Adds the residual to what a branch gives, of which some samples are dropped.
  static ValueId end_branch(GraphBuilder& builder, const std::string& node, ValueId x,
                            const Epilogue& epilogue);
  // The linear layer `at` and what follows it, as one node where nothing is dropped. f32.
  ValueId last_linear(GraphBuilder& builder, std::string_view at, std::string node, ValueId x,
                      const Epilogue& epilogue) const;

  ViTConfig config_;
  std::string name_;
  std::vector<Parameter> parameters_;
};

// Cuts images into patches, or what a stem makes of them, and maps each to a token; with patch_norm, a
// LayerNorm behind it.
class PatchEmbed : public ModuleBase {
 public:
  explicit PatchEmbed(const ViTConfig& config, std::string name = {});
  // [B, channels, image_height, image_width] f32 to [B, patches, dim] f32.
  ValueId operator()(GraphBuilder& builder, ValueId image) const;

 private:
  ValueId convolved(GraphBuilder& builder, ValueId image) const;
  std::shared_ptr<const ConvolutionalStem> stem_;  // none without
  bool by_rows_ = false;  // the patches are made rows first, to be mapped by a product
};

// What an attention stores besides its result.
struct AttentionKeeps {
  bool lse = false;     // the log-sum-exp of each row of the scores
  bool scores = false;  // scores and weights, by the unfused kernel; then there is no lse
};

// With a window, q, k, v and what is made of them up to the heads' outputs are [B * windows, window^2, ..].
struct AttentionValues {
  // Where queries, keys and values are: columns of these from options.q_offset etc. on, head by head.
  ValueId q, k, v;
  AttentionOptions options;
  ValueId lse;              // [B, heads, N] f32, if kept
  ValueId scores, weights;  // [B, heads, N, N] f32, if kept
  ValueId lambda;           // differential: minus the second softmaxes' share, [value_width]
  ValueId difference;       // and [B, N, heads * value_width], in front of the norm of each head
  ValueId heads;            // [B, N, heads * value_width]: the heads' outputs side by side
  ValueId projected;        // what the projection is given: these, with attention_norm normalised
  ValueId out;              // [B, N, dim], behind the projection and the epilogue
};

// Multi-head self-attention: attention, heads, key_width, value_width, qkv_bias, key_bias, head_norm,
// qk_scale, per_head_maps, attention_norm, projection, projection_bias, window, and the rotary and relative
// ones.
class Attention : public ModuleBase {
 public:
  // `block`, of a model's, is what a differential attention's share begins at.
  explicit Attention(const ViTConfig& config, std::string name = {}, uint64_t block = 0);
  // [B, N, dim] to [B, N, dim]: f32 behind a projection, else as builder.dtype(name()) says. x is
  // converted to that where it isn't.
  ValueId operator()(GraphBuilder& builder, ValueId x) const { return values(builder, x).out; }
  // The same, with all that it computes on the way.
  AttentionValues values(GraphBuilder& builder, ValueId x, const AttentionKeeps& keeps = {},
                         const Epilogue& epilogue = {}) const;
  // The layer W_o alone, on the heads' outputs; the config must have it.
  ValueId project(GraphBuilder& builder, std::string node, ValueId heads,
                  const Epilogue& epilogue = {}) const;

 private:
  void declare_bias();
  // What it adds to the scores.
  void add_bias(GraphBuilder& builder, AttentionValues& out) const;
  // What the attention is to be given, as linear maps of x.
  void map(GraphBuilder& builder, ValueId x, AttentionValues& out) const;
  ValueId qkv_bias(GraphBuilder& builder, DType dtype) const;
  void norm_heads(GraphBuilder& builder, AttentionValues& out) const;
  // A head's values for each of its softmaxes, and what these give as one.
  void repeat_values(GraphBuilder& builder, AttentionValues& out) const;
  void subtract(GraphBuilder& builder, AttentionValues& out) const;
  void turn(GraphBuilder& builder, AttentionValues& out) const;
  // Talking heads, all in f32. They hold scores and weights of all pairs of tokens: some four times heads * N
  // * N numbers of an image.
  void talk(GraphBuilder& builder, AttentionValues& out) const;
  ValueId mix_heads(GraphBuilder& builder, const std::string& at, ValueId x, uint64_t columns) const;

  uint64_t block_;
};

struct MlpValues {
  ValueId hidden;  // [B, N, mlp_width], behind the activation (and the gate)
  ValueId out;     // [B, N, dim] f32
};

// Two linear layers with an activation (MlpKind::plain) or a gated product (MlpKind::swiglu) between them;
// with mlp_norm, a norm behind that.
class Mlp : public ModuleBase {
 public:
  explicit Mlp(const ViTConfig& config, std::string name = {});
  ValueId operator()(GraphBuilder& builder, ValueId x) const { return values(builder, x).out; }
  MlpValues values(GraphBuilder& builder, ValueId x, const Epilogue& epilogue = {}) const;
};

}  // namespace vitrine

// The tensors that a ViTConfig asks for: names (timm's), shapes and what each is. The modules declare
// them; the graph's constants, the names in files and random initialisation all start from this list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/vit/vit_config.h"
#include "runtime/graph/tensor.h"

namespace vitrine {

// The parts of a model that hold tensors.
enum class Module : uint8_t {
  patch,
  patch_norm,
  stem,         // convolutions and norms, as files have them
  stem_kernel,  // what is computed of them: a convolution's weight as a product's
  stem_shift,   // and what is added behind it
  class_token,
  distillation_token,
  registers,
  detection_tokens,
  positions,
  block_positions,
  rotary,              // the angles of rotary positions, computed
  rotary_frequencies,  // what these are computed of, where they are learned
  rotary_class,        // those of the class token
  relative_bias,
  relative_fc1,
  relative_fc2,
  shared_relative_bias,
  shared_relative_fc1,
  shared_relative_fc2,  // of all blocks
  relative_height,
  relative_width,  // RelativeBias::decomposed
  pre_norm,
  norm1,
  qkv,
  qkv_mask,  // 0 where a bias is to stay 0, else 1
  q,
  k,
  v,
  q_norm,
  k_norm,
  lambda,     // the second softmax's share, negative, as often as a head's values are wide
  lambda_q1,  // and what it is computed of
  lambda_k1,
  lambda_q2,
  lambda_k2,
  sub_norm,        // of each head
  talking_before,  // how heads are mixed in front of the softmax
  talking_after,   // and behind it
  attention_norm,
  projection,
  scale1,
  norm2,
  fc1,
  mlp_norm,
  fc2,
  scale2,  // of a block
  neck_linear,
  neck_norm1,
  neck_kernel,  // computed of the next one: the convolution's weight as a product's
  neck_convolution,
  neck_norm2,  // behind the blocks
  class_norm1,
  class_q,
  class_k,
  class_v,
  class_projection,
  class_scale1,
  class_norm2,
  class_fc1,
  class_fc2,
  class_scale2,  // of a block in which the class token alone looks
  norm,
  pool_latent,
  pool_q,
  pool_kv,
  pool_projection,
  pool_norm,
  pool_fc1,
  pool_fc2,  // of Pool::attention
  fc_norm,
  pre_logits,
  embedding,
  head,
  distillation_head,
};
enum class Leaf : uint8_t { whole, weight, bias };

struct Parameter {
  std::string name;
  Module module = Module::patch;
  Leaf leaf = Leaf::whole;
  uint64_t block = 0;
  uint64_t branch = 0;  // of a block's that are side by side
  Shape shape;
  bool fixed = false;  // computed from the config (sine-cosine positions), never read from a file
  // Read and written, while training leaves it as it is: fixed ones are made of it, or it belongs to a layer
  // without a derivative.
  bool aside = false;

  bool learned() const { return !fixed; }
  // True for the matrices that are stored in the graph's dtype; all else is f32.
  bool is_matrix() const;
  bool is_norm() const;
};

// Every parameter, in the order of timm's state dict. The config must be valid.
std::vector<Parameter> parameters_of(const ViTConfig& config);

// A module's name in timm, with * for the block: "blocks.*.attn.qkv".
std::string_view canonical_path(Module module);

// The fixed table of sine-cosine positions [rows, width]: column j of row i is sin(i / 10000^(j/width))
// for even j and cos(i / 10000^((j-1)/width)) for odd j, computed in double.
std::vector<float> sincos_positions(uint64_t rows, uint64_t width);

}  // namespace vitrine

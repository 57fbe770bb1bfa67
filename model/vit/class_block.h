// A block in which the class token alone looks, as CaiT has them behind its others.
#pragma once

#include <cstdint>
#include <string>

#include "model/vit/modules.h"

namespace vitrine {

// t + ls1(attn(norm1([t, patches]))), then t + ls2(mlp(norm2(t))), of the class token t. As in timm, nothing
// is dropped in here.
class ClassBlock : public ModuleBase {
 public:
  explicit ClassBlock(const ViTConfig& config, std::string name = {}, uint64_t index = 0);
  // class_token [B, 1, dim] and patches [B, P, dim], both f32, to the class token [B, 1, dim] f32.
  ValueId operator()(GraphBuilder& builder, ValueId class_token, ValueId patches) const;

 private:
  Mlp mlp_;
};

}  // namespace vitrine

// What SAM has behind its blocks: fewer columns, and each patch mixed with its neighbours.
#pragma once

#include <string>

#include "model/vit/modules.h"

namespace vitrine {

inline constexpr uint64_t neck_side = 3;  // of its convolution

// norm(convolution(norm(linear(x)))), the convolution of 3 x 3 patches with zeros around the grid; neither it
// nor the linear layer has a bias. The convolution has no derivative.
class Neck : public ModuleBase {
 public:
  explicit Neck(const ViTConfig& config, std::string name = {});
  // [B, patches, dim] f32 to [B, patches, neck] f32; `node` is in front of the nodes' names.
  ValueId operator()(GraphBuilder& builder, const std::string& node, ValueId x) const;
};

}  // namespace vitrine

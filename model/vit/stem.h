// The convolutions that some models have between an image and its patches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/vit/fixed_values.h"
#include "model/vit/modules.h"
#include "model/vit/vit_config.h"

namespace vitrine {

inline constexpr uint64_t stem_groups = 32;  // of Stem::bit's norms

// A convolution with the norm behind it, by timm's names for both.
struct StemLayer {
  std::string at, norm;
  uint64_t in = 0, out = 0, kernel = 1, stride = 1;
  uint64_t height = 0, width = 0;  // of the map that it is given
};
// All of a stem's, in the order of timm's state dict.
std::vector<StemLayer> stem_layers(const ViTConfig& config);
// Of one image.
double stem_multiply_adds(const ViTConfig& config);

// As a ViTConfig's stem, stem_width and stem_blocks say. Files hold batch norms and weights that aren't
// standardised; what graphs read is computed of them at load: each convolution's weight as a product's, [out,
// kernel * kernel * in], and what is added behind it. Has no derivative: none of its parameters is trained.
class ConvolutionalStem : public ModuleBase {
 public:
  explicit ConvolutionalStem(const ViTConfig& config, std::string name = {});
  // image [B, channels, image_height, image_width] f32 to [B, pixels, stem_channels] f32, with products of
  // `dtype`.
  ValueId operator()(GraphBuilder& builder, ValueId image, DType dtype) const;

 private:
  struct Map {
    ValueId x;
    uint64_t height = 0, width = 0;
    bool planar = false;
  };
  struct Behind {
    Activation activation = Activation::none;
    DType out = DType::f32;
  };
  Map layer(GraphBuilder& builder, const std::string& at, const Map& x, DType dtype,
            const Behind& behind) const;
  Map pooled(GraphBuilder& builder, const Map& x) const;
  Map bottleneck(GraphBuilder& builder, uint64_t stage, uint64_t block, const Map& x, DType dtype) const;

  std::vector<StemLayer> layers_;
};

// A convolution's weight, [out, in, height, width], as a product's of neighbourhoods() with it.
std::vector<float> kernel_rows(const std::vector<float>& weight, const Shape& shape);

// A fixed parameter's values: Module::stem_kernel's or stem_shift's.
std::vector<float> stem_values(const Parameter& parameter, const ViTConfig& config,
                               const ValuesOf& values_of);

}  // namespace vitrine

// From a picture of any size to what a model is given: resize, crop, numbers. Plain data; the profiles are
// what the libraries do, down to how each rounds sizes and where each lets a crop begin.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/pictures/pillow_filter.h"
#include "runtime/ops/pictures/resample_table.h"

namespace vitrine {

enum class ResizeRule : uint8_t {
  none,
  stretch,     // to the size, whatever the picture's proportions
  short_side,  // the short side to the size (height = width), the long one in proportion, rounded down
  cover,       // both sides by one factor, so that the size is just covered; rounded half to even
  contain,     // both sides by one factor, so that the picture just fits into the size; rounded half to even
};

// Where a crop of c pixels begins in a picture of n.
enum class CropRule : uint8_t {
  none,
  // (n - c) / 2 rounded down, also where the picture is smaller: transformers.
  floor,
  // The same, rounded towards zero: transformers' processors on PyTorch.
  toward_zero,
  // (n - c) / 2 rounded half to even; a smaller picture has the odd pixel of its border at the right and
  // at the bottom: torchvision and timm.
  half_even,
};

enum class ScaleRule : uint8_t {
  none,        // 0 to 255
  divide_255,  // in float32: ToTensor()
  factor,      // times `factor` in float64, then float32: transformers
  // Within the normalising, which is (x - mean / factor) / (std / factor) in float32 then, else times
  // `factor` in float32: transformers' processors on PyTorch.
  fused,
};

// Pictures that keep their shape: each is resized to as many whole patches as there may be.
struct KeptShape {
  uint64_t patch = 16, most_patches = 256;

  bool operator==(const KeptShape&) const = default;
};

struct Preprocess {
  std::string profile;      // where this comes from: a profile's name, or a file
  std::string remark = {};  // what is done otherwise than asked there, a sentence

  // How files become pixels. Turned as their EXIF data says: transformers' pipelines do that, the loaders of
  // timm and torchvision don't.
  bool exif = false;
  // Whether the processor converts to RGB itself, which since transformers 5 turns white what a PNG names as
  // its one transparent color.
  bool converts_rgb = false;

  ResizeRule resize = ResizeRule::none;
  uint64_t resize_height = 0, resize_width = 0;
  Filter filter = Filter::bicubic;
  Resampler resampler = Resampler::pillow;
  double crop_pct = 0;  // timm's: resize = floor(crop / crop_pct); 0 where that isn't the rule

  CropRule crop = CropRule::none;
  uint64_t crop_height = 0, crop_width = 0;
  std::array<uint8_t, 3> fill{};  // around a picture that is smaller than the crop

  ScaleRule scale = ScaleRule::divide_255;
  double factor = 1.0 / 255;
  bool normalize = true;          // (x - mean) / std, in float32
  std::vector<double> mean, std;  // one number, or one a channel

  // Where pictures keep their shape: the size that they are stretched to otherwise is for who takes one
  // alone.
  std::optional<KeptShape> kept_shape;

  // What comes out.
  uint64_t height() const { return crop == CropRule::none ? resize_height : crop_height; }
  uint64_t width() const { return crop == CropRule::none ? resize_width : crop_width; }

  // What transformers' processor on PyTorch makes of the settings that are those of a processor on Pillow:
  // the "fast" one of version 4, the default of version 5. Throws Error(usage) where no such processor would
  // have them.
  Preprocess on_torch() const;

  // Throws Error(bad_file) that begins with `origin` where pictures would come out in different sizes, or
  // a number makes no sense.
  void validate(const std::string& origin) const;
  // The same for another size of the result, which all pictures have then: a resize in front of a crop
  // changes in proportion.
  Preprocess with_size(uint64_t height, uint64_t width) const;
  // What a picture of this size gets: the same, but where pictures keep their shape.
  Preprocess of_picture(uint64_t height, uint64_t width) const;
  // [channels][256]: the number that each byte becomes. Throws Error(bad_file) where mean and std are not
  // for this many channels.
  std::vector<float> values(uint64_t channels) const;
  std::string to_string() const;  // "resize short side to 248 (bicubic), crop 224 x 224, ..."

  // Whether all pictures come out the same: of all fields but where they come from.
  bool operator==(const Preprocess& other) const;
};

// "timm", "hf", "torchvision", "clip", "siglip", "naflex", and "hf-deit", "hf-dinov2", "hf-dinov3", "grey":
// what the family's library does with its usual model of this size; with "-fast" behind them, those of
// transformers on PyTorch. Throws Error(usage) for other names. Where a model is there: what its files ask
// for, on PyTorch. No profile_named().
constexpr std::string_view fast_profile = "fast";
Preprocess profile_named(std::string_view name, uint64_t height, uint64_t width);
std::string profile_names();  // for messages

// What a training gives pictures that nobody says anything of: they cover the size, resized by Pillow's
// bicubic filter, and lose what is beyond it on two sides. `mean` and `std` have one number a channel.
Preprocess cover_and_crop(uint64_t height, uint64_t width, std::vector<double> mean, std::vector<double> std);

// What one picture's size makes of it.
struct PictureGeometry {
  uint32_t resized_height = 0, resized_width = 0;
  int64_t top = 0, left = 0;  // of the result in the resized picture; negative where it is smaller
};
// Throws Error(failed) beginning with `name` where a side would vanish or is past what Pillow can do.
PictureGeometry picture_geometry(const Preprocess& preprocess, uint32_t height, uint32_t width,
                                 const std::string& name);

// A picture on its way to the device: the rectangle of it that the result needs, and what to do with it.
struct PreparedPicture {
  uint32_t top = 0, left = 0;  // of the rectangle, whose size is in `resample`
  ResamplePicture resample;
};
PreparedPicture prepare_picture(const Preprocess& preprocess, uint32_t height, uint32_t width,
                                const std::string& name);

// Where in the result its pixels come from: pixel (y, x) is what would be (y + down, x + right), mirrored
// after that; the fill where there is nothing.
struct CropPlacement {
  int32_t down = 0, right = 0;
  bool mirrored = false;

  bool operator==(const CropPlacement&) const = default;
};
PreparedPicture placed(PreparedPicture prepared, const CropPlacement& placement);

// A rectangle of a picture alone, resized to this size: a crop and then a resize, as torchvision's and timm's
// random crops have it. Nothing outside of the rectangle has a part in it.
struct PictureBox {
  uint32_t top = 0, left = 0, height = 0, width = 0;

  bool operator==(const PictureBox&) const = default;
};
PreparedPicture prepare_box(const PictureBox& box, Filter filter, uint32_t height, uint32_t width);

// A picture of which nothing is seen: the result is the fill alone. It needs no pixels.
PreparedPicture blank_picture(const Preprocess& preprocess);

}  // namespace vitrine

#include "model/pictures/preprocess.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "runtime/util/error.h"

namespace vitrine {
namespace {

const std::vector<double> imagenet_mean{0.485, 0.456, 0.406}, imagenet_std{0.229, 0.224, 0.225};
const std::vector<double> clip_mean{0.48145466, 0.4578275, 0.40821073},
    clip_std{0.26862954, 0.26130258, 0.27577711};
const std::vector<double> half{0.5, 0.5, 0.5};

// Sides past this would overflow Pillow's ints.
constexpr double largest_side = std::numeric_limits<int32_t>::max() / 4;

// Python's round(): half to even, the default rounding mode of nearbyint.
double round_half_even(double value) { return std::nearbyint(value); }

std::string size_text(uint64_t height, uint64_t width) {
  return std::to_string(width) + " x " + std::to_string(height);
}

int64_t crop_begin(CropRule rule, int64_t picture, int64_t crop) {
  const int64_t spare = picture - crop;
  const auto floor_half = [](int64_t n) { return n >= 0 ? n / 2 : -((-n + 1) / 2); };
  switch (rule) {
    case CropRule::none:
      return 0;
    case CropRule::floor:
      return floor_half(spare);
    case CropRule::toward_zero:
      return spare / 2;
    case CropRule::half_even:
      if (spare < 0) return -(-spare / 2);
      return static_cast<int64_t>(round_half_even(static_cast<double>(spare) / 2.0));
  }
  return 0;
}

uint32_t checked_side(double side, const std::string& name, uint32_t height, uint32_t width) {
  if (side >= 1 && side <= largest_side) return static_cast<uint32_t>(side);
  char found[32];
  std::snprintf(found, sizeof found, "%.0f", side);
  throw Error(ErrorCode::failed, name + ": found " + size_text(height, width) +
                                     " pixels, which would be resized to a side of " + found +
                                     ", expected at least 1 and at most 536870911");
}

uint32_t fill_of(const Preprocess& p) {
  return 0xff000000u | p.fill[0] | uint32_t{p.fill[1]} << 8 | uint32_t{p.fill[2]} << 16;
}

PreparedPicture from_taps(PillowTaps columns, PillowTaps rows) {
  PreparedPicture out;
  out.top = rows.source_begin;
  out.left = columns.source_begin;
  out.resample.width = columns.source_end - columns.source_begin;
  out.resample.height = rows.source_end - rows.source_begin;
  out.resample.columns = std::move(columns.taps);
  out.resample.rows = std::move(rows.taps);
  return out;
}

// Line i becomes what line i + by was.
void move(ResampleTaps& taps, int64_t by) {
  const auto count = static_cast<int64_t>(taps.lines.size());
  std::vector<ResampleTaps::Line> lines(taps.lines.size());
  for (int64_t i = std::max<int64_t>(0, -by); i < std::min(count, count - by); ++i)
    lines[static_cast<size_t>(i)] = taps.lines[static_cast<size_t>(i + by)];
  taps.lines = std::move(lines);
  const int64_t begin = std::clamp<int64_t>(taps.begin - by, 0, count),
                end = std::clamp<int64_t>(taps.end - by, begin, count);
  taps.begin = static_cast<uint32_t>(begin);
  taps.end = static_cast<uint32_t>(end);
}

// ---- profiles --------------------------------------------------------------------------------------

Preprocess hugging_face(uint64_t height, uint64_t width) {
  Preprocess p;
  p.resize = ResizeRule::stretch;
  p.resize_height = height;
  p.resize_width = width;
  p.scale = ScaleRule::factor;
  p.mean = p.std = half;
  p.exif = true;
  return p;
}

// A resize to 256 for a crop of 224, in proportion for other sizes.
uint64_t before_crop(uint64_t size) { return size * 256 / 224; }

void crop_to(Preprocess& p, CropRule rule, uint64_t height, uint64_t width) {
  p.crop = rule;
  p.crop_height = height;
  p.crop_width = width;
}

void short_side(Preprocess& p, uint64_t size) {
  p.resize = ResizeRule::short_side;
  p.resize_height = p.resize_width = size;
}

Preprocess make_timm(uint64_t height, uint64_t width) {
  Preprocess p;
  p.crop_pct = 0.9;
  crop_to(p, CropRule::half_even, height, width);
  p.resize = height == width ? ResizeRule::short_side : ResizeRule::cover;
  p.mean = p.std = half;
  return p.with_size(height, width);
}

Preprocess make_hf(uint64_t height, uint64_t width) {
  Preprocess p = hugging_face(height, width);
  p.filter = Filter::bilinear;
  return p;
}

Preprocess make_hf_deit(uint64_t height, uint64_t width) {
  Preprocess p = hugging_face(before_crop(height), before_crop(width));
  crop_to(p, CropRule::floor, height, width);
  p.mean = imagenet_mean;
  p.std = imagenet_std;
  return p;
}

Preprocess make_hf_dinov2(uint64_t height, uint64_t width) {
  Preprocess p = make_hf_deit(height, width);
  short_side(p, before_crop(std::max(height, width)));
  p.converts_rgb = true;
  return p;
}

Preprocess make_hf_dinov3(uint64_t height, uint64_t width) {
  Preprocess p = make_hf(height, width);
  p.mean = imagenet_mean;
  p.std = imagenet_std;
  return p;
}

Preprocess make_torchvision(uint64_t height, uint64_t width) {
  Preprocess p;
  short_side(p, before_crop(std::max(height, width)));
  p.filter = Filter::bilinear;
  crop_to(p, CropRule::half_even, height, width);
  p.mean = imagenet_mean;
  p.std = imagenet_std;
  return p;
}

Preprocess make_clip(uint64_t height, uint64_t width) {
  Preprocess p = hugging_face(height, width);
  short_side(p, std::max(height, width));
  crop_to(p, CropRule::floor, height, width);
  p.mean = clip_mean;
  p.std = clip_std;
  p.converts_rgb = true;
  return p;
}

Preprocess make_siglip(uint64_t height, uint64_t width) {
  Preprocess p = hugging_face(height, width);
  p.converts_rgb = true;
  return p;
}

// As SigLIP 2's processor has it in transformers.
Preprocess make_naflex(uint64_t height, uint64_t width) {
  Preprocess p = make_hf(height, width);
  p.kept_shape = KeptShape{};
  return p;
}

// Resize and ToTensor(), as scripts for small grey pictures have it.
Preprocess make_grey(uint64_t height, uint64_t width) {
  Preprocess p;
  p.resize = ResizeRule::stretch;
  p.resize_height = height;
  p.resize_width = width;
  p.filter = Filter::bilinear;
  p.normalize = false;
  return p;
}

struct Profile {
  std::string_view name;
  Preprocess (*make)(uint64_t height, uint64_t width);
  bool fast = false;  // is there on PyTorch, too
};
constexpr std::array<Profile, 10> profiles{{{"timm", make_timm},
                                            {"hf", make_hf, true},
                                            {"torchvision", make_torchvision},
                                            {"clip", make_clip, true},
                                            {"siglip", make_siglip, true},
                                            {"naflex", make_naflex, true},
                                            {"hf-deit", make_hf_deit, true},
                                            {"hf-dinov2", make_hf_dinov2, true},
                                            {"hf-dinov3", make_hf_dinov3, true},
                                            {"grey", make_grey}}};
constexpr std::string_view fast_end = "-fast";

// The number for this channel; one that stands for all of them may.
double of_channel(const std::vector<double>& numbers, uint64_t channel, uint64_t channels,
                  const std::string& profile) {
  if (numbers.size() == channels) return numbers[channel];
  const bool same = std::ranges::all_of(numbers, [&](double number) { return number == numbers.front(); });
  if (!numbers.empty() && same) return numbers.front();
  throw Error(ErrorCode::bad_file, profile + ": found mean and std of " + std::to_string(numbers.size()) +
                                       " channels, expected the model's " + std::to_string(channels));
}

}  // namespace

bool Preprocess::operator==(const Preprocess& other) const {
  const auto fields = [](const Preprocess& p) {
    return std::tie(p.resize, p.resize_height, p.resize_width, p.filter, p.crop_pct, p.crop, p.crop_height,
                    p.crop_width, p.fill, p.scale, p.factor, p.normalize, p.mean, p.std, p.resampler,
                    p.kept_shape, p.exif, p.converts_rgb);
  };
  return fields(*this) == fields(other);
}

Preprocess cover_and_crop(uint64_t height, uint64_t width, std::vector<double> mean,
                          std::vector<double> std) {
  Preprocess p;
  p.profile = "the training";
  p.resize = ResizeRule::cover;
  p.resize_height = height;
  p.resize_width = width;
  crop_to(p, CropRule::half_even, height, width);
  p.mean = std::move(mean);
  p.std = std::move(std);
  return p;
}

Preprocess profile_named(std::string_view name, uint64_t height, uint64_t width) {
  const bool fast = name.ends_with(fast_end);
  const std::string_view base = fast ? name.substr(0, name.size() - fast_end.size()) : name;
  for (const Profile& profile : profiles) {
    if (profile.name != base || (fast && !profile.fast)) continue;
    Preprocess made = profile.make(height, width);
    if (fast) made = made.on_torch();
    made.profile = "profile " + std::string(name);
    made.validate(made.profile);
    return made;
  }
  throw Error(ErrorCode::usage,
              "--profile: found '" + std::string(name) + "', expected one of " + profile_names());
}

std::string profile_names() {
  std::string names;
  for (const Profile& profile : profiles) names += (names.empty() ? "" : ", ") + std::string(profile.name);
  for (const Profile& profile : profiles) {
    if (profile.fast) names += ", " + std::string(profile.name) + std::string(fast_end);
  }
  return names;
}

Preprocess Preprocess::on_torch() const {
  if ((resize != ResizeRule::none && resize != ResizeRule::stretch && resize != ResizeRule::short_side) ||
      crop == CropRule::half_even || scale == ScaleRule::divide_255) {
    throw Error(ErrorCode::usage, profile + ": this is not what a processor of transformers does (" +
                                      to_string() + "), so there is none of it on PyTorch");
  }
  Preprocess out = *this;
  out.resampler = Resampler::torch;
  if (crop == CropRule::floor) out.crop = CropRule::toward_zero;
  if (scale == ScaleRule::factor) out.scale = ScaleRule::fused;
  out.validate(profile);
  return out;
}

void Preprocess::validate(const std::string& origin) const {
  const auto fail = [&](const std::string& what) { throw Error(ErrorCode::bad_file, origin + ": " + what); };
  if (resampler == Resampler::torch && resize != ResizeRule::none && filter != Filter::bilinear &&
      filter != Filter::bicubic) {
    fail("found the filter " + std::string(name_of(filter)) +
         " for a processor on PyTorch, expected bilinear or bicubic");
  }
  if (scale == ScaleRule::fused && !(std::isfinite(factor) && static_cast<float>(factor) != 0)) {
    fail("found a factor of " + std::to_string(factor) + ", expected a finite number other than zero");
  }
  if (crop == CropRule::none && resize != ResizeRule::stretch) {
    fail(
        "found neither a resize to a fixed height and width nor a crop, expected one, "
        "as a model takes pictures of one size");
  }
  constexpr uint64_t limit = 1 << 14;
  const auto check = [&](const char* what, uint64_t h, uint64_t w) {
    if (h < 1 || w < 1 || h > limit || w > limit) {
      fail(std::string("found ") + what + " of " + size_text(h, w) + " pixels, expected sides of 1 to " +
           std::to_string(limit));
    }
  };
  if (kept_shape) {
    if (resize != ResizeRule::stretch || crop != CropRule::none)
      fail("found pictures that keep their shape and are cropped, or not resized, expected a resize alone");
    if (kept_shape->patch < 1 || kept_shape->most_patches < 1 || kept_shape->patch > limit ||
        kept_shape->most_patches > limit / kept_shape->patch) {
      fail("found up to " + std::to_string(kept_shape->most_patches) + " patches of " +
           std::to_string(kept_shape->patch) +
           " pixels, expected at least one, and together sides of up to " + std::to_string(limit));
    }
  }
  if (resize != ResizeRule::none) check("a resize", resize_height, resize_width);
  if (crop != CropRule::none) check("a crop", crop_height, crop_width);
  if (!normalize) return;
  if (mean.empty() || std.empty()) fail("found no mean or no std, expected both to normalise with");
  for (const double number : mean) {
    if (!std::isfinite(number)) fail("found a mean that is not finite");
  }
  for (const double number : std) {
    if (!std::isfinite(number) || static_cast<float>(number) == 0)
      fail("found a std of " + std::to_string(number) + ", expected a finite number other than zero");
  }
}

Preprocess Preprocess::with_size(uint64_t height, uint64_t width) const {
  Preprocess out = *this;
  out.kept_shape.reset();
  if (crop == CropRule::none) {
    out.resize_height = height;
    out.resize_width = width;
    return out;
  }
  out.crop_height = height;
  out.crop_width = width;
  if (crop_pct > 0) {
    const auto scaled = [&](uint64_t size) {
      return static_cast<uint64_t>(std::floor(static_cast<double>(size) / crop_pct));
    };
    out.resize_height = scaled(height);
    out.resize_width = scaled(width);
    // timm's own choice between the two.
    if (resize == ResizeRule::short_side || resize == ResizeRule::cover) {
      out.resize = out.resize_height == out.resize_width ? ResizeRule::short_side : ResizeRule::cover;
    }
  } else if (resize == ResizeRule::short_side) {
    out.resize_height = out.resize_width =
        std::max(resize_height * height / crop_height, resize_width * width / crop_width);
  } else if (resize != ResizeRule::none) {
    out.resize_height = resize_height * height / crop_height;
    out.resize_width = resize_width * width / crop_width;
  }
  return out;
}

Preprocess Preprocess::of_picture(uint64_t height, uint64_t width) const {
  if (!kept_shape) return *this;
  const auto patch = static_cast<double>(kept_shape->patch);
  // Sides in patches at this scale, which both are rounded up to.
  const auto patches = [&](double by, uint64_t side) {
    return std::max(std::ceil(static_cast<double>(side) * by / patch), 1.0);
  };
  // Found as the library finds it: to the same factor, rounding and all.
  constexpr double precision = 1e-5;
  double least = precision / 10, most = 100;
  while (most - least >= precision) {
    const double middle = (least + most) / 2;
    const bool fits =
        patches(middle, height) * patches(middle, width) <= static_cast<double>(kept_shape->most_patches);
    (fits ? least : most) = middle;
  }
  const auto side = [&](uint64_t of) {
    return static_cast<uint64_t>(patches(least, of)) * kept_shape->patch;
  };
  return with_size(side(height), side(width));
}

std::vector<float> Preprocess::values(uint64_t channels) const {
  std::vector<float> table;
  for (uint64_t c = 0; c < channels; ++c) {
    for (int byte = 0; byte < 256; ++byte) {
      auto value = static_cast<float>(byte);
      if (scale == ScaleRule::divide_255) value /= 255.0f;
      if (scale == ScaleRule::factor) value = static_cast<float>(byte * factor);
      if (scale == ScaleRule::fused && !normalize) value *= static_cast<float>(factor);
      if (normalize) {
        const float inverse = scale == ScaleRule::fused ? static_cast<float>(1.0 / factor) : 1.0f;
        value -= static_cast<float>(of_channel(mean, c, channels, profile)) * inverse;
        value /= static_cast<float>(of_channel(std, c, channels, profile)) * inverse;
      }
      table.push_back(value);
    }
  }
  return table;
}

std::string Preprocess::to_string() const {
  std::string text;
  const std::string to = size_text(resize_height, resize_width);
  switch (resize) {
    case ResizeRule::none:
      break;
    case ResizeRule::stretch:
      text = "resize to " + to;
      break;
    case ResizeRule::short_side:
      text = "resize the short side to " + std::to_string(resize_height);
      break;
    case ResizeRule::cover:
      text = "resize to cover " + to;
      break;
    case ResizeRule::contain:
      text = "resize to fit into " + to;
      break;
  }
  if (kept_shape) {
    text = "resize to up to " + std::to_string(kept_shape->most_patches) + " whole patches of " +
           size_text(kept_shape->patch, kept_shape->patch) + " in the picture's shape";
  }
  if (resize != ResizeRule::none) {
    text += " (" + std::string(name_of(filter)) + (resampler == Resampler::torch ? ", as PyTorch does" : "") +
            ")";
  }
  if (crop != CropRule::none)
    text += (text.empty() ? "" : ", ") + ("crop " + size_text(crop_height, crop_width));
  return text;
}

PictureGeometry picture_geometry(const Preprocess& p, uint32_t height, uint32_t width,
                                 const std::string& name) {
  double h = height, w = width;
  const double to_h = static_cast<double>(p.resize_height), to_w = static_cast<double>(p.resize_width);
  switch (p.resize) {
    case ResizeRule::none:
      break;
    case ResizeRule::stretch:
      h = to_h;
      w = to_w;
      break;
    case ResizeRule::short_side: {
      // size * long / short in whole numbers first, as Python computes it.
      const double longer = std::floor(to_h * std::max(h, w) / std::min(h, w));
      const bool upright = w <= h;
      h = upright ? longer : to_h;
      w = upright ? to_h : longer;
      break;
    }
    case ResizeRule::cover:
    case ResizeRule::contain: {
      const double ratio =
          p.resize == ResizeRule::cover ? std::min(h / to_h, w / to_w) : std::max(h / to_h, w / to_w);
      h = round_half_even(h / ratio);
      w = round_half_even(w / ratio);
      break;
    }
  }
  PictureGeometry geometry;
  geometry.resized_height = checked_side(h, name, height, width);
  geometry.resized_width = checked_side(w, name, height, width);
  geometry.top = crop_begin(p.crop, geometry.resized_height, static_cast<int64_t>(p.height()));
  geometry.left = crop_begin(p.crop, geometry.resized_width, static_cast<int64_t>(p.width()));
  return geometry;
}

PreparedPicture prepare_picture(const Preprocess& p, uint32_t height, uint32_t width,
                                const std::string& name) {
  const PictureGeometry geometry = picture_geometry(p, height, width, name);
  PreparedPicture out = from_taps(pillow_taps(p.filter, width, geometry.resized_width, geometry.left,
                                              static_cast<uint32_t>(p.width()), p.resampler),
                                  pillow_taps(p.filter, height, geometry.resized_height, geometry.top,
                                              static_cast<uint32_t>(p.height()), p.resampler));
  out.resample.fill = fill_of(p);
  return out;
}

PreparedPicture prepare_box(const PictureBox& box, Filter filter, uint32_t height, uint32_t width) {
  PreparedPicture out = from_taps(pillow_taps(filter, box.width, width, 0, width),
                                  pillow_taps(filter, box.height, height, 0, height));
  out.top += box.top;
  out.left += box.left;
  return out;
}

PreparedPicture placed(PreparedPicture prepared, const CropPlacement& placement) {
  move(prepared.resample.rows, placement.down);
  move(prepared.resample.columns, placement.right);
  ResampleTaps& columns = prepared.resample.columns;
  if (placement.mirrored) {
    const auto width = static_cast<uint32_t>(columns.lines.size());
    std::ranges::reverse(columns.lines);
    std::tie(columns.begin, columns.end) = std::pair{width - columns.end, width - columns.begin};
  }
  return prepared;
}

PreparedPicture blank_picture(const Preprocess& p) {
  PreparedPicture out;
  out.resample.columns.lines.resize(p.width());
  out.resample.rows.lines.resize(p.height());
  out.resample.fill = fill_of(p);
  return out;
}

}  // namespace vitrine

#include "train/data/picture_augmentation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <numeric>
#include <span>
#include <string>

#include "train/data/random_streams.h"
#include "train/recipes/random_draws.h"

namespace vitrine {
namespace {

using Kind = PictureOperationKind;
using Operations = std::vector<PictureOperation>;

double radians(double degrees) { return degrees * (std::numbers::pi / 180.0); }

// As Python's round(x, 15).
double to_fifteen_digits(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.15f", value);
  return std::strtod(text, nullptr);
}

struct Canvas {
  uint32_t width, height, fill;
};

// Pillow's Image.rotate(), which turns against the clock; nothing where it copies.
std::optional<AffineMatrix> rotation(double degrees, const Canvas& canvas) {
  double angle = std::fmod(degrees, 360.0);
  if (angle < 0) angle += 360.0;
  if (angle == 0) return std::nullopt;
  angle = -radians(angle);
  const double x = canvas.width / 2.0, y = canvas.height / 2.0;
  const double c = to_fifteen_digits(std::cos(angle)), s = to_fifteen_digits(std::sin(angle)),
               minus_s = to_fifteen_digits(-std::sin(angle));
  AffineMatrix m{c, s, 0, minus_s, c, 0};
  m[2] = c * -x + s * -y + 0.0;
  m[5] = minus_s * -x + c * -y + 0.0;
  m[2] += x;
  m[5] += y;
  return m;
}

// ---- RandAugment -----------------------------------------------------------------------------------

enum class RandKind : uint8_t {
  auto_contrast,
  equalize,
  invert,
  rotate,
  posterize,
  solarize,
  solarize_add,
  color,
  contrast,
  brightness,
  sharpness,
  shear_x,
  shear_y,
  translate_x,
  translate_y
};
constexpr uint32_t rand_kinds = 15;

struct Weighted {
  RandKind kind;
  double weight;
};
// timm's, which add up to 10.
constexpr Weighted rand_weights[] = {
    {RandKind::rotate, 3},          {RandKind::shear_x, 2},          {RandKind::shear_y, 2},
    {RandKind::translate_x, 1},     {RandKind::translate_y, 1},      {RandKind::color, 0.25},
    {RandKind::sharpness, 0.25},    {RandKind::auto_contrast, 0.25}, {RandKind::solarize, 0.05},
    {RandKind::solarize_add, 0.05}, {RandKind::contrast, 0.05},      {RandKind::brightness, 0.05},
    {RandKind::equalize, 0.05},     {RandKind::posterize, 0.05},     {RandKind::invert, 0.05}};

uint32_t chosen(double at, uint32_t count) { return std::min(static_cast<uint32_t>(at * count), count - 1); }

// One after the other, none twice.
std::vector<RandKind> weighted_kinds(uint64_t count, const AugmentationDraws& draws) {
  std::vector<Weighted> left(std::begin(rand_weights), std::end(rand_weights));
  std::vector<RandKind> result;
  while (result.size() < count) {
    const double all = std::accumulate(left.begin(), left.end(), 0.0,
                                       [](double sum, const Weighted& one) { return sum + one.weight; });
    double at = draws.uniform() * all;
    auto found = left.begin();
    while (at >= found->weight && found + 1 != left.end()) at -= (found++)->weight;
    result.push_back(found->kind);
    left.erase(found);
  }
  return result;
}

std::vector<RandKind> kinds_of(const RandAugment& rand, const AugmentationDraws& draws) {
  if (rand.weighted) return weighted_kinds(rand.num_layers, draws);
  std::vector<RandKind> result;
  while (result.size() < rand.num_layers)
    result.push_back(static_cast<RandKind>(chosen(draws.uniform(), rand_kinds)));
  return result;
}

// One operation of so much magnitude, on timm's scale of ten.
class RandOperation {
 public:
  RandOperation(const RandAugment& rand, double magnitude, const Canvas& canvas,
                const AugmentationDraws& draws)
      : rand_(rand), level_(magnitude / 10.0), canvas_(canvas), draws_(draws) {}

  PictureOperation of(RandKind kind) const {
    switch (kind) {
      case RandKind::auto_contrast:
        return {.kind = Kind::autocontrast};
      case RandKind::equalize:
        return {.kind = Kind::equalize};
      case RandKind::invert:
        return {.kind = Kind::invert};
      case RandKind::posterize:
        return posterized();
      case RandKind::solarize: {
        const auto start = static_cast<uint32_t>(std::min(256, static_cast<int>(level_ * 256)));
        return {.kind = Kind::solarize, .number = rand_.increasing ? 256 - start : start};
      }
      case RandKind::solarize_add:
        return {.kind = Kind::solarize_add,
                .number = static_cast<uint32_t>(std::min(128, static_cast<int>(level_ * 110)))};
      case RandKind::color:
        return {.kind = Kind::color, .factor = factor()};
      case RandKind::contrast:
        return {.kind = Kind::contrast, .factor = factor()};
      case RandKind::brightness:
        return {.kind = Kind::brightness, .factor = factor()};
      case RandKind::sharpness:
        return {.kind = Kind::sharpness, .factor = factor()};
      case RandKind::rotate: {
        const double degrees = either_way(level_ * 30.0);
        return moved(rotation(degrees, canvas_));
      }
      case RandKind::shear_x:
        return moved(AffineMatrix{1, either_way(level_ * 0.3), 0, 0, 1, 0});
      case RandKind::shear_y:
        return moved(AffineMatrix{1, 0, 0, either_way(level_ * 0.3), 1, 0});
      case RandKind::translate_x:
        return moved(AffineMatrix{1, 0, either_way(level_ * 0.45) * canvas_.width, 0, 1, 0});
      case RandKind::translate_y:
        return moved(AffineMatrix{1, 0, 0, 0, 1, either_way(level_ * 0.45) * canvas_.height});
    }
    return {};
  }

 private:
  double either_way(double value) const { return draws_.uniform() > 0.5 ? -value : value; }

  double factor() const {
    if (!rand_.increasing) return level_ * 1.8 + 0.1;
    return std::max(0.1, 1.0 + either_way(level_ * 0.9));
  }

  // Of no bits black is left, as Pillow made it when timm was written.
  PictureOperation posterized() const {
    const int level = static_cast<int>(level_ * 4), bits = rand_.increasing ? 4 - level : level;
    if (bits >= 8) return {};
    return {.kind = Kind::posterize, .number = static_cast<uint32_t>(std::max(bits, 0))};
  }

  // The filter is drawn also where nothing moves.
  PictureOperation moved(const std::optional<AffineMatrix>& matrix) const {
    bool cubic = rand_.interpolation == MoveFilter::bicubic;
    if (rand_.interpolation == MoveFilter::random) cubic = chosen(draws_.uniform(), 2) == 1;
    if (!matrix) return {};
    return {.kind = cubic ? Kind::bicubic : Kind::bilinear, .matrix = *matrix, .fill = canvas_.fill};
  }

  const RandAugment& rand_;
  double level_;
  const Canvas& canvas_;
  const AugmentationDraws& draws_;
};

double drawn_magnitude(const RandAugment& rand, const AugmentationDraws& draws) {
  double magnitude = rand.magnitude;
  if (rand.magnitude_std > 100) {
    magnitude = magnitude * draws.uniform();
  } else if (rand.magnitude_std > 0) {
    magnitude = magnitude + draws.normal() * rand.magnitude_std;
  }
  return std::clamp(magnitude, 0.0, static_cast<double>(rand.magnitude_max));
}

void append(const RandAugment& rand, const Canvas& canvas, const AugmentationDraws& draws, Operations& to) {
  for (const RandKind kind : kinds_of(rand, draws)) {
    if (rand.prob < 1 && draws.uniform() > rand.prob) continue;
    const double magnitude = drawn_magnitude(rand, draws);
    to.push_back(RandOperation(rand, magnitude, canvas, draws).of(kind));
  }
}

// ---- TrivialAugment --------------------------------------------------------------------------------

enum class TrivialKind : uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  auto_contrast,
  equalize
};
constexpr uint32_t trivial_kinds = 14, trivial_bins = 31;

// torch.linspace(low, high, 31)[bin]: floats from both ends, each rounded once, as processors with
// multiply-adds have it.
double linspace(float low, float high, uint32_t bin) {
  const double step = (high - low) / static_cast<float>(trivial_bins - 1);
  if (bin < trivial_bins / 2) return static_cast<float>(low + step * bin);
  return static_cast<float>(high - step * (trivial_bins - 1 - bin));
}

PictureOperation moved(const std::optional<AffineMatrix>& matrix) {
  if (!matrix) return {};
  return {.kind = Kind::nearest, .matrix = *matrix};
}

PictureOperation trivial_operation(TrivialKind kind, const Canvas& canvas, const AugmentationDraws& draws) {
  const auto bin = [&] { return chosen(draws.uniform(), trivial_bins); };
  // A magnitude of one sign or the other.
  const auto magnitude = [&](float most) {
    const double value = linspace(0, most, bin());
    return chosen(draws.uniform(), 2) == 1 ? -value : value;
  };
  // What a shear by the arc's tangent comes to.
  const auto slant = [](double value) {
    return std::tan(radians(std::atan(value) * (180.0 / std::numbers::pi)));
  };
  switch (kind) {
    case TrivialKind::identity:
      return {};
    case TrivialKind::shear_x:
      return moved(AffineMatrix{1, slant(magnitude(0.99f)), 0, 0, 1, 0});
    case TrivialKind::shear_y:
      return moved(AffineMatrix{1, 0, 0, slant(magnitude(0.99f)), 1, 0});
    case TrivialKind::translate_x:
      return moved(AffineMatrix{1, 0, -std::trunc(magnitude(32)), 0, 1, 0});
    case TrivialKind::translate_y:
      return moved(AffineMatrix{1, 0, 0, 0, 1, -std::trunc(magnitude(32))});
    case TrivialKind::rotate:
      return moved(rotation(magnitude(135), canvas));
    case TrivialKind::brightness:
      return {.kind = Kind::brightness, .factor = 1.0 + magnitude(0.99f)};
    case TrivialKind::color:
      return {.kind = Kind::color, .factor = 1.0 + magnitude(0.99f)};
    case TrivialKind::contrast:
      return {.kind = Kind::contrast, .factor = 1.0 + magnitude(0.99f)};
    case TrivialKind::sharpness:
      return {.kind = Kind::sharpness, .factor = 1.0 + magnitude(0.99f)};
    case TrivialKind::posterize:
      return {.kind = Kind::posterize, .number = 8 - static_cast<uint32_t>(std::nearbyint(bin() / 5.0))};
    case TrivialKind::solarize:
      // Bytes from the threshold on, which is no whole number.
      return {.kind = Kind::solarize, .number = static_cast<uint32_t>(std::ceil(linspace(255, 0, bin())))};
    case TrivialKind::auto_contrast:
      return {.kind = Kind::autocontrast};
    case TrivialKind::equalize:
      return {.kind = Kind::equalize};
  }
  return {};
}

// ---- ColorJitter -----------------------------------------------------------------------------------

constexpr JitterRange unchanged_factor{1, 1}, unchanged_hue{0, 0};

void append(const ColorJitter& jitter, const AugmentationDraws& draws, Operations& to) {
  std::array<uint32_t, 4> order{0, 1, 2, 3};
  for (uint32_t i = 3; i > 0; --i) std::swap(order[i], order[chosen(draws.uniform(), i + 1)]);
  std::array<PictureOperation, 4> each{};
  const auto draw = [&](const JitterRange& range) {
    return range.low + (range.high - range.low) * draws.uniform();
  };
  const auto factor = [&](size_t place, const JitterRange& range, Kind kind) {
    if (range != unchanged_factor) each[place] = {.kind = kind, .factor = draw(range)};
  };
  factor(0, jitter.brightness, Kind::brightness);
  factor(1, jitter.contrast, Kind::contrast);
  factor(2, jitter.saturation, Kind::color);
  if (jitter.hue != unchanged_hue) {
    const int turn = static_cast<int>(draw(jitter.hue) * 255);
    each[3] = {.kind = Kind::hue, .number = static_cast<uint32_t>(turn) & 255};
  }
  for (const uint32_t place : order) to.push_back(each[place]);
}

}  // namespace

uint64_t ColorJitter::operations() const {
  const auto changes = [](const JitterRange& range, const JitterRange& unchanged) {
    return range != unchanged ? uint64_t{1} : uint64_t{0};
  };
  return changes(brightness, unchanged_factor) + changes(contrast, unchanged_factor) +
         changes(saturation, unchanged_factor) + changes(hue, unchanged_hue);
}

uint64_t PictureAugmentation::operations() const {
  return (rand_augment ? rand_augment->num_layers : 0) + (trivial_augment ? 1 : 0) +
         (color_jitter ? color_jitter->operations() : 0);
}

std::vector<PictureOperation> picture_operations(const PictureAugmentation& augmentation, uint32_t width,
                                                 uint32_t height, uint32_t fill,
                                                 const AugmentationDraws& draws) {
  const Canvas canvas{width, height, fill};
  Operations operations;
  if (augmentation.rand_augment) append(*augmentation.rand_augment, canvas, draws, operations);
  if (augmentation.trivial_augment) {
    const auto kind = static_cast<TrivialKind>(chosen(draws.uniform(), trivial_kinds));
    operations.push_back(trivial_operation(kind, canvas, draws));
  }
  if (augmentation.color_jitter) append(*augmentation.color_jitter, draws, operations);
  std::erase_if(operations, [](const PictureOperation& one) { return one.kind == Kind::none; });
  return operations;
}

std::vector<PictureOperation> draw_picture_operations(const PictureAugmentation& augmentation, uint32_t width,
                                                      uint32_t height, uint32_t fill, uint64_t seed,
                                                      uint32_t epoch, uint32_t sample) {
  UniformDraws numbers(stream_for(seed, RandomUse::picture_operations, epoch), sample);
  return picture_operations(
      augmentation, width, height, fill,
      {.uniform = [&] { return numbers.next(); }, .normal = [&] { return normal_quantile(numbers.next()); }});
}

uint32_t fill_of_mean(const std::vector<double>& mean) {
  uint32_t fill = 0xff000000;
  for (uint32_t c = 0; c < 3 && !mean.empty(); ++c) {
    const double value = std::nearbyint(255 * (mean.size() > c ? mean[c] : mean[0]));
    fill |= static_cast<uint32_t>(std::clamp(value, 0.0, 255.0)) << (8 * c);
  }
  return fill;
}

std::vector<uint32_t> operation_words(const std::vector<PictureOperation>& operations, uint64_t count,
                                      uint32_t width, uint32_t height) {
  std::vector<uint32_t> words(count * VITRINE_OPERATION_WORDS);
  for (size_t i = 0; i < operations.size(); ++i)
    write_operation(operations[i], width, height,
                    std::span(words).subspan(i * VITRINE_OPERATION_WORDS, VITRINE_OPERATION_WORDS));
  return words;
}

}  // namespace vitrine

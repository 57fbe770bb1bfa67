#include "train/recipes/mixing.h"

#include <algorithm>
#include <cmath>

#include "runtime/util/portable_math.h"
#include "train/recipes/random_draws.h"

namespace vitrine {
namespace {

// How much of a side is cut, around a place inside of the picture; what lies outside of it is cut off.
struct Cut {
  uint32_t begin, end;
};
Cut cut_of(double part, uint64_t side, UniformDraws& draws) {
  const auto length = static_cast<int64_t>(part * static_cast<double>(side));
  const auto all = static_cast<int64_t>(side), center = draws.whole(0, all - 1);
  return {static_cast<uint32_t>(std::clamp<int64_t>(center - length / 2, 0, all)),
          static_cast<uint32_t>(std::clamp<int64_t>(center + (length + 1) / 2, 0, all))};
}

Box draw_box(const Mixup& mixup, double share, const PictureSides& sides, UniformDraws& draws) {
  if (mixup.cutmix_minmax.empty()) {
    const double part = std::sqrt(1 - share);
    const Cut rows = cut_of(part, sides.height, draws), columns = cut_of(part, sides.width, draws);
    return {rows.begin, rows.end, columns.begin, columns.end};
  }
  const auto length_of = [&](uint64_t side) {
    const auto bound = [&](size_t i) {
      return static_cast<int64_t>(static_cast<double>(side) * mixup.cutmix_minmax[i]);
    };
    return draws.whole(bound(0), std::max(bound(0), bound(1) - 1));
  };
  const int64_t height = length_of(sides.height), width = length_of(sides.width);
  const auto top = static_cast<uint32_t>(draws.whole(0, static_cast<int64_t>(sides.height) - height));
  const auto left = static_cast<uint32_t>(draws.whole(0, static_cast<int64_t>(sides.width) - width));
  return {top, top + static_cast<uint32_t>(height), left, left + static_cast<uint32_t>(width)};
}

// All but the partner.
Mix draw_mix(const Mixup& mixup, const PictureSides& sides, UniformDraws draws) {
  if (draws.next() >= mixup.prob) return {};
  Mix mix;
  mix.cuts = mixup.cuts() && (mixup.mixup_alpha == 0 || draws.next() < mixup.switch_prob);
  const double cutmix_alpha = mixup.cutmix_minmax.empty() ? mixup.cutmix_alpha : 1;
  mix.share = beta_draw(mix.cuts ? cutmix_alpha : mixup.mixup_alpha, draws);
  // As timm keeps it where samples have lambdas of their own.
  if (mixup.mode != MixMode::batch) mix.share = static_cast<double>(static_cast<float>(mix.share));
  if (mix.share == 1) return {};
  if (mix.cuts) {
    mix.box = draw_box(mixup, mix.share, sides, draws);
    mix.share = 1 - static_cast<double>(mix.box.area()) / static_cast<double>(sides.height * sides.width);
  }
  return mix;
}

}  // namespace

std::vector<Mix> draw_mixing(const Mixup& mixup, uint64_t seed, uint64_t pass, uint64_t samples,
                             const PictureSides& sides) {
  const RandomStream stream = stream_for(seed, RandomUse::mixing, static_cast<uint32_t>(pass));
  std::vector<Mix> mixes(samples);
  for (uint64_t i = 0; i < samples; ++i) {
    const uint64_t partner = samples - 1 - i;
    if (partner != i) {
      const uint64_t place = mixup.mode == MixMode::batch  ? 0
                             : mixup.mode == MixMode::pair ? std::min(i, partner)
                                                           : i;
      mixes[i] = draw_mix(mixup, sides, UniformDraws(stream, place));
    }
    mixes[i].partner = static_cast<uint32_t>(partner);
  }
  return mixes;
}

std::vector<Box> draw_erasing(const RandomErasing& e, uint64_t seed, uint64_t pass, uint64_t sample,
                              const PictureSides& sides) {
  UniformDraws draws(stream_for(seed, RandomUse::erasing, static_cast<uint32_t>(pass)), sample);
  if (draws.next() > e.probability) return {};
  const uint64_t count = e.boxes() == e.min_count
                             ? e.min_count
                             : static_cast<uint64_t>(draws.whole(static_cast<int64_t>(e.min_count),
                                                                 static_cast<int64_t>(e.boxes())));
  const auto height = static_cast<int64_t>(sides.height), width = static_cast<int64_t>(sides.width);
  const double area = static_cast<double>(sides.height * sides.width);
  const double low = portable_log(e.min_aspect),
               high = portable_log(e.max_aspect == 0 ? 1 / e.min_aspect : e.max_aspect);
  std::vector<Box> boxes;
  for (uint64_t i = 0; i < count; ++i) {
    constexpr int tries = 10;
    for (int attempt = 0; attempt < tries; ++attempt) {
      const double wanted = draws.between(e.min_area, e.max_area) * area / static_cast<double>(count);
      const double aspect = portable_exp(draws.between(low, high));
      // Half to even, as Python rounds.
      const auto h = static_cast<int64_t>(std::nearbyint(std::sqrt(wanted * aspect)));
      const auto w = static_cast<int64_t>(std::nearbyint(std::sqrt(wanted / aspect)));
      if (w >= width || h >= height) continue;
      const int64_t top = draws.whole(0, height - h), left = draws.whole(0, width - w);
      boxes.push_back({static_cast<uint32_t>(top), static_cast<uint32_t>(top + h),
                       static_cast<uint32_t>(left), static_cast<uint32_t>(left + w)});
      break;
    }
  }
  return boxes;
}

}  // namespace vitrine

// Pillow's resampling filters as whole-number weights, computed in doubles exactly as Pillow does it, and
// PyTorch's, which are the same ones rounded more coarsely.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/ops/pictures/resample_table.h"

namespace vitrine {

enum class Filter : uint8_t { nearest, box, bilinear, hamming, bicubic, lanczos };
std::string_view name_of(Filter filter);
std::optional<Filter> filter_named(std::string_view name);
// Pillow's numbers, which Hugging Face's files use: 0 nearest, 1 lanczos, 2 bilinear, 3 bicubic, 4 box,
// 5 hamming.
std::optional<Filter> filter_numbered(int64_t code);
int64_t number_of(Filter filter);

// Whose resize it is. PyTorch's of bytes with antialias, as torchvision.transforms.v2 calls it on processors
// with AVX2, keeps as many binary digits of each weight as let the largest one of a direction fit into 16
// bits.
enum class Resampler : uint8_t { pillow, torch };
std::string_view name_of(Resampler resampler);

// One direction of a resize from `from` to `to` pixels, of which the window of `window` lines that begins at
// `origin` is wanted (lines before 0 and from `to` on are not there and get the fill). The taps count
// source pixels from source_begin.
struct PillowTaps {
  ResampleTaps taps;
  uint32_t source_begin = 0, source_end = 0;  // the source pixels that have a part in the window
};
PillowTaps pillow_taps(Filter filter, uint32_t from, uint32_t to, int64_t origin, uint32_t window,
                       Resampler resampler = Resampler::pillow);

}  // namespace vitrine

#include "train/digits/digit_colors.h"

#include <array>
#include <cmath>

#include "train/data/random_streams.h"

namespace vitrine {
namespace {

constexpr uint32_t channels = 3;
using Color = std::array<double, channels>;

constexpr double darkest_ink = 0.6, brightest_paper = 0.4, tint_varies = 0.1;

// Of tinted digits: any two differ by 0.2 in a channel at least, which is twice what they vary by.
constexpr std::array<Color, 10> papers{{{0, 0, 0},
                                        {0.4, 0, 0},
                                        {0, 0.4, 0},
                                        {0, 0, 0.4},
                                        {0.4, 0.4, 0},
                                        {0.4, 0, 0.4},
                                        {0, 0.4, 0.4},
                                        {0.4, 0.4, 0.4},
                                        {0.2, 0.2, 0.2},
                                        {0.4, 0.2, 0}}};

// Three words of a block are a color; between `low` and `high`, and as much of the way there from `plain` as
// the set is distorted.
Color draw_color(const Philox::Block& words, double low, double high, double plain, double distortion) {
  Color color{};
  for (size_t c = 0; c < channels; ++c) {
    const double drawn = low + (high - low) * uniform_from(words[c]);
    color[c] = plain * (1 - distortion) + drawn * distortion;
  }
  return color;
}

}  // namespace

void color_digit(std::span<const uint8_t> picture, uint32_t size, uint64_t index, uint32_t digit,
                 const DigitColoring& coloring, std::span<uint8_t> colored) {
  const RandomStream stream = stream_for(coloring.seed, RandomUse::digit_colors, coloring.set);
  const auto paper = [&](uint64_t block) {
    const Philox::Block words = stream.block(3 * index + block);
    if (!coloring.tinted) return draw_color(words, 0, brightest_paper, 0, coloring.distortion);
    Color color = papers.at(digit);
    for (size_t c = 0; c < channels; ++c) color[c] += tint_varies * uniform_from(words[c]);
    return color;
  };
  const Color top_left = paper(0), bottom_right = paper(1),
              ink = draw_color(stream.block(3 * index + 2), darkest_ink, 1, 1, coloring.distortion);
  const uint32_t pixels = size * size;
  for (uint32_t y = 0; y < size; ++y) {
    for (uint32_t x = 0; x < size; ++x) {
      const double along = (x + y) / (2.0 * (size - 1)), share = picture[y * size + x] / 255.0;
      for (uint32_t c = 0; c < channels; ++c) {
        const double behind = top_left[c] + (bottom_right[c] - top_left[c]) * along;
        const double value = behind + (ink[c] - behind) * share;
        colored[c * pixels + y * size + x] = static_cast<uint8_t>(std::floor(255 * value + 0.5));
      }
    }
  }
}

}  // namespace vitrine

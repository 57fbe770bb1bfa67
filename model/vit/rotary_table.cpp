#include "model/vit/rotary_table.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "runtime/util/half.h"

namespace vitrine {
namespace {

uint64_t pairs_of(const ViTConfig& c) { return c.head_key_width() / 2; }

std::vector<double> places(const ViTConfig& c, uint64_t count) {
  std::vector<double> along(count);
  const double n = static_cast<double>(count);
  for (uint64_t i = 0; i < count; ++i) {
    const double number = static_cast<double>(i) + c.rotary_offset;
    if (c.rotary_centered) {
      along[i] = 2 * std::numbers::pi * (2 * (number + 0.5) / n - 1);
    } else {
      along[i] = c.rotary_reference ? number / n * static_cast<double>(c.rotary_reference) : number;
    }
  }
  return along;
}

// Of the pairs' numbers and so much.
std::vector<float> periods_from(const ViTConfig& c, double first) {
  const uint64_t half = pairs_of(c) / 2;
  std::vector<float> periods(half);
  for (uint64_t i = 0; i < half; ++i) {
    const double pair = static_cast<double>(i) + first;
    periods[i] = static_cast<float>(std::pow(c.rotary_base, pair / static_cast<double>(half)));
    if (c.rotary_rounded) periods[i] = bf16_to_f32(f32_to_bf16(periods[i]));
  }
  return periods;
}

}  // namespace

Shape rotary_table_shape(const ViTConfig& c) {
  if (c.rotary_learned) return {c.heads, c.patches(), 2, pairs_of(c)};
  return {c.patches() + c.rotary_class, 2, pairs_of(c)};
}

Shape frequencies_shape(const ViTConfig& c) { return {2, c.depth, c.heads, pairs_of(c)}; }

Shape class_angles_shape(const ViTConfig& c) { return {pairs_of(c)}; }

std::vector<float> rotary_periods(const ViTConfig& c) { return periods_from(c, 0); }

std::vector<float> rotary_table(const ViTConfig& c, const LearnedAngles& learned, uint64_t block) {
  const uint64_t pairs = pairs_of(c), half = pairs / 2, heads = c.rotary_learned ? c.heads : 1;
  const std::vector<double> rows = places(c, c.grid_height()), columns = places(c, c.grid_width());
  std::vector<float> periods = periods_from(c, 0);
  const std::vector<float> second_half = periods_from(c, c.rotary_alternating ? 0.5 : 0);
  periods.insert(periods.end(), second_half.begin(), second_half.end());
  std::vector<float> table;
  table.reserve(rotary_table_shape(c).elements());
  std::vector<double> angles(learned.class_token.begin(), learned.class_token.end());
  const auto append = [&] {
    for (const double angle : angles) table.push_back(static_cast<float>(std::cos(angle)));
    for (const double angle : angles) table.push_back(static_cast<float>(std::sin(angle)));
  };
  if (c.rotary_class) append();
  angles.resize(pairs);
  for (uint64_t head = 0; head < heads; ++head) {
    for (const double row : rows) {
      for (const double column : columns) {
        const double first = c.rotary_columns_first ? column : row,
                     second = c.rotary_columns_first ? row : column;
        for (uint64_t pair = 0; pair < pairs; ++pair) {
          if (c.rotary_learned) {
            const uint64_t at = (block * c.heads + head) * pairs + pair, axis = c.depth * c.heads * pairs;
            angles[pair] = first * static_cast<double>(learned.frequencies[at]) +
                           second * static_cast<double>(learned.frequencies[axis + at]);
          } else {
            angles[pair] = (pair < half ? first : second) / static_cast<double>(periods[pair]);
          }
        }
        append();
      }
    }
  }
  return table;
}

}  // namespace vitrine

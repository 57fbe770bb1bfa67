#include "model/vit/relative_table.h"

#include <algorithm>
#include <cmath>

namespace vitrine {
namespace {

double place(const ViTConfig& c, int64_t distance, uint64_t extent) {
  double size = std::abs(static_cast<double>(distance));
  if (c.relative_swin) {
    size = std::log2(1 + 8 * size / static_cast<double>(extent - 1)) / 3;
  } else {
    size = std::log(1 + size);
  }
  return distance < 0 ? -size : size;
}

}  // namespace

uint64_t relative_rows(const ViTConfig& c) {
  return (2 * c.grid_height() - 1) * (2 * c.grid_width() - 1) + 3 * c.prefix_tokens();
}

std::vector<float> relative_table(const ViTConfig& c, const RelativeMlp& mlp) {
  const auto height = static_cast<int64_t>(c.grid_height()), width = static_cast<int64_t>(c.grid_width());
  std::vector<float> table;
  table.reserve(relative_rows(c) * c.heads);
  std::vector<double> hidden(c.relative_hidden);
  for (int64_t down = 1 - height; down < height; ++down) {
    for (int64_t across = 1 - width; across < width; ++across) {
      const double y = place(c, down, c.grid_height()), x = place(c, across, c.grid_width());
      for (size_t i = 0; i < hidden.size(); ++i) {
        hidden[i] = std::max(0.0, static_cast<double>(mlp.fc1[2 * i]) * y +
                                      static_cast<double>(mlp.fc1[2 * i + 1]) * x +
                                      static_cast<double>(mlp.fc1_bias[i]));
      }
      for (size_t head = 0; head < c.heads; ++head) {
        double sum = mlp.fc2_bias.empty() ? 0 : static_cast<double>(mlp.fc2_bias[head]);
        for (size_t i = 0; i < hidden.size(); ++i)
          sum += static_cast<double>(mlp.fc2[head * hidden.size() + i]) * hidden[i];
        table.push_back(static_cast<float>(c.relative_swin ? 16 / (1 + std::exp(-sum)) : sum));
      }
    }
  }
  table.resize(relative_rows(c) * c.heads);
  return table;
}

std::vector<float> resize_relative(std::span<const float> table, uint64_t from, uint64_t to) {
  const size_t width = table.size() / from;
  std::vector<float> out;
  out.reserve(to * width);
  for (uint64_t i = 0; i < to; ++i) {
    const double at = std::max(
        0.0, (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5);
    const uint64_t below = std::min(static_cast<uint64_t>(at), from - 1),
                   above = std::min(below + 1, from - 1);
    const double share = at - static_cast<double>(below);
    for (size_t j = 0; j < width; ++j) {
      out.push_back(static_cast<float>((1 - share) * static_cast<double>(table[below * width + j]) +
                                       share * static_cast<double>(table[above * width + j])));
    }
  }
  return out;
}

}  // namespace vitrine

#include "runtime/check/reference.h"

namespace vitrine::reference {

Values patch_embed(const Values& image, const Shape& image_shape, const Values& weight,
                   const Shape& weight_shape, const Values& bias) {
  const uint64_t images = image_shape[0], channels = image_shape[1], height = image_shape[2],
                 width = image_shape[3];
  const uint64_t dims = weight_shape[0], patch_height = weight_shape[2], patch_width = weight_shape[3];
  Values y;
  for (uint64_t b = 0; b < images; ++b) {
    for (uint64_t py = 0; py < height / patch_height; ++py) {
      for (uint64_t px = 0; px < width / patch_width; ++px) {
        for (uint64_t d = 0; d < dims; ++d) {
          double sum = bias.empty() ? 0.0 : bias[d];
          for (uint64_t c = 0; c < channels; ++c) {
            for (uint64_t dy = 0; dy < patch_height; ++dy) {
              for (uint64_t dx = 0; dx < patch_width; ++dx) {
                const uint64_t row = (b * channels + c) * height + py * patch_height + dy;
                sum += image[row * width + px * patch_width + dx] *
                       weight[((d * channels + c) * patch_height + dy) * patch_width + dx];
              }
            }
          }
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

Values assemble_tokens(const Values& patches, const Shape& patches_shape, const Tokens& tokens) {
  const uint64_t images = patches_shape[0], count = patches_shape[1], dims = patches_shape[2];
  // The tokens before the patches, and for each whether it has a position when the registers have none.
  Values before;
  std::vector<bool> is_register;
  for (const Values* part : {&tokens.class_token, &tokens.distillation_token, &tokens.registers}) {
    before.insert(before.end(), part->begin(), part->end());
    is_register.insert(is_register.end(), part->size() / dims, part == &tokens.registers);
  }
  const uint64_t specials = is_register.size(), registers = tokens.registers.size() / dims;
  const uint64_t positions = tokens.positions.size() / dims;
  Values y;
  for (uint64_t b = 0; b < images; ++b) {
    uint64_t position = 0;
    for (uint64_t token = 0; token < specials + count; ++token) {
      const bool is_patch = token >= specials;
      bool has_position = positions == specials + count;
      if (positions == specials - registers + count) has_position = is_patch || !is_register[token];
      if (positions == count) has_position = is_patch;
      for (uint64_t d = 0; d < dims; ++d) {
        double value =
            is_patch ? patches[(b * count + token - specials) * dims + d] : before[token * dims + d];
        if (has_position) value += tokens.positions[position * dims + d];
        y.push_back(value);
      }
      if (has_position) ++position;
    }
  }
  return y;
}

Values pool(const Values& tokens, const Shape& shape, uint64_t first, uint64_t count) {
  Values y;
  for (uint64_t b = 0; b < shape[0]; ++b) {
    for (uint64_t d = 0; d < shape[2]; ++d) {
      double sum = 0;
      for (uint64_t t = first; t < first + count; ++t) sum += tokens[(b * shape[1] + t) * shape[2] + d];
      y.push_back(sum / static_cast<double>(count));
    }
  }
  return y;
}

Values rotary(const Values& x, const Shape& shape, const Values& table, const Shape& table_shape,
              const Turns& turns) {
  const uint64_t tokens = shape[1], angled = table_shape[-3], pairs = turns.width / 2;
  const uint64_t tables = table_shape.rank() == 4 ? table_shape[0] : 1;
  Values y(shape[0] * tokens * turns.heads * turns.width);
  for (uint64_t row = 0; row < shape[0] * tokens; ++row) {
    for (uint64_t head = 0; head < turns.heads; ++head) {
      const uint64_t token = row % tokens;
      const bool is_turned = head < turns.turned && token >= tokens - angled;
      for (uint64_t pair = 0; pair < pairs; ++pair) {
        const uint64_t low = head * turns.width + (turns.halves ? pair : 2 * pair);
        const uint64_t high = low + (turns.halves ? pairs : 1);
        const double a = x[row * shape[2] + low], b = x[row * shape[2] + high];
        double* to = &y[row * turns.heads * turns.width];
        to[low] = a;
        to[high] = b;
        if (!is_turned) continue;
        const uint64_t at = (head % tables * angled + token - (tokens - angled)) * 2 * pairs + pair;
        const double cosine = table[at], sine = turns.back ? -table[at + pairs] : table[at + pairs];
        to[low] = a * cosine - b * sine;
        to[high] = b * cosine + a * sine;
      }
    }
  }
  return y;
}

}  // namespace vitrine::reference

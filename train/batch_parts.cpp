#include "train/batch_parts.h"

#include <algorithm>

namespace vitrine {

BatchParts parts_of(const TrainConfig& config) {
  const uint64_t number = std::max<uint64_t>(config.parts, 1);
  BatchParts parts{.batch = config.batch_size, .part = (config.batch_size + number - 1) / number};
  parts.pairs = number > 1 && config.recipe.mixup.on();
  if (parts.pairs) parts.part += parts.part % 2;
  return parts;
}

TrainConfig config_of_part(const TrainConfig& config) {
  TrainConfig part = config;
  part.batch_size = parts_of(config).part;
  return part;
}

uint64_t parts_for_devices(const TrainConfig& config) {
  constexpr uint64_t parts_an_update = 4;
  const uint64_t wanted = (parts_an_update + config.accumulation - 1) / config.accumulation;
  return std::min(wanted, config.batch_size);
}

}  // namespace vitrine

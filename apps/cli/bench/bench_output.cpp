#include "apps/cli/bench/bench_output.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "runtime/util/error.h"
#include "runtime/util/philox.h"

namespace vitrine::cli {

void fill_images(std::span<std::byte> bytes, uint64_t seed) {
  const RandomStream stream(seed, 0x696D616765ull);
  for (uint64_t i = 0; (i + 1) * sizeof(float) <= bytes.size(); ++i) {
    const float value = static_cast<float>(normal_quantile(uniform_from(stream.block(i / 4)[i % 4])));
    std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
  }
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

uint64_t checksum_of(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const std::byte b : bytes) hash = (hash ^ static_cast<uint8_t>(b)) * 0x100000001b3ull;
  return hash;
}

std::string checksum_text(uint64_t checksum) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, checksum);
  return text;
}

void require_finite(std::span<const std::byte> output, const std::string& label) {
  uint64_t broken = 0;
  const uint64_t count = output.size() / sizeof(float);
  for (uint64_t i = 0; i < count; ++i) {
    float value;
    std::memcpy(&value, &output[i * sizeof value], sizeof value);
    broken += !std::isfinite(value);
  }
  if (broken == 0) return;
  throw Error(ErrorCode::failed, label + ": found " + std::to_string(broken) + " of " +
                                     std::to_string(count) +
                                     " outputs that are NaN or infinite, expected none");
}

}  // namespace vitrine::cli

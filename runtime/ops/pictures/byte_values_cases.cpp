#include "runtime/check/cases.h"
#include "runtime/ops/pictures/byte_values.h"

namespace vitrine {

using namespace cases;

namespace {

// Every byte value is there where there are enough of them, and the last word is not full where the size is
// odd.
OpCase some_pictures(const std::string& name, const BytePictures& size, uint64_t channels) {
  const HostTensor values = random_tensor({channels, 256}, DType::f32, 1 + channels);
  const uint64_t plane = size.height * size.width, count = size.pictures * channels * plane;
  HostTensor bytes{{ceil_div(count, 4)}, DType::u32, {}};
  for (const double value : random_tensor(bytes.shape, DType::u32, 2 + channels, 0, 0xffffffff).values)
    bytes.values.push_back(value);
  std::vector<double> expected;
  for (uint64_t i = 0; i < count; ++i) {
    const auto word = static_cast<uint32_t>(bytes.values[i / 4]);
    expected.push_back(values.values[i / plane % channels * 256 + (word >> (8 * (i % 4)) & 255)]);
  }
  return exactly(one_result(name, {{bytes}, {values}}, std::move(expected),
                            [size](Graph& graph, std::span<const ValueId> ids) {
                              return byte_values(graph, "y", ids[0], ids[1], size);
                            }));
}

}  // namespace

std::vector<OpCase> byte_values_cases() {
  return {some_pictures("3 channels of 5 x 7", {2, 5, 7}, 3), some_pictures("grey, 28 x 28", {3, 28, 28}, 1)};
}

}  // namespace vitrine

#include "runtime/check/sample.h"

#include <algorithm>
#include <utility>

#include "runtime/check/op_case.h"

namespace vitrine::reference {

std::vector<uint64_t> some_rows(uint64_t rows) {
  constexpr uint64_t most = 8;
  std::vector<uint64_t> picked;
  for (uint64_t i = 0; i < std::min(rows, most); ++i)
    picked.push_back(rows <= most ? i : (rows - 1) * i * i / ((most - 1) * (most - 1)));
  picked.erase(std::unique(picked.begin(), picked.end()), picked.end());
  return picked;
}

Sample rows_sample(const LoneNode& node, const std::vector<uint64_t>& rows, uint64_t width, Values expected) {
  Sample sample{.expected = std::move(expected),
                .tolerance = usual_tolerance(node.graph()->value(node.node().outputs[0]).dtype)};
  for (const uint64_t row : rows) {
    for (uint64_t i = 0; i < width; ++i) sample.elements.push_back(row * width + i);
  }
  return sample;
}

Values rows_of(const LoneNode& node, size_t input, const std::vector<uint64_t>& rows, uint64_t width) {
  Values values;
  for (const uint64_t row : rows) {
    for (uint64_t i = 0; i < width; ++i) values.push_back(node.value(input, row * width + i));
  }
  return values;
}

Values optional_values(const LoneNode& node, size_t input) {
  return node.has_input(input) ? node.values(input) : Values();
}

std::optional<std::string> fault_in(const Sample& sample, DType dtype, std::span<const std::byte> output) {
  std::vector<double> out;
  for (const uint64_t element : sample.elements) {
    const auto bytes = output.subspan(element * size_of(dtype), size_of(dtype));
    out.push_back(decode(bytes, dtype)[0]);
  }
  OpCase limits;
  limits.tolerance = sample.tolerance;
  return difference(limits, dtype, out, sample.expected);
}

}  // namespace vitrine::reference

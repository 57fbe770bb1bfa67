// Kernels of a test's own, one for each arrangement of cooperative matrices that a device can run, whatever
// the product would choose for its sizes.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ops/products/matmul_kernels.h"

namespace vitrine::test {

template <auto shapes_of, auto refuse_kernel, size_t index>
std::optional<std::string> refuse_arrangement(const LowerContext& context) {
  if (auto reason = refuse_kernel(context)) return reason;
  if (shapes_of(context.device()).size() <= index) return "the device takes fewer arrangements";
  return std::nullopt;
}
template <auto shapes_of, auto lower_as, size_t index>
Lowered lower_arrangement(const LowerContext& context) {
  return lower_as(context, shapes_of(context.device())[index]);
}
template <size_t index>
constexpr std::array<char, 2> arrangement_name{'0' + index / 10, '0' + index % 10};
template <auto shapes_of, auto refuse_kernel, auto lower_as, size_t... indices>
constexpr auto arrangement_kernels(std::index_sequence<indices...>) {
  return std::array{KernelDef{{arrangement_name<indices>.data(), 2},
                              Target::matrix_units,
                              refuse_arrangement<shapes_of, refuse_kernel, indices>,
                              no_preference,
                              lower_arrangement<shapes_of, lower_as, indices>}...};
}

}  // namespace vitrine::test

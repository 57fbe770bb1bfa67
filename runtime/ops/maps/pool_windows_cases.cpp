#include "runtime/check/cases.h"
#include "runtime/ops/maps/pool_windows.h"
#include "runtime/ops/maps/reference_maps.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> pool_windows_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t channels : {5, 12}) {
      const HostTensor x = random_tensor({2, 77, channels}, dtype, 1);
      const Windows windows = padded_windows(7, 11, 3, 2, 1);
      for (const bool mean : {false, true}) {
        cases.push_back(
            one_result((mean ? "the mean of " : "the largest of ") + std::to_string(channels) + " channels",
                       {{x}}, reference::pool_windows(x.values, windows, channels, mean),
                       [=](Graph& graph, std::span<const ValueId> ids) {
                         return mean ? mean_of_windows(graph, "y", ids[0], windows)
                                     : largest_of_windows(graph, "y", ids[0], windows);
                       }));
      }
    }
  }
  return cases;
}

}  // namespace vitrine

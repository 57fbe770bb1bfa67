#include "runtime/check/cases.h"
#include "runtime/ops/maps/neighbourhoods.h"
#include "runtime/ops/maps/reference_maps.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> neighbourhoods_cases() {
  std::vector<OpCase> cases;
  for (const DType in : dtypes) {
    for (const DType out : dtypes) {
      for (const uint64_t channels : {3, 8}) {
        const bool planar = channels == 3;
        const Windows windows = same_windows(7, 10, 3, 2);
        const Shape shape = planar ? Shape{2, 3, 7, 10} : Shape{2, 70, channels};
        const HostTensor x = random_tensor(shape, in, 1);
        OpCase op_case =
            one_result(std::to_string(channels) + " channels to " + std::string(name_of(out)), {{x}},
                       reference::neighbourhoods(x.values, windows, channels, planar),
                       [=](Graph& graph, std::span<const ValueId> ids) {
                         return neighbourhoods(graph, "y", ids[0], windows, {.planar = planar, .out = out});
                       });
        op_case.exact = in == out || out == DType::f32;  // drivers round to f16 as they like
        cases.push_back(std::move(op_case));
      }
    }
  }
  return cases;
}

}  // namespace vitrine

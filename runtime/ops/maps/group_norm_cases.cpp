#include "runtime/check/cases.h"
#include "runtime/ops/maps/group_norm.h"
#include "runtime/ops/maps/reference_maps.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> group_norm_cases() {
  std::vector<OpCase> cases;
  for (const DType in : dtypes) {
    for (const DType out : dtypes) {
      const Shape shape{2, 131, 15};
      const HostTensor x = random_tensor(shape, in, 1, -1, 3), gamma = random_tensor({15}, DType::f32, 2),
                       beta = random_tensor({15}, DType::f32, 3);
      for (const Activation activation : {Activation::none, Activation::relu}) {
        cases.push_back(
            one_result("groups of 3, " + std::string(name_of(activation)),
                       {{x}, {gamma, Role::constant}, {beta, Role::constant}},
                       reference::group_norm(x.values, shape, 5, gamma.values, beta.values, 1e-5, activation),
                       [=](Graph& graph, std::span<const ValueId> ids) {
                         return group_norm(graph, "y", ids[0], ids[1], ids[2],
                                           {.groups = 5, .activation = activation, .out = out});
                       }));
      }
    }
  }
  return cases;
}

}  // namespace vitrine

#include "runtime/check/cases.h"
#include "runtime/check/reference_recipes.h"
#include "runtime/ops/training/erase_boxes.h"
#include "shaders/lib/step_state.h"
#include "shaders/training/erase_boxes.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> erase_boxes_cases() {
  std::vector<OpCase> cases;
  const HostTensor x = random_tensor({3, 2, 13, 11}, DType::f32, 1);
  // Two that overlap, one that isn't there and one up to the edges, none at all, and the whole sample.
  const HostTensor boxes{{3, 2, VITRINE_BOX_WORDS}, DType::u32, {1, 8, 2, 9,  5, 13, 4, 11, 0, 0,  0, 0,
                                                                 0, 3, 0, 11, 0, 0,  0, 0,  0, 13, 0, 11}};
  HostTensor step = filled({VITRINE_STEP_WORDS}, DType::u32, 0);
  step.values[VITRINE_STEP_SEED_LOW] = 7;
  step.values[VITRINE_STEP_SEED_HIGH] = 0x80000001;
  step.values[VITRINE_STEP_NUMBER] = 3;
  for (const uint32_t fill : {VITRINE_ERASE_CONST, VITRINE_ERASE_RAND, VITRINE_ERASE_PIXEL}) {
    const EraseBoxesOptions options{.fill = fill, .stream = 9};
    cases.push_back(
        one_result("fill " + std::to_string(fill), {{x}, {boxes}, {step}},
                   reference::erase_boxes(x.values, x.shape, boxes.values,
                                          {.fill = fill, .stream = 9, .seed = 0x8000000100000007, .step = 3}),
                   [options](Graph& graph, std::span<const ValueId> ids) {
                     return erase_boxes(graph, "y", ids[0], ids[1], ids[2], options);
                   }));
  }
  return cases;
}

}  // namespace vitrine

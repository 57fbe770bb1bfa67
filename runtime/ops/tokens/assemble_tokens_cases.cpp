#include "runtime/check/cases.h"
#include "runtime/ops/tokens/assemble_tokens.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> assemble_tokens_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor patches = random_tensor({2, 6, 67}, dtype, 1),
                     class_token = random_tensor({67}, DType::f32, 2),
                     registers = random_tensor({2, 67}, DType::f32, 3),
                     positions = random_tensor({7, 67}, DType::f32, 4);
    reference::Tokens tokens;
    tokens.class_token = class_token.values;
    tokens.registers = registers.values;
    tokens.positions = positions.values;
    cases.push_back(one_result(
        "a class token and two registers",
        {{patches}, {class_token, Role::constant}, {registers, Role::constant}, {positions, Role::constant}},
        reference::assemble_tokens(patches.values, patches.shape, tokens),
        [](Graph& graph, std::span<const ValueId> ids) {
          return assemble_tokens(graph, "y", ids[0],
                                 {.class_token = ids[1], .registers = ids[2], .positions = ids[3]});
        }));
  }
  // As models without registers have them: no, one or two tokens in front, positions of all.
  for (const uint64_t front : {0, 1, 2}) {
    const HostTensor patches = random_tensor({2, 6, 68}, DType::f32, 1),
                     class_token = random_tensor({68}, DType::f32, 2),
                     distillation_token = random_tensor({68}, DType::f32, 3),
                     positions = random_tensor({front + 6, 68}, DType::f32, 4);
    reference::Tokens tokens;
    tokens.positions = positions.values;
    if (front > 0) tokens.class_token = class_token.values;
    if (front > 1) tokens.distillation_token = distillation_token.values;
    OpCase& c = cases.emplace_back(
        one_result(std::to_string(front) + " tokens in front", {{patches}, {positions}},
                   reference::assemble_tokens(patches.values, patches.shape, tokens),
                   [front](Graph& graph, std::span<const ValueId> ids) {
                     return assemble_tokens(graph, "y", ids[0],
                                            {.class_token = front > 0 ? ids[2] : ValueId{},
                                             .distillation_token = front > 1 ? ids[3] : ValueId{},
                                             .positions = ids[1]});
                   }));
    if (front > 0) c.inputs.push_back({class_token});
    if (front > 1) c.inputs.push_back({distillation_token});
    c.for_its_path = true;
  }
  return cases;
}

}  // namespace vitrine

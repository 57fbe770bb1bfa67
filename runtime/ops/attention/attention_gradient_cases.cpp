#include <iterator>
#include <utility>

#include "runtime/check/cases.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/ops/attention/attention_cases.h"
#include "runtime/ops/attention/attention_gradient.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> attention_gradient_cases() {
  std::vector<OpCase> cases;
  std::vector<AttentionCase> sizes{small_attention, usual_attention, dropped_attention};
  const size_t of_all_devices = sizes.size();
  sizes.insert(sizes.end(), std::begin(trained_attentions), std::end(trained_attentions));
  for (const AttentionCase& a : sizes) {
    OpCase& c = cases.emplace_back();
    c.label = a.label();
    c.for_its_path = cases.size() > of_all_devices;
    c.inputs = a.inputs(DType::f32);
    const reference::Attention result = a.expected(c.inputs);
    for (const auto& [shape, values] : {std::pair{Shape{a.batch, a.queries, a.heads * a.width}, &result.out},
                                        {Shape{a.batch, a.heads, a.queries}, &result.lse}}) {
      HostTensor& tensor = c.inputs.emplace_back(HostTensor{shape, DType::f32, *values}).tensor;
      for (double& value : tensor.values) value = round_to(DType::f32, value);
    }
    c.inputs.push_back({random_tensor({a.batch, a.queries, a.heads * a.width}, DType::f32, 4)});
    reference::AttentionGradients gradients =
        reference::attention_gradient(a.q(c.inputs), a.k(c.inputs), a.v(c.inputs), a.batch, a.heads,
                                      a.options().scale, c.inputs.back().tensor.values, a.factor());
    c.expected = {std::move(gradients.q), std::move(gradients.k), std::move(gradients.v)};
    a.add_step(c.inputs);
    c.build = [a](Graph& graph, std::span<const ValueId> ids) {
      const AttentionGradients made =
          attention_gradient(graph, "g", ids[0], ids[1], ids[2], ids[3], ids[4], ids[5], a.options(ids));
      return std::vector{made.q, made.k, made.v};
    };
  }
  return cases;
}

}  // namespace vitrine

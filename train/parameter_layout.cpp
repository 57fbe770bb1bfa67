#include "train/parameter_layout.h"

#include <algorithm>

#include "runtime/graph/op.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

// In elements: descriptors need 256 bytes on some devices.
constexpr uint64_t alignment = 64;

// Queries, keys and values of heads with maps of their own follow each other without a gap: one product can
// take all three as one tensor.
bool joins_the_one_before(const Parameter& parameter) {
  return parameter.module == Module::k || parameter.module == Module::v;
}

}  // namespace

ParameterLayout layout_of(const ViTConfig& config) {
  ParameterLayout layout;
  for (const bool decaying : {true, false}) {
    for (Parameter& parameter : parameters_of(config)) {
      if (!parameter.learned() || parameter.is_matrix() != decaying) continue;
      if (!joins_the_one_before(parameter)) layout.elements = round_up(layout.elements, alignment);
      const uint64_t elements = parameter.shape.elements();
      layout.places.push_back({std::move(parameter), layout.elements});
      layout.elements += elements;
    }
    layout.elements = round_up(layout.elements, alignment);
    if (decaying) layout.decay_elements = layout.elements;
  }
  return layout;
}

const ParameterPlace& ParameterLayout::find(std::string_view name) const {
  const auto found = std::ranges::find(
      places, name, [](const ParameterPlace& place) -> std::string_view { return place.parameter.name; });
  if (found == places.end()) {
    throw Error(ErrorCode::failed, "the model learns no parameter '" + std::string(name) + "'");
  }
  return *found;
}

}  // namespace vitrine

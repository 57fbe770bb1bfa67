#include "train/parameter_layout.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "runtime/graph/op.h"
#include "runtime/util/error.h"
#include "train/trained_parameters.h"

namespace vitrine {
namespace {

// In elements: descriptors need 256 bytes on some devices.
constexpr uint64_t alignment = 64;

// Queries, keys and values of heads with maps of their own follow each other without a gap: one product can
// take all three as one tensor.
bool joins(const Parameter& parameter, const std::vector<ParameterPlace>& places) {
  if (places.empty()) return false;
  const Parameter& before = places.back().parameter;
  const bool next = (parameter.module == Module::k && before.module == Module::q) ||
                    (parameter.module == Module::v && before.module == Module::k);
  return next && before.block == parameter.block && before.leaf == parameter.leaf;
}

// Appends what is updated alike.
void append_group(ParameterLayout& layout, std::span<const Parameter> parameters, double rate) {
  UpdateGroup group{.first = layout.elements, .rate = rate};
  for (const bool decaying : {true, false}) {
    for (const Parameter& parameter : parameters) {
      if (parameter.is_matrix() != decaying) continue;
      if (!joins(parameter, layout.places)) layout.elements = round_up(layout.elements, alignment);
      layout.places.push_back({parameter, layout.elements});
      layout.elements += parameter.shape.elements();
    }
    layout.elements = round_up(layout.elements, alignment);
    if (decaying) group.decay_elements = layout.elements - group.first;
  }
  group.elements = layout.elements - group.first;
  if (group.elements) layout.groups.push_back(group);
}

}  // namespace

uint64_t layer_of(const Parameter& parameter, uint64_t depth) {
  switch (parameter.module) {
    case Module::patch:
    case Module::patch_norm:
    case Module::stem:
    case Module::class_token:
    case Module::distillation_token:
    case Module::registers:
    case Module::detection_tokens:
    case Module::positions:
    case Module::pre_norm:
    case Module::shared_relative_bias:
      return 0;
    case Module::norm:
      return depth;
    default:
      return parameter.name.starts_with("blocks.") ? parameter.block + 1 : depth + 1;
  }
}

ParameterLayout layout_of(const TrainConfig& config) {
  const std::vector<Parameter> trained = trained_parameters(config);
  ParameterLayout layout;
  if (config.layer_decay == 1) {
    append_group(layout, trained, 1);
    return layout;
  }
  const uint64_t depth = config.model.depth;
  for (uint64_t layer = 0; layer <= depth + 1; ++layer) {
    std::vector<Parameter> of_layer;
    std::ranges::copy_if(trained, std::back_inserter(of_layer),
                         [&](const Parameter& parameter) { return layer_of(parameter, depth) == layer; });
    append_group(layout, of_layer, std::pow(config.layer_decay, static_cast<double>(depth + 1 - layer)));
  }
  return layout;
}

ParameterLayout layout_of(const ViTConfig& config) { return layout_of(TrainConfig{.model = config}); }

const ParameterPlace& ParameterLayout::find(std::string_view name) const {
  const auto found = std::ranges::find(
      places, name, [](const ParameterPlace& place) -> std::string_view { return place.parameter.name; });
  if (found == places.end()) {
    throw Error(ErrorCode::failed, "the training changes no parameter '" + std::string(name) + "'");
  }
  return *found;
}

}  // namespace vitrine

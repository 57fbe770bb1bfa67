// Parameters that are computed, from the configuration alone or from other parameters.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/vit/parameters.h"
#include "model/vit/vit_config.h"

namespace vitrine {

// The values of a parameter of this model by its name; none where the model has no such parameter.
using ValuesOf = std::function<std::vector<float>(const Parameter&)>;

// Throws where there is nobody to ask.
std::vector<float> ask(const ValuesOf& values_of, const Parameter& wanted);

// Of a fixed parameter. `values_of` is asked for what it is made of, by name, module, leaf and shape.
std::vector<float> fixed_values(const Parameter& parameter, const ViTConfig& config,
                                const ValuesOf& values_of);

}  // namespace vitrine

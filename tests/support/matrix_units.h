// Trainings in f16 on devices that have matrix units and would rather not use them.
#pragma once

#include <cstddef>

#include "runtime/graph/plan.h"
#include "train/parameter_layout.h"
#include "train/train_config.h"

namespace vitrine::test {

// Has matrix units make the products that may be rounded, as a GPU's heuristics do and a software driver's
// don't. How many nodes of the step that are, with those in `without_block`: attention's derivative on a
// make-believe card, which has a card's registers and the software driver's narrow subgroups.
size_t prefer_matrix_units(const TrainConfig& config, const ParameterLayout& layout, PlanOptions& options,
                           size_t& without_block);

}  // namespace vitrine::test

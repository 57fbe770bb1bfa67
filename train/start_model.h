// A training that begins with a model that was trained before: what is kept of it, what is new, what is
// dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/files/weights.h"
#include "train/data/dataset.h"
#include "train/train_config.h"

namespace vitrine {

// The classes that are to be learned.
struct WantedClasses {
  uint64_t count = 0;
  std::vector<std::string> names;  // empty where the data set doesn't say
};

struct StartModel {
  ViTConfig config;  // the model's, with a head for the wanted classes
  // Of every parameter of it, for as long as this lives.
  std::unique_ptr<ConstantSource> weights;
  std::vector<std::string> new_parameters;
  Naming naming;     // of the model's tensors, see Model
  std::string base;  // what an adapter beside it calls it: its path, or its name on the hub
  std::string said;  // in a sentence what is kept, new and dropped
};

// The head stays where its classes are those that are wanted: as many, and called the same; where the data
// set has no names, as many. Otherwise, and for a model without a head, it is drawn as `init` says from the
// seed. What other libraries put a new head in the place of goes with the old one: CLIP's projection.
StartModel start_model(Model model, const WantedClasses& wanted, HeadInit init, uint64_t seed);

// Throws Error(bad_file) naming the first field in which `wanted` isn't what a training of the start's model
// may have: all but dropouts, and the rule for random weights, has to be the model's.
void require_same_model(const StartModel& start, const ViTConfig& wanted, const std::string& origin);

// What suits teaching a trained model other classes, whatever is to be trained of it. Rates are those for 256
// images an update and change with the root of their number, as timm has it for Adam: 5e-4 for weights that
// were trained before, 5e-3 where all that is trained is new.
TrainConfig fine_tuning_recipe(const std::string& train, uint64_t batch_size);

}  // namespace vitrine

#include "train/run/training_identity.h"

#include <algorithm>
#include <vector>

#include "model/files/parameter_values.h"
#include "train/recipes/teacher.h"
#include "train/run/training_run.h"
#include "train/trained_parameters.h"
#include "train/training_graph.h"

namespace vitrine {

std::string fingerprint_of(const Dataset& data) {
  // FNV-1a of the labels: cheap, and another data set has others.
  uint64_t hash = 0xcbf29ce484222325u;
  for (uint64_t i = 0; i < data.count(); ++i) hash = (hash ^ data.label(i)) * 0x100000001b3u;
  return std::to_string(data.count()) + " samples of " + data.shape().to_string() + ", labels " +
         std::to_string(hash) + (data.identity().empty() ? "" : ", " + data.identity());
}

TrainingIdentity identity_of(const TrainConfig& config, const Dataset& data, ConstantSource* weights) {
  TrainingIdentity identity{.config = config,
                            .data = fingerprint_of(data),
                            .updates_an_epoch = total_updates(config, data.count()) / config.epochs};
  const ParameterLayout layout = layout_of(config);
  std::vector<Parameter> frozen;
  for (Parameter& parameter : parameters_of(config.model)) {
    const bool trained = std::ranges::any_of(
        layout.places, [&](const ParameterPlace& place) { return place.parameter.name == parameter.name; });
    if (parameter.learned() && !trained) frozen.push_back(std::move(parameter));
  }
  if (!frozen.empty()) {
    const auto drawn = weights ? nullptr : random_weights(config.model, config.seed);
    identity.frozen = checksum_of(weights ? *weights : *drawn, frozen);
  }
  if (std::optional<Teacher> teacher = open_teacher(config)) identity.teacher = checksum_of(*teacher);
  return identity;
}

}  // namespace vitrine

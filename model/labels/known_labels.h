// What a published classifier's outputs are called where its own files don't say it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model/labels/imagenet.h"

namespace vitrine {

struct KnownLabels {
  const imagenet::Set* set = nullptr;
  bool assumed = false;  // by the number of classes alone

  // One for each class; none without a set.
  std::vector<std::string> names() const;
  // A sentence for who is shown the names; empty where nothing is assumed.
  std::string remark() const;
};

// timm and torchvision publish classifiers of ImageNet without names, and count on its classes: so do timm's
// and transformers' own tools. `config`: their config.json, null where there is none. No set for other
// families, for models that Vitrine trained, and where the file says that the classes are others: timm's tag
// ("augreg_in21k_ft_in1k") ends in another subset, or its pretrained_cfg is of another number of classes.
KnownLabels known_labels(const nlohmann::json* config, std::string_view family, uint64_t classes);

}  // namespace vitrine

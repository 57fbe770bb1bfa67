// The config.json of timm.
#pragma once

#include "model/families/families.h"
#include "model/files/config_json.h"
#include "model/files/json_object.h"
#include "model/vit/vit_config.h"

namespace vitrine {

// Whether transformers saved a model of timm's, whose configuration holds timm's own.
bool wraps_timm(const JsonObject& object);

// Error(bad_file) that names the architecture when it isn't one that is computed as timm does.
void check_timm_architecture(const JsonObject& object);

// The architecture, changed as "model_args" and "pretrained_cfg" say. An argument that isn't known, or whose
// value asks for something else than is computed, ends in Error(bad_file) with its name.
ViTConfig read_timm(const JsonObject& object, const Naming& naming, ConfigRemarks& remarks);

}  // namespace vitrine

// The config.json of Hugging Face's transformers.
#pragma once

#include <string_view>
#include <vector>

#include "model/families/families.h"
#include "model/files/config_json.h"
#include "model/files/json_object.h"
#include "model/vit/vit_config.h"

namespace vitrine {

// The "model_type"s whose tensors are named as this family's.
std::vector<std::string_view> hugging_face_types(std::string_view family);

// Error(bad_file) when "model_type" isn't one of those that are read, with their list.
void check_hugging_face_type(const JsonObject& object);

// The family that its tensors are named as; nothing where "model_type" isn't one of those.
std::string_view hugging_face_family(const JsonObject& object);

// Whether it is of a model that does more than its tower, whose tensors lie beside it.
bool holds_more_than_a_tower(const JsonObject& object);

// Of so many patches a side in Idefics' SigLIP: places are counted in fractions of a picture there, in single
// precision, so that its library takes some patches for the one in front of them, on some processors other
// ones than on others.
bool library_moves_places(uint64_t side);

// Where the fields of the vision model are: "vision_config" of a model that has a text tower as well.
JsonObject vision_part(const JsonObject& object);

// The sides that it says of the model's images, where it says them.
void read_image_size(const JsonObject& object, uint64_t& height, uint64_t& width);

// Fills in what the file says; what it leaves out takes the default of that type's configuration class.
// `c` holds what the tensors tell. Error(bad_file) when they are named as another family's.
void read_hugging_face(const JsonObject& object, const Naming& naming, ViTConfig& c, ConfigRemarks& remarks);

}  // namespace vitrine

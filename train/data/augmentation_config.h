// The fields of a configuration's "data" that say what chance does to pictures' bytes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/util/error.h"
#include "train/data/picture_augmentation.h"

namespace vitrine {

class JsonObject;

// The members that are read.
extern const std::vector<std::string_view> picture_augmentation_fields;
// Those that are there; errors name the file and the field.
PictureAugmentation read_picture_augmentation(const JsonObject& data);
// Adds those that are on.
void write_picture_augmentation(const PictureAugmentation& augmentation, nlohmann::ordered_json& data);
// Throws Error(bad_file) that names `origin` and the first field that makes no sense, for pictures of a
// model.
void validate_picture_augmentation(const PictureAugmentation& augmentation, uint64_t channels,
                                   uint64_t height, uint64_t width, const std::string& origin);

// timm's "rand-m9-mstd0.5-inc1": m, n (num_layers), p (prob), mstd, mmax, inc and tweights, each at most
// once. Errors begin with `origin`.
RandAugment rand_augment_named(const std::string& text, const std::string& origin, ErrorCode code);
// So many of brightness, contrast and saturation about 1, and no hue, as timm's --color-jitter.
ColorJitter color_jitter_of(double strength);

}  // namespace vitrine

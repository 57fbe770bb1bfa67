// Models that are not computed yet, told by what they are rather than by a tensor that is left over.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/families/families.h"

namespace vitrine {

struct ForeignKind {
  std::string_view what;   // "a BEiT"
  std::string_view lacks;  // "relative position bias is"
};
std::vector<ForeignKind> foreign_kinds();

// Throws Error(bad_file) that says what the file holds and what of it isn't supported, where its tensors show
// such a model.
void refuse_foreign(const TensorShapes& tensors, const std::string& file);

// The same of a "model_type" of Hugging Face's: "this is a BEiT: relative position bias is not supported
// yet". Nothing for one that isn't known.
std::optional<std::string> foreign_type(std::string_view model_type);

}  // namespace vitrine

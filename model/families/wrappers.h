// A model inside another one: the vision tower of a model that talks, what a training's own module was saved
// around.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/families/families.h"

namespace vitrine {

struct Unwrapped {
  std::string outer = {};     // what its tensors' names begin with in the file: "model.vision_tower."
  TensorShapes tensors = {};  // without that, and with the heads that lie beside it
  std::set<std::string> beside = {};
  // What its library saves under other names than its modules have: by the latter, the former.
  std::map<std::string, std::string> saved_as = {};
  std::vector<std::string> passed_over = {};  // names of what else the file holds

  // What a tensor is called in the file.
  std::string name_in_file(const std::string& name) const;
};

// Throws Error(bad_file) where several models lie beside each other. What is none that is known stays as it
// is.
Unwrapped unwrap(TensorShapes tensors, const std::string& file);

}  // namespace vitrine

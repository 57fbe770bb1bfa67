// The tables of timm's Vision Transformers: the plain one, and those whose names differ from its.
#pragma once

#include "model/families/families.h"

namespace vitrine {

const Family& timm();
const Family& timm_parallel();  // attention and MLP side by side
const Family& timm_branches();  // several attentions side by side, and several MLPs

}  // namespace vitrine

// The tables of the families that Hugging Face's transformers publishes.
#pragma once

#include "model/files/families.h"

namespace vitrine {

const Family& hugging_face_vit();     // vit, deit
const Family& hugging_face_dinov2();  // dinov2, dinov2_with_registers
const Family& hugging_face_clip();
const Family& hugging_face_siglip();

}  // namespace vitrine

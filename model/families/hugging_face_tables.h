// The tables of the families that Hugging Face's transformers publishes, and of one under its publisher's own
// names.
#pragma once

#include "model/families/families.h"

namespace vitrine {

const Family& hugging_face_vit();     // vit, deit, vit_msn, vit_mae, ijepa
const Family& hugging_face_dinov2();  // dinov2, dinov2_with_registers
const Family& hugging_face_pixio();
const Family& hugging_face_dinov3();
const Family& meta_dinov3();
const Family& hugging_face_beit();
const Family& hugging_face_clip();
const Family& hugging_face_git();
const Family& hugging_face_bridgetower();
const Family& hugging_face_siglip();
const Family& hugging_face_siglip2();  // its NaFlex
const Family& hugging_face_ast();
const Family& hugging_face_yolos();
const Family& hugging_face_video();  // VideoMAE and ViViT
const Family& hugging_face_owlvit();
const Family& hugging_face_blip();  // BLIP's and BLIP-2's
const Family& hugging_face_internvl();
const Family& hugging_face_qianfan();
const Family& hugging_face_tipsv2();
const Family& hugging_face_sam();
const Family& hugging_face_vitdet();
const Family& hugging_face_aimv2();
const Family& hugging_face_ovis2();
const Family& hugging_face_mgpstr();
const Family& hugging_face_janus();
const Family& hugging_face_mlcd();
const Family& hugging_face_pixtral();

}  // namespace vitrine

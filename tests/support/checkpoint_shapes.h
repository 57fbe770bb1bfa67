// Checkpoints of Hugging Face's families as names and shapes, and what reading them comes to.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "model/families/families.h"
#include "model/files/config_json.h"

namespace vitrine::test {

inline TensorShapes checkpoint(const ViTConfig& config, const char* family, const std::string& prefix) {
  TensorShapes tensors;
  for (const Parameter& parameter : parameters_of(config)) {
    for (const FilePart& part : file_parts(parameter, config, {&family_named(family), prefix}, {})) {
      tensors[part.name] = part.shape;
    }
  }
  return tensors;
}

inline void check_same(ViTConfig found, ViTConfig expected) {
  for (ViTConfig* c : {&found, &expected}) {
    c->mlp_hidden = c->mlp_width();
    c->layer_scale_init = 0;
  }
  CHECK(to_string(found) == to_string(expected));
}

// Recognised, inferred and matched as this config.
inline Naming check_read(const TensorShapes& tensors, const char* family, const ViTConfig& config) {
  const Naming naming = recognise(tensors, "m");
  CHECK(naming.family->name == family);
  const ViTConfig found = infer_config(tensors, naming, "m");
  check_same(found, config);
  CHECK_NOTHROW(match_tensors(tensors, found, naming, "m"));
  return naming;
}

inline ViTConfig small(uint64_t classes = 0) {
  ViTConfig c;
  c.dim = 128;
  c.heads = 2;
  c.depth = 2;
  c.classes = classes;
  return c;
}

inline ViTConfig dinov2(uint64_t registers, uint64_t classes) {
  ViTConfig c = small(classes);
  c.patch_height = c.patch_width = 14;
  c.layer_scale = true;
  c.registers = registers;
  if (registers) {
    c.position_span = PositionSpan::class_and_patches;
    c.position_resize = PositionResize::bicubic_antialias;
  }
  if (classes) c.pool = Pool::token_and_mean;
  return c;
}

inline ViTConfig clip(uint64_t embedding) {
  ViTConfig c = small();
  c.patch_bias = false;
  c.pre_norm = true;
  c.final_norm = false;
  c.fc_norm = true;
  c.embedding_size = embedding;
  c.activation = Activation::gelu_quick;
  c.eps = 1e-5;
  return c;
}

inline ViTConfig siglip() {
  ViTConfig c = small();
  c.class_token = false;
  c.pool = Pool::attention;
  c.activation = Activation::gelu_tanh;
  return c;
}

inline void add_text_tower(TensorShapes& tensors) {
  tensors["text_model.encoder.layers.0.layer_norm1.weight"] = {64};
  tensors["text_model.embeddings.token_embedding.weight"] = {100, 64};
  tensors["text_model.embeddings.position_ids"] = {1, 77};
  tensors["logit_scale"] = {};
}

inline std::string refusal(const TensorShapes& tensors, const ViTConfig& config, const Naming& naming) {
  try {
    match_tensors(tensors, config, naming, "m");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    return error.what();
  }
  return "accepted";
}

inline std::string config_refusal(const nlohmann::json& json, const TensorShapes& tensors,
                                  const Naming& naming) {
  try {
    read_config(json, tensors, naming, "config.json").validate("config.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    return error.what();
  }
  return "accepted";
}

}  // namespace vitrine::test

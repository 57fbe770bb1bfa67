// What `vitrine inspect --trace` shows, and `vitrine inspect` of a file that holds an attention alone.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/cli/model_options.h"
#include "apps/cli/picture_options.h"
#include "model/files/bare_attention.h"

namespace vitrine::cli {

struct TraceFlags {
  std::string input;
  PictureFlags picture;
  uint64_t layer = 0;
};

// --trace takes .npy files, told by their content, and pictures.
bool is_npy(const std::string& path);

// Computes the walk and adds it to `line` as "trace", or prints it as text. `preprocess`: of a picture.
void trace_model(const Model& model, const std::optional<Preprocess>& preprocess, const ModelFlags& flags,
                 const TraceFlags& trace, bool json, nlohmann::ordered_json line,
                 const CommonOptions& common);

// Shapes and parameters of an attention alone, and with a trace its walk.
void inspect_attention(const std::string& name, const BareAttention& attention, const ModelFlags& flags,
                       const TraceFlags& trace, bool json, const CommonOptions& common);

}  // namespace vitrine::cli

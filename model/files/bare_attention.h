// A file that holds the tensors of one attention and nothing else.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/files/weights.h"
#include "model/vit/modules.h"

namespace vitrine {

struct BareAttention {
  Attention module;
  std::unique_ptr<ConstantSource> constants;
};

// qkv.weight, proj.weight and their biases, with one prefix before all of them or none. Widths are told
// from the shapes; heads are 8 unless `set` says otherwise ("heads=4"; any field may be set). Nothing when
// the file holds other tensors too. Throws Error(bad_file) for shapes that fit no attention.
std::optional<BareAttention> open_bare_attention(const std::filesystem::path& path,
                                                 const std::vector<std::string>& set, Warn warn = {});

}  // namespace vitrine

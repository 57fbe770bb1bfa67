// How the families of published checkpoints name their tensors. A family is a table: which paths in
// the file make up each module of a ViTConfig, and the few rules that names and shapes can't tell.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/vit/parameters.h"
#include "model/vit/position_table.h"
#include "model/vit/vit_config.h"

namespace vitrine {

// Names and shapes of a checkpoint's tensors, all that families look at.
using TensorShapes = std::map<std::string, std::vector<uint64_t>, std::less<>>;

// The part of a tensor's first axis from begin / of to end / of.
struct Share {
  uint64_t begin = 0, end = 1, of = 1;
};

// Where a module's tensors are. In a path, * is the block, % the branch, # each head in turn, and a leading ~
// the checkpoint's prefix. The leaf ("weight", "bias") is appended; a path of a lone tensor has none.
struct ModulePath {
  Module module;
  // Tensors that are concatenated along the first axis, in this order.
  std::vector<std::string_view> parts;
  // Other names of the same, where the first of them is there.
  std::vector<std::string_view> alternative = {};
  // What the module has of each, where the file fuses it with another module's.
  Share share = {};
  // Where biases are tensors of other names, whole: these. An empty one stands for zeros.
  std::vector<std::string_view> biases = {};
};

struct Family {
  std::string_view name;   // "timm"
  std::string_view title;  // "timm ViT"
  // Tensors that every checkpoint of the family has; the first one shows the prefix.
  std::vector<std::string_view> landmarks;
  std::vector<ModulePath> paths;
  // Names, with or without the prefix, that the family is known to carry and inference has no use for.
  // A * in one stands for anything.
  std::vector<std::string_view> unused = {};
  // Modules that a file may hold although its model does without them.
  std::vector<Module> spare = {};
  // Which rows the position table may have, the first that fits.
  std::vector<PositionSpan> position_spans = {PositionSpan::all, PositionSpan::class_and_patches,
                                              PositionSpan::patches};
  bool linear_patches = false;  // the patch projection is stored as [dim, channels*height*width]
  bool channels_last = false;   // and its columns as [height, width, channels]
  bool position_grid = false;  // positions are stored as [1, rows, columns, dim], for a grid of their own, or
                               // as rows and columns whose sum they are
  // Such a grid is a square, as [1, spare + rows * columns, dim], and so many of its first rows are not used.
  uint64_t spare_positions = 0;
  bool whole_patches = false;  // the family's code refuses images that leave pixels outside the patches
  // A block's first product is of the MLP's and the attention's maps, whose rows follow each other; the last
  // one may be of both, too, of which the attention has the first columns.
  bool fused_branches = false;
  size_t token_rank = 3;  // tokens and positions are stored with leading ones up to this rank
  double eps = 1e-6;
  PositionResize position_resize = PositionResize::bicubic;
  // What this family alone knows; called once the rest is inferred.
  void (*adjust)(const TensorShapes&, ViTConfig&) = nullptr;
  // The tensor that holds the periods of rotary positions, which files of this family have.
  std::string_view periods = {};
  // What tells the family from another one of the same names, where that isn't a name.
  bool (*fits)(const TensorShapes&, const std::string& prefix) = nullptr;
  std::string_view told_by_config = {};  // what neither names nor shapes tell, with its verb
  // What a whole model's file has in front of a tower of this family, whose names are another one's, too.
  std::string_view outer = {};

  const ModulePath* find(Module module) const;
};

std::span<const Family* const> all_families();
const Family& family_named(std::string_view name);

// A family together with the checkpoint's own prefix ("vit.", "deit." or none).
struct Naming {
  const Family* family = nullptr;
  std::string prefix;
  bool gammas = false;  // scales are called "gamma_1" in timm's code for EVA, "ls1.gamma" in that for ViT
};

// Whether all landmarks have their places behind this prefix.
bool has_landmarks(const TensorShapes& tensors, const Family& family, const std::string& prefix);

// The family that these names belong to: the one that is `said` (by a configuration) where they may, else the
// first that they fit. Throws Error(bad_file) naming `file`.
Naming recognise(const TensorShapes& tensors, const std::string& file, std::string_view said = {});

// The family whose towers alone lie behind this prefix; else "".
std::string_view family_within(std::string_view outer);

// What is known of a model from elsewhere before its tensors are looked at; 0: not known.
struct InferHints {
  uint64_t heads = 0;
  uint64_t image_height = 0, image_width = 0;
  std::optional<Activation> activation = {};
  std::vector<std::pair<std::string, std::string>> fields =
      {};  // all that --set says, as fields_of() writes it
};

// What names and shapes tell of the model. Without hints the head count takes the rule for this width
// (0 where there is none: validate() then asks for it), and the image is square.
ViTConfig infer_config(const TensorShapes& tensors, const Naming& naming, const std::string& file,
                       const InferHints& hints = {});

// One tensor of the file that makes up (a part of) a parameter, or without a name zeros.
struct FilePart {
  std::string name;
  std::vector<uint64_t> shape;  // of the whole tensor, as the family's own code would save it
  // Of its rows, along all axes but the last one, those that are the parameter's; 0: all. Of a vector its
  // elements are.
  uint64_t first_row = 0, rows = 0;
  // And of its last one; 0: all.
  uint64_t first_column = 0, columns = 0;
  bool operator==(const FilePart&) const = default;
};

// Of a family that stores positions as a grid: which.
Grid stored_positions(const TensorShapes& tensors, const Naming& naming);

// Where a learned parameter is found in a file of this family, in order of concatenation.
std::vector<FilePart> file_parts(const Parameter& parameter, const ViTConfig& config, const Naming& naming,
                                 const TensorShapes& tensors);

// The parts of every learned parameter by canonical name. Throws Error(bad_file) for a tensor that is
// missing, of the wrong shape or left over, with its name, what was found and what was expected. Where there
// is `beside`, what is left over outside of the checkpoint's prefix is put there instead.
std::map<std::string, std::vector<FilePart>> match_tensors(const TensorShapes& tensors,
                                                           const ViTConfig& config, const Naming& naming,
                                                           const std::string& file,
                                                           std::vector<std::string>* beside = nullptr);

std::string shape_text(std::span<const uint64_t> shape);  // "[768, 3, 16, 16]"
uint64_t whole_root(uint64_t square);                     // 0 of what is no square
bool holds_nothing(std::span<const uint64_t> shape);      // [1, 0, 64], where a model has none of something

}  // namespace vitrine

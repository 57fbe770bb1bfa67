// From names and shapes to a ViTConfig.
#include <algorithm>
#include <cmath>

#include "model/families/families.h"

namespace vitrine {
namespace {

// A model's own sizes are small numbers; anything larger is a hostile file and ends the inference.
constexpr uint64_t max_extent = 1u << 24;

class Reader {
 public:
  Reader(const TensorShapes& tensors, const Naming& naming, const std::string& file)
      : tensors_(tensors), naming_(naming), file_(file) {
    asked_.heads = 1024;  // while they are being counted, any head may be there
  }

  // The shape of a module's first tensor in the file; nothing when it isn't there.
  const std::vector<uint64_t>* find(Module module, Leaf leaf, uint64_t block = 0, size_t part = 0) const {
    const auto name = name_of(module, leaf, block, part);
    if (name.empty()) return nullptr;
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return nullptr;
    const bool may_be_none = module == Module::registers || module == Module::block_positions;
    if (may_be_none && holds_nothing(found->second)) return nullptr;
    for (const uint64_t extent : found->second) {
      if (extent == 0 || extent > max_extent) fail(name, found->second, "extents from 1 to 16777216");
    }
    return &found->second;
  }
  bool has(Module module, Leaf leaf, uint64_t block = 0) const {
    return find(module, leaf, block) != nullptr;
  }
  // The same, of a given rank.
  const std::vector<uint64_t>& get(Module module, Leaf leaf, size_t rank, size_t part = 0) const {
    const auto* shape = find(module, leaf, 0, part);
    const std::string name = name_of(module, leaf, 0, part);
    if (!shape)
      throw Error(ErrorCode::bad_file,
                  file_ + ": tensor '" + name + "' is missing, expected one of rank " + std::to_string(rank));
    if (shape->size() != rank) fail(name, *shape, "rank " + std::to_string(rank));
    return *shape;
  }
  [[noreturn]] void fail(const std::string& name, const std::vector<uint64_t>& shape,
                         const std::string& expected) const {
    throw Error(ErrorCode::bad_file,
                file_ + ": tensor '" + name + "' has shape " + shape_text(shape) + ", expected " + expected);
  }
  std::string name_of(Module module, Leaf leaf, uint64_t block, size_t part) const {
    const auto parts =
        file_parts({.name = {}, .module = module, .leaf = leaf, .block = block, .shape = {1, 1}}, asked_,
                   naming_, tensors_);
    return part < parts.size() ? parts[part].name : std::string();
  }
  const Family& family() const { return *naming_.family; }
  Grid stored_positions() const { return vitrine::stored_positions(tensors_, naming_); }
  size_t part_count(Module module, Leaf leaf) const {
    size_t count = 0;
    while (find(module, leaf, 0, count)) ++count;
    return count;
  }

 private:
  const TensorShapes& tensors_;
  const Naming& naming_;
  const std::string& file_;
  ViTConfig asked_;  // only names are made from it
};

// The head counts of published models by width; most others have heads of width 64. At width 1536 only
// DINOv2, whose branches are scaled, has those; SigLIP's heads are 96 wide.
uint64_t usual_heads(uint64_t dim, bool layer_scale) {
  switch (dim) {
    case 1536:
      return layer_scale ? 24 : 16;
    case 1152:
    case 1280:
    case 1408:
    case 1664:
      return 16;
    default:
      return dim % 64 == 0 ? dim / 64 : 0;
  }
}

// Which convolutions are in front of the patches, and how many pixels of the image their first one takes.
void infer_stem(const TensorShapes& tensors, ViTConfig& c) {
  const std::string at = std::string(canonical_path(Module::stem)) + ".";
  const auto shape_of = [&](const std::string& name) -> const std::vector<uint64_t>* {
    const auto found = tensors.find(at + name);
    return found == tensors.end() || found->second.size() != 4 ? nullptr : &found->second;
  };
  const auto begins = [&](const std::string& name, Stem stem, uint64_t widths) {
    const auto* shape = shape_of(name + ".weight");
    if (!shape) return;
    c.stem = stem;
    c.stem_width = widths * (*shape)[0];
    c.channels = (*shape)[1];
  };
  begins("0.conv", Stem::convolutions, 1);
  begins("conv1.0", Stem::resnet, 2);
  begins("stem.conv", Stem::bit, 1);
  begins("conv", Stem::bit, 1);
  if (c.stem != Stem::resnet && c.stem != Stem::bit) return;
  for (size_t stage = 0; stage < c.stem_blocks.size(); ++stage) {
    const std::string front = c.stem == Stem::bit ? "stages." + std::to_string(stage) + ".blocks."
                                                  : "layer" + std::to_string(stage + 1) + ".";
    while (shape_of(front + std::to_string(c.stem_blocks[stage]) + ".conv1.weight")) ++c.stem_blocks[stage];
  }
}

void infer_positions(const Reader& read, ViTConfig& c, const InferHints& hints) {
  if (hints.image_height) c.image_height = hints.image_height;
  if (hints.image_width) c.image_width = hints.image_width;
  const auto* table = read.find(Module::positions, Leaf::whole);
  if (!table) {
    c.positions = Positions::none;
    return;
  }
  c.positions = Positions::learned;
  if (read.family().position_grid) {
    const Grid grid = read.stored_positions();
    c.position_span = PositionSpan::patches;
    if (!hints.image_height) c.image_height = grid.height * c.patch_height;
    if (!hints.image_width) c.image_width = grid.width * c.patch_width;
    return;
  }
  const uint64_t rows = table->size() < 2 ? 0 : (*table)[table->size() - 2];
  const uint64_t token_count = c.class_token + c.distillation_token;
  const bool image_known = hints.image_height && hints.image_width && c.patch_height && c.patch_width;
  for (const PositionSpan span : read.family().position_spans) {
    const uint64_t others = span == PositionSpan::all ? token_count + c.registers + c.detection_tokens
                            : span == PositionSpan::class_and_patches ? token_count
                                                                      : 0;
    if (rows <= others || (span == PositionSpan::class_and_patches && token_count == 0)) continue;
    const uint64_t side = whole_root(rows - others);
    if (image_known ? rows - others != c.patches() : side == 0) continue;
    c.position_span = span;
    if (!image_known) {
      c.image_height = side * c.patch_height;
      c.image_width = side * c.patch_width;
    }
    return;
  }
  if (image_known) return;  // the shape will not match, and match_tensors() says so
  read.fail(read.name_of(Module::positions, Leaf::whole, 0, 0), *table,
            "a square number of patches besides the " + std::to_string(token_count + c.registers) +
                " other tokens (--set image_height=H --set image_width=W for any other)");
}

// The grid of a table, which is a square one's; an MLP is for any.
void infer_relative(const Reader& read, ViTConfig& c, const InferHints& hints) {
  const auto look = [&](RelativeBias kind, Module table, Module fc1, Module fc2) {
    if (const auto* rows = read.find(table, Leaf::whole)) {
      c.relative_bias = kind;
      const uint64_t side = whole_root(rows->front() - std::min<uint64_t>(rows->front(), 3 * c.class_token));
      if (side % 2 == 0 && !(hints.image_height && hints.image_width)) {
        read.fail(read.name_of(table, Leaf::whole, 0, 0), *rows,
                  "the places in a square grid (--set image_height=H --set image_width=W for any other)");
      }
      if (!hints.image_height) c.image_height = (side + 1) / 2 * c.patch_height;
      if (!hints.image_width) c.image_width = (side + 1) / 2 * c.patch_width;
    } else if (const auto* hidden = read.find(fc1, Leaf::weight)) {
      c.relative_bias = kind;
      c.relative_hidden = hidden->front();
      c.relative_swin = !read.has(fc2, Leaf::bias);
    }
  };
  using enum Module;
  look(RelativeBias::own, relative_bias, relative_fc1, relative_fc2);
  look(RelativeBias::shared, shared_relative_bias, shared_relative_fc1, shared_relative_fc2);
}

// Of decomposed relative positions, which blocks have windows: theirs are the smallest tables.
void infer_windows(const Reader& read, ViTConfig& c, const InferHints& hints) {
  std::vector<uint64_t> rows;
  for (uint64_t block = 0; block < c.depth; ++block) {
    const auto* table = read.find(Module::relative_height, Leaf::whole, block);
    if (!table) break;
    if (table->size() != 2 || table->front() % 2 == 0) {
      read.fail(read.name_of(Module::relative_height, Leaf::whole, block, 0), *table,
                "[an odd number of places, a head's width]");
    }
    rows.push_back((table->front() + 1) / 2);
  }
  if (rows.empty()) return;
  c.relative_bias = RelativeBias::decomposed;
  const auto [least, most] = std::ranges::minmax(rows);
  if (c.positions == Positions::none) {
    if (!hints.image_height) c.image_height = most * c.patch_height;
    if (!hints.image_width) c.image_width = most * c.patch_width;
    if (least == most) return;
  } else if (least == read.stored_positions().height) {
    return;
  }
  c.window = least;
  for (uint64_t block = 0; block < rows.size(); ++block) {
    if (rows[block] != least) c.global_blocks.push_back(block);
  }
}

void infer_attention(const Reader& read, ViTConfig& c, uint64_t heads) {
  c.projection = read.has(Module::projection, Leaf::weight);
  if (read.has(Module::lambda_q1, Leaf::whole)) c.attention = AttentionKind::differential;
  if (read.has(Module::talking_before, Leaf::weight)) {
    c.attention = AttentionKind::talking_heads;
    if (!heads) heads = read.get(Module::talking_before, Leaf::weight, 2)[0];
  }
  if (read.has(Module::q, Leaf::weight)) {
    c.per_head_maps = true;
    c.qkv_bias = read.has(Module::q, Leaf::bias);
    c.heads = heads;
    return;
  }
  c.qkv_bias = read.has(Module::qkv, Leaf::bias);
  const bool one_bias = read.name_of(Module::qkv, Leaf::bias, 0, 2).empty();  // for all three
  c.key_bias = !c.qkv_bias || one_bias || read.find(Module::qkv, Leaf::bias, 0, 1);
  c.head_norm = read.has(Module::q_norm, Leaf::weight);
  c.attention_norm = read.has(Module::attention_norm, Leaf::weight);
  c.projection_bias = !c.projection || read.has(Module::projection, Leaf::bias);
  c.heads = heads ? heads : usual_heads(c.dim, c.layer_scale);
  const size_t parts = read.part_count(Module::qkv, Leaf::weight);
  const uint64_t first = read.get(Module::qkv, Leaf::weight, 2)[0];
  uint64_t values = c.projection ? read.get(Module::projection, Leaf::weight, 2)[1] : c.dim;
  uint64_t keys = parts > 1 ? first : first > values ? (first - values) / 2 : 0;
  if (c.heads && keys && keys != c.dim) c.key_width = keys / c.softmaxes();
  if (c.heads && values != c.dim) c.value_width = values / c.heads;
}

}  // namespace

ViTConfig infer_config(const TensorShapes& tensors, const Naming& naming, const std::string& file,
                       const InferHints& hints) {
  ViTConfig c;
  uint64_t heads = hints.heads;
  const Reader read(tensors, naming, file);
  c.eps = naming.family->eps;
  c.position_resize = naming.family->position_resize;
  const bool tubelets = naming.family->name == "hf_video";
  const size_t rank = naming.family->linear_patches ? 2 : tubelets ? 5 : 4;
  const auto& patch = read.get(Module::patch, Leaf::weight, rank);
  c.dim = patch[0];
  if (tubelets) {  // several frames are as many times the channels
    c.channels = patch[1] * patch[2];
    c.patch_height = patch[3];
    c.patch_width = patch[4];
  } else if (!naming.family->linear_patches) {
    c.channels = patch[1];
    c.patch_height = patch[2];
    c.patch_width = patch[3];
    infer_stem(tensors, c);
    c.patch_height *= c.stem_stride();
    c.patch_width *= c.stem_stride();
  }
  if (naming.family->channels_last) {  // nothing else tells the patches' size: colored ones, and square
    const uint64_t side = whole_root(patch[1] / 3);
    if (patch[1] % 3 != 0 || side == 0)
      read.fail(read.name_of(Module::patch, Leaf::weight, 0, 0), patch, "three colors of square patches");
    c.patch_height = c.patch_width = side;
  }
  c.patch_bias = read.has(Module::patch, Leaf::bias);
  c.patch_norm = read.has(Module::patch_norm, Leaf::weight);
  c.pre_norm = read.has(Module::pre_norm, Leaf::weight);
  c.class_token = read.has(Module::class_token, Leaf::whole);
  c.distillation_token = read.has(Module::distillation_token, Leaf::whole);
  if (const auto* registers = read.find(Module::registers, Leaf::whole)) {
    c.registers = registers->size() < 2 ? 0 : (*registers)[registers->size() - 2];
  }
  if (const auto* behind = read.find(Module::detection_tokens, Leaf::whole)) {
    c.detection_tokens = behind->size() < 2 ? 0 : (*behind)[behind->size() - 2];
  }
  c.depth = 0;
  while (c.depth < tensors.size() && read.has(Module::norm1, Leaf::weight, c.depth)) ++c.depth;
  while (c.class_blocks < tensors.size() && read.has(Module::class_norm1, Leaf::weight, c.class_blocks))
    ++c.class_blocks;
  if (!heads && read.has(Module::q, Leaf::weight)) heads = read.part_count(Module::q, Leaf::weight);
  if (read.has(Module::q, Leaf::weight)) {
    const auto& q = read.get(Module::q, Leaf::weight, 2);
    const auto& v = read.get(Module::v, Leaf::weight, 2);
    if (heads && q[0] * heads != c.dim) c.key_width = q[0];
    if (heads && v[0] * heads != c.dim) c.value_width = v[0];
  }
  infer_positions(read, c, hints);
  c.block_positions = read.has(Module::block_positions, Leaf::whole, 1);
  const uint64_t fc1 = read.get(Module::fc1, Leaf::weight, 2)[0],
                 fc2 = read.get(Module::fc2, Leaf::weight, 2)[1];
  c.mlp_hidden = fc2;
  c.mlp_bias = read.has(Module::fc1, Leaf::bias);
  c.mlp_norm = read.has(Module::mlp_norm, Leaf::weight);
  if (fc1 == 2 * fc2 || read.part_count(Module::fc1, Leaf::weight) == 2) {
    c.mlp = MlpKind::swiglu;
    c.activation = Activation::silu;
  }
  c.layer_scale = read.has(Module::scale1, Leaf::whole);
  c.mlp_scale = !c.layer_scale || read.has(Module::scale2, Leaf::whole);
  if (!read.has(Module::norm1, Leaf::bias)) c.norm = NormKind::rms;
  c.final_norm = read.has(Module::norm, Leaf::weight);
  c.fc_norm = read.has(Module::fc_norm, Leaf::weight);
  const bool probe = read.has(Module::pool_latent, Leaf::whole);
  if (probe) {
    c.pool_query = read.has(Module::pool_q, Leaf::weight);
    c.pool_bias = read.has(Module::pool_kv, Leaf::bias);
    c.pool_mlp = read.has(Module::pool_fc1, Leaf::weight);
  }
  if (probe && c.pool_mlp) {
    const uint64_t hidden = read.get(Module::pool_fc1, Leaf::weight, 2)[0];
    if (hidden != c.mlp_width()) c.pool_hidden = hidden;
  }
  infer_relative(read, c, hints);
  infer_windows(read, c, hints);
  if (const auto* neck = read.find(Module::neck_linear, Leaf::weight)) c.neck = neck->front();
  if (read.has(Module::rotary_frequencies, Leaf::whole)) {
    c.rotary = Rotary::neighbours;
    c.rotary_learned = true;
  }
  c.pool = probe ? Pool::attention : c.fc_norm || !c.class_token ? Pool::mean : Pool::token;
  c.classes = 0;
  if (read.has(Module::pre_logits, Leaf::weight)) {
    c.representation_size = read.get(Module::pre_logits, Leaf::weight, 2)[0];
  }
  if (read.has(Module::embedding, Leaf::weight)) {
    c.embedding_size = read.get(Module::embedding, Leaf::weight, 2)[0];
  }
  if (read.has(Module::head, Leaf::weight)) c.classes = read.get(Module::head, Leaf::weight, 2)[0];
  c.distilled_head = read.has(Module::distillation_head, Leaf::weight);
  infer_attention(read, c, heads);
  if (naming.family->adjust) naming.family->adjust(tensors, c);
  return c;
}

}  // namespace vitrine

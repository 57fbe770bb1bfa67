#include "model/families/known_architectures.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "model/vit/presets.h"
#include "runtime/util/nearest.h"
#include "runtime/util/split.h"

namespace vitrine {
namespace {

std::string number(uint64_t value) { return std::to_string(value); }

std::string sizes_of(const ViTConfig& c) {
  return number(c.dim) + "x" + number(c.depth) + "x" + number(c.mlp_hidden);
}

// "3,4,9"
std::string stages_of(const ViTConfig& c) {
  std::string text;
  for (uint64_t stage = 0; stage < c.stem_stages(); ++stage)
    text += (stage ? "," : "") + number(c.stem_blocks[stage]);
  return text;
}

// "a, b and c", of many the first few.
std::string list_of(const std::vector<std::string>& names) {
  constexpr size_t most = 3;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) {
    const bool last = i + 1 == names.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + names[i];
  }
  return names.size() > most ? text + " and " + number(names.size() - most) + " more" : text;
}

// "768x12x3072 16x16 class" as "768x3072 16x16 class".
std::string without_depth(std::string_view key) {
  const size_t first = key.find('x'), second = key.find('x', first + 1);
  return std::string(key.substr(0, first)) + std::string(key.substr(second));
}

using Rows = std::vector<const KnownArchitecture*>;

std::string names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const KnownArchitecture* row : rows) names.emplace_back(row->name);
  return list_of(names);
}

Rows rows_where(const Rows& rows, auto holds) {
  Rows kept;
  std::ranges::copy_if(rows, std::back_inserter(kept), [&](const auto* row) { return holds(*row); });
  return kept;
}

// DINOv3's are in the table once, as timm has and names them.
bool borrows_dinov3(std::string_view family) { return family == "hf_dinov3" || family == "meta_dinov3"; }

Rows of_family(std::string_view family) {
  const bool dinov3 = borrows_dinov3(family);
  Rows rows;
  for (const KnownArchitecture& known : known_architectures()) {
    if (dinov3 ? known.name.find("_dinov3") != known.name.npos : known.family == family)
      rows.push_back(&known);
  }
  return rows;
}

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream words{std::string(text)};
  return {std::istream_iterator<std::string>(words), {}};
}

// "--set heads=16", or of several fields.
std::string options(std::string_view fields) {
  std::string text;
  for (const std::string& field : words_of(fields)) text += (text.empty() ? "--set " : " --set ") + field;
  return text;
}

void set_fields(ViTConfig& config, std::string_view fields) {
  for (const std::string& field : words_of(fields)) set_field(config, field);
}

bool has_fields(const ViTConfig& config, const std::vector<std::pair<std::string, std::string>>& asked) {
  const auto fields = fields_of(config);
  return std::ranges::all_of(
      asked, [&](const auto& field) { return std::ranges::find(fields, field) != fields.end(); });
}

// Of what was asked for, what the table's rows may differ in beside heads and activation.
std::vector<std::pair<std::string, std::string>> told_apart(const Rows& rows, const InferHints& hints) {
  std::vector<std::pair<std::string, std::string>> asked;
  std::ranges::copy_if(hints.fields, std::back_inserter(asked), [&](const auto& field) {
    return std::ranges::any_of(rows, [&](const KnownArchitecture* row) {
      return (" " + std::string(row->set)).find(" " + field.first + "=") != std::string::npos;
    });
  });
  return asked;
}

// "--set heads=16 (vit_base_patch16_gap_224) or --set heads=12 (vit_base_patch16_siglip_gap_224)".
template <typename Value>
std::string choices(const Rows& rows, Value value) {
  std::vector<std::string> seen;
  std::string text;
  for (const KnownArchitecture* row : rows) {
    const std::string found = value(*row);
    if (std::ranges::find(seen, found) != seen.end()) continue;
    seen.push_back(found);
    const std::string option = found.empty() ? "another \"architecture\" in a config.json" : options(found);
    text += std::string(text.empty() ? "" : " or ") + option + " (" +
            names_of(rows_where(rows, [&](const auto& other) { return value(other) == found; })) + ")";
  }
  return text;
}

std::string heads_text(const KnownArchitecture& row) { return "heads=" + number(row.heads); }
std::string activation_text(const KnownArchitecture& row) {
  return "activation=" + std::string(name_of(row.activation));
}

// The fields that all of them set alike.
std::set<std::string> shared_fields(const Rows& rows) {
  std::set<std::string> shared;
  for (const std::string& field : words_of(rows.front()->set)) {
    const bool everywhere = std::ranges::all_of(rows, [&](const KnownArchitecture* row) {
      const std::vector<std::string> fields = words_of(row->set);
      return std::ranges::find(fields, field) != fields.end();
    });
    if (everywhere) shared.insert(field);
  }
  return shared;
}

// Throws where the rows don't agree in what `value` says of them.
template <typename Value>
void require_agreement(const Rows& rows, const char* field, Value value, const std::string& file) {
  const std::string first = value(*rows.front());
  if (std::ranges::all_of(rows, [&](const auto* row) { return value(*row) == first; })) return;
  throw Error(ErrorCode::bad_file, file + ": published models of these names and shapes differ in their " +
                                       field + ", expected " + choices(rows, value));
}

// Those that have what is said of the model.
Rows agreeing(const Rows& rows, const InferHints& hints) {
  const auto asked = told_apart(rows, hints);
  return rows_where(rows, [&](const KnownArchitecture& row) {
    return (asked.empty() || has_fields(config_of(row), asked)) &&
           (hints.heads == 0 || row.heads == hints.heads) &&
           (!hints.activation || row.activation == *hints.activation);
  });
}

void take(ViTConfig& c, const Naming& naming, const Rows& rows, const InferHints& hints,
          const std::string& file) {
  const Rows missing = rows_where(rows, [](const KnownArchitecture& row) { return !row.lacks.empty(); });
  if (!missing.empty()) {
    throw Error(
        ErrorCode::bad_file,
        file + ": its names and shapes are those of " + names_of(missing) + ": " +
            std::string(missing.front()->lacks) +
            " not supported yet (a config.json with another \"architecture\" would tell it from these)");
  }
  if (hints.heads == 0) require_agreement(rows, "heads", heads_text, file);
  if (!hints.activation) require_agreement(rows, "activation", activation_text, file);
  const std::set<std::string> common = shared_fields(rows);
  const auto others = [&](const KnownArchitecture& row) {
    std::string text;
    for (const std::string& field : words_of(row.set)) {
      if (!common.contains(field)) text += (text.empty() ? "" : " ") + field;
    }
    return text;
  };
  require_agreement(rows, "positions, norms or pooling", others, file);
  c.heads = rows.front()->heads;
  c.activation = rows.front()->activation;
  c.eps = rows.front()->eps;
  const Pool pool = c.pool;
  set_fields(c, rows.front()->set);
  if (rows.front()->family != naming.family->name) c.pool = pool;  // each library has its own
}

// What is taken for want of anything better, and by whose example.
void guess(ViTConfig& c, const Naming& naming, const Rows& family, const InferHints& hints,
           const std::string& file, std::vector<std::string>& assumed) {
  const Rows alike = rows_where(family, [&](const KnownArchitecture& row) {
    const bool class_token = row.key.find(" class") != row.key.npos;
    return row.key.starts_with(sizes_of(c) + " ") && class_token == c.class_token && row.lacks.empty() &&
           row.set.empty() && config_of(row).attention == c.attention;
  });
  if (hints.heads != 0) return;                             // whoever says that much knows the model
  if (c.attention == AttentionKind::talking_heads) return;  // their mixture counts them
  std::string example;
  if (!alike.empty()) {
    require_agreement(alike, "heads", heads_text, file);
    c.heads = alike.front()->heads;
    example = " (as " + names_of(alike) + (alike.size() > 1 ? " have)" : " has)");
  }
  if (c.heads == 0) return;  // validate() asks for them
  std::string guesses = number(c.heads) + " heads" + example;
  if (!hints.activation && naming.family->name == "timm")
    guesses += " and the activation " + std::string(name_of(c.activation));
  assumed.push_back(file + ": " + guesses + " are assumed, as nothing says it (--set heads=N does)");
}

}  // namespace

std::string architecture_key(const ViTConfig& c) {
  std::string key = sizes_of(c) + " " + number(c.patch_height) + "x" + number(c.patch_width);
  const auto add = [&](bool holds, const std::string& word) {
    if (holds) key += " " + word;
  };
  add(c.stem != Stem::none,
      "stem=" + std::string(name_of(c.stem)) + ":" + number(c.stem_width) + ":" + stages_of(c));
  add(c.class_token, "class");
  add(c.distillation_token, "distillation");
  add(c.registers > 0, "registers" + number(c.registers));
  add(c.positions == Positions::none, "no_positions");
  add(c.positions != Positions::none && c.prefix_tokens() > 0 && c.position_span == PositionSpan::patches,
      "positions_of_patches");
  add(c.patch_norm, "patch_norm");
  add(!c.patch_bias, "no_patch_bias");
  add(c.pre_norm, "pre_norm");
  add(c.layer_scale, "layer_scale");
  add(!c.mlp_scale, "no_mlp_scale");
  add(!c.qkv_bias, "no_qkv_bias");
  add(!c.key_bias, "no_key_bias");
  add(c.head_norm, "head_norm");
  add(c.attention_norm, "attention_norm");
  add(c.mlp_norm, "mlp_norm");
  add(!c.projection_bias, "no_projection_bias");
  add(!c.mlp_bias, "no_mlp_bias");
  add(c.rotary_learned, "rotary_frequencies");
  const std::string mlp = c.relative_hidden ? "_mlp" + number(c.relative_hidden) : "";
  add(c.relative_bias != RelativeBias::none, std::string(name_of(c.relative_bias)) + "_bias" + mlp);
  add(c.relative_swin, "relative_swin");
  add(c.neck > 0, "neck" + number(c.neck));
  add(c.block == BlockKind::parallel, "parallel");
  add(c.branches > 1, "branches" + number(c.branches));
  add(c.attention != AttentionKind::plain, std::string(name_of(c.attention)));
  add(c.class_blocks > 0, "class_blocks" + number(c.class_blocks));
  add(c.norm == NormKind::rms, "rms");
  add(c.mlp == MlpKind::swiglu, "swiglu");
  add(c.final_norm, "norm");
  add(c.fc_norm, "fc_norm");
  add(c.pool == Pool::attention, "attention_pool");
  add(c.representation_size > 0, "pre_logits");
  return key;
}

ViTConfig config_of(const KnownArchitecture& known) {
  ViTConfig c;
  std::istringstream words{std::string(known.key)};
  char x = 0;
  words >> c.dim >> x >> c.depth >> x >> c.mlp_hidden >> c.patch_height >> x >> c.patch_width;
  c.class_token = c.final_norm = false;
  for (std::string word; words >> word;) {
    if (word.starts_with("registers")) c.registers = std::stoul(word.substr(std::string("registers").size()));
    if (word.starts_with("stem=")) {
      const std::vector<std::string_view> parts = split(word, ':');
      set_field(c, parts.at(0));
      c.stem_width = std::stoul(std::string(parts.at(1)));
      if (!parts.at(2).empty()) set_field(c, "stem_blocks=" + std::string(parts.at(2)));
    }
    if (word.starts_with("neck")) c.neck = std::stoul(word.substr(std::string("neck").size()));
    c.class_token |= word == "class";
    c.distillation_token |= word == "distillation";
    c.patch_norm |= word == "patch_norm";
    c.pre_norm |= word == "pre_norm";
    c.layer_scale |= word == "layer_scale";
    c.final_norm |= word == "norm";
    c.fc_norm |= word == "fc_norm";
    if (word == "no_positions") c.positions = Positions::none;
    if (word == "positions_of_patches") c.position_span = PositionSpan::patches;
    if (word == "no_patch_bias") c.patch_bias = false;
    if (word == "no_qkv_bias") c.qkv_bias = false;
    if (word == "no_key_bias") c.key_bias = false;
    if (word == "no_mlp_scale") c.mlp_scale = false;
    if (word == "no_projection_bias") c.projection_bias = false;
    if (word == "no_mlp_bias") c.mlp_bias = false;
    if (word == "parallel") c.block = BlockKind::parallel;
    if (word.starts_with("class_blocks"))
      c.class_blocks = std::stoul(word.substr(std::string("class_blocks").size()));
    for (const AttentionKind kind : {AttentionKind::differential, AttentionKind::talking_heads}) {
      if (word == name_of(kind)) c.attention = kind;
    }
    if (word.starts_with("branches")) c.branches = std::stoul(word.substr(std::string("branches").size()));
    if (word == "rms") c.norm = NormKind::rms;
    for (const RelativeBias kind : {RelativeBias::own, RelativeBias::shared, RelativeBias::decomposed}) {
      const std::string bias = std::string(name_of(kind)) + "_bias";
      if (!word.starts_with(bias)) continue;
      c.relative_bias = kind;
      if (word.size() > bias.size()) c.relative_hidden = std::stoul(word.substr(bias.size() + 4));
    }
    c.relative_swin |= word == "relative_swin";
    c.head_norm |= word == "head_norm";
    c.attention_norm |= word == "attention_norm";
    c.mlp_norm |= word == "mlp_norm";
    if (word == "rotary_frequencies") {
      c.rotary = Rotary::neighbours;
      c.rotary_learned = true;
    }
    if (word == "swiglu") c.mlp = MlpKind::swiglu;
    if (word == "attention_pool") c.pool = Pool::attention;
    if (word == "pre_logits") c.representation_size = c.dim;
  }
  if (c.pool != Pool::attention && (c.fc_norm || !c.class_token)) c.pool = Pool::mean;
  c.distilled_head = c.distillation_token;
  c.heads = known.heads;
  c.activation = known.activation;
  c.eps = known.eps;
  set_fields(c, known.set);
  return c;
}

std::optional<ViTConfig> find_architecture(std::string_view name) {
  if (const auto known = find_preset(name)) return known;
  name = name.substr(0, name.find('.'));
  for (const KnownArchitecture& known : known_architectures()) {
    if (known.name == name && known.lacks.empty()) return config_of(known);
  }
  return std::nullopt;
}

ViTConfig architecture(std::string_view name) {
  if (const auto known = find_architecture(name)) return *known;
  name = name.substr(0, 80);
  throw Error(ErrorCode::usage, "--arch: found '" + std::string(name) + "', expected a name such as " +
                                    nearest(architecture_names(), name));
}

std::vector<std::string_view> architecture_names() {
  std::vector<std::string_view> names = preset_names();
  const size_t presets = names.size();
  for (const KnownArchitecture& known : known_architectures()) {
    const auto end = names.begin() + static_cast<std::ptrdiff_t>(presets);
    if (known.lacks.empty() && std::find(names.begin(), end, known.name) == end) names.push_back(known.name);
  }
  return names;
}

void fill_unseen(ViTConfig& c, const Naming& naming, const InferHints& hints, const std::string& file,
                 std::vector<std::string>& assumed) {
  if (c.per_head_maps) return;  // their count is the heads'
  if (naming.family->name == "hf_clip" && !hints.activation) {
    assumed.push_back(
        file +
        ": the activation gelu_quick is assumed, transformers' default and OpenAI's, as nothing says it "
        "(LAION's have gelu: --set activation=gelu)");
  }
  if (naming.family->name == "hf_pixtral" && !hints.activation) {
    assumed.push_back(
        file +
        ": the activation silu is assumed, Mistral's, as nothing says it (transformers' default "
        "is gelu: --set activation=gelu)");
  }
  const Rows family = of_family(naming.family->name);
  const std::string key =
      architecture_key(c) + (naming.gammas || borrows_dinov3(naming.family->name) ? " gammas" : "");
  Rows same = rows_where(family, [&](const KnownArchitecture& row) { return row.key == key; });
  if (same.empty()) {  // with blocks cut off or put on
    same = rows_where(
        family, [&](const KnownArchitecture& row) { return without_depth(row.key) == without_depth(key); });
  }
  same = agreeing(same, hints);
  if (!same.empty()) {
    take(c, naming, same, hints, file);
  } else {
    guess(c, naming, family, hints, file, assumed);
  }
}

}  // namespace vitrine

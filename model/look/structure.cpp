#include "model/look/structure.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "model/look/attention_table.h"
#include "model/vit/parameters.h"
#include "runtime/graph/op.h"

namespace vitrine {
namespace {

// What the parts are, by the end of their paths; of several that fit, the first.
constexpr std::array<std::pair<std::string_view, std::string_view>, 58> words{{
    {"image", "the pixels, normalised"},
    {"patch_embed", "cuts the image into patches and maps each to a token"},
    {"patch_embed.norm", "each token normalised"},
    {"patch_embed.backbone", "convolutions between the image and its patches"},
    {"tokens", "puts the class token and the like in front, and adds positions"},
    {"tokens.repeat", "the detection tokens, for each image"},
    {"tokens.detection", "these behind the patches"},
    {"positions", "positions added"},
    {"norm_pre", "each token normalised"},
    {"blocks", "the encoder"},
    {"blocks_token_only", "blocks in which the class token alone looks"},
    {"norm1", "each token normalised, for the attention"},
    {"attn", "tokens look at each other"},
    {"attn.windows", "the grid cut into windows, with zeros beyond it"},
    {"attn.merge", "the windows put together again"},
    {"attn.rel_pos", "queries times the relative positions of rows and of columns"},
    {"attn.qkv", "queries, keys and values of all heads side by side"},
    {"attn.q", "queries of all heads side by side"},
    {"attn.k", "keys of all heads side by side"},
    {"attn.v", "values of all heads side by side"},
    {"attn.q_norm", "queries normalised, head by head"},
    {"attn.k_norm", "keys normalised, head by head"},
    {"attn.rotary", "queries and keys turned by their patch's place"},
    {"attn.q_rotary", "queries turned by their patch's place"},
    {"attn.k_rotary", "keys turned by their patch's place"},
    {"attn.v.twice", "a head's values for both of its softmaxes"},
    {"attn.difference", "what the first softmax gathers, less a share of what the second does"},
    {"attn.sub_norm", "that, normalised head by head"},
    {"attn.proj_l", "the scores of all heads mixed"},
    {"attn.weights", "their softmaxes"},
    {"attn.proj_w", "these of all heads mixed"},
    {"attn.sums", "what each head gathers"},
    {"attn.norm", "the heads side by side, normalised"},
    {"attn.proj", "the heads mixed by W_o, and the block's input added"},
    {"norm2", "each token normalised, for the MLP"},
    {"attns", "attentions side by side, whose results are added"},
    {"ffns", "MLPs side by side, whose results are added"},
    {"mlp", "each token on its own"},
    {"mlp.fc1", "wider, and the activation"},
    {"mlp.norm", "the wide rows normalised"},
    {"mlp.gate", "the activated half times the other"},
    {"mlp.fc2", "back to the width, and the attention's result added"},
    {"norm", "each token normalised"},
    {"neck", "fewer columns, and each patch mixed with its neighbours"},
    {"neck.0", "fewer columns"},
    {"neck.1", "each token normalised"},
    {"neck.2", "a convolution of 3 x 3 patches"},
    {"neck.3", "each token normalised"},
    {"class_token", "the class token alone"},
    {"distillation_token", "the distillation token alone"},
    {"first_patch", "the first patch alone"},
    {"pool", "the tokens become one vector"},
    {"attn_pool", "a learned query looks at the patches"},
    {"pre_logits", "the representation layer and its tanh"},
    {"visual_projection", "into the space that images and texts share"},
    {"head", "a number for each class"},
    {"head_dist", "a number for each class, from the distillation token"},
    {"softmax", "numbers become probabilities"},
}};

std::string words_for(const std::string& path) {
  for (const auto& [end, text] : words) {
    if (path == end || path.ends_with("." + std::string(end))) return std::string(text);
  }
  return {};
}

bool is_attention(const Node& node) {
  return node.op->name == "attention" && node.name.starts_with("blocks.");
}

std::vector<StructureNode> attention_rows(const ViTConfig& config, const std::string& path,
                                          const Value& out) {
  std::vector<StructureNode> rows;
  for (const AttentionRow& row : attention_table(config, {out.shape[0], out.shape[1]})) {
    StructureNode child{.name = row.name, .path = path, .what = row.from, .dtype = out.dtype};
    for (const std::string& side : row.shape) {
      uint64_t number = 0;
      std::from_chars(side.data(), side.data() + side.size(), number);
      child.shape.push_back(number);
    }
    rows.push_back(std::move(child));
  }
  return rows;
}

// How many numbers the model learns in each of the graph's constants. What is computed (angles, tables that a
// small network makes) counts as what is learned of it: its network, or its block's share of the frequencies.
std::map<std::string, uint64_t, std::less<>> learned_numbers(const ViTConfig& config) {
  const std::vector<Parameter> parameters = parameters_of(config);
  std::map<std::string, uint64_t, std::less<>> numbers;
  for (const Parameter& parameter : parameters) {
    uint64_t& count = numbers[parameter.name];
    if (parameter.learned()) {
      count = parameter.shape.elements();
      continue;
    }
    count = 0;
    for (const Parameter& part : parameters) {
      if (!part.aside) continue;
      if (part.name.starts_with(parameter.name + ".")) count += part.shape.elements();
      if (parameter.module == Module::rotary && part.module == Module::rotary_frequencies)
        count += part.shape.elements() / config.depth;
    }
  }
  return numbers;
}

StructureNode leaf_of(const ViTConfig& config, const Graph& graph, const Node& node,
                      std::map<std::string, uint64_t, std::less<>>& uncounted) {
  const Value& out = graph.value(node.outputs.front());
  StructureNode leaf{.name = parts_of_path(node.name).back(),
                     .path = node.name,
                     .what = node.name == "tokens" && config.positions == Positions::none
                                 ? "puts the class token and the like in front"
                                 : words_for(node.name),
                     .operator_name = std::string(node.op->name),
                     .shape = {out.shape.dims().begin(), out.shape.dims().end()},
                     .dtype = out.dtype};
  for (const ValueId id : node.inputs) {
    if (!id || graph.value(id).role != Role::constant) continue;
    const auto found = uncounted.find(graph.value(id).name);
    if (found == uncounted.end()) continue;
    leaf.parameters += found->second;
    uncounted.erase(found);  // what several parts read is the first one's
  }
  // The mathematics asks for the same arithmetic on any device.
  leaf.flops = node.op->flops(LowerContext(graph, node, Capabilities{}));
  if (is_attention(node)) leaf.children = attention_rows(config, node.name, out);
  return leaf;
}

// The child that stands for this part, made where there is none. What lies between two runs of a part's nodes
// doesn't split it.
StructureNode& group(std::vector<StructureNode>& level, const std::string& name, const std::string& path) {
  const auto is_it = [&](const StructureNode& node) {
    return node.path == path && node.operator_name.empty();
  };
  const auto found = std::ranges::find_if(level, is_it);
  if (found != level.end()) return *found;
  const bool block = path == "blocks." + name;
  return level.emplace_back(
      StructureNode{.name = block ? "block " + name : name, .path = path, .what = words_for(path)});
}

void add_up(StructureNode& node) {
  for (StructureNode& child : node.children) {
    add_up(child);
    node.parameters += child.parameters;
    node.flops += child.flops;
  }
  if (!node.operator_name.empty() || node.children.empty()) return;
  // What comes out of a group is what comes out of its last part.
  node.shape = node.children.back().shape;
  node.dtype = node.children.back().dtype;
}

}  // namespace

std::vector<std::string> parts_of_path(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('.', at), path.size());
    parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::vector<StructureNode> structure_of(const ViTConfig& config, const Graph& graph) {
  StructureNode root;
  for (const ValueId id : graph.with_role(Role::input)) {
    const Value& input = graph.value(id);
    root.children.push_back({.name = input.name,
                             .path = input.name,
                             .what = words_for(input.name),
                             .shape = {input.shape.dims().begin(), input.shape.dims().end()},
                             .dtype = input.dtype});
  }
  // A name that other nodes' names begin with is a group, which the node of that name is a part of.
  std::set<std::string> groups;
  for (const Node& node : graph.nodes()) {
    for (size_t dot = node.name.find('.'); dot != std::string::npos; dot = node.name.find('.', dot + 1))
      groups.insert(node.name.substr(0, dot));
  }
  std::map<std::string, uint64_t, std::less<>> uncounted = learned_numbers(config);
  for (const Node& node : graph.nodes()) {
    std::vector<StructureNode>* level = &root.children;
    std::vector<std::string> parts = parts_of_path(node.name);
    if (!groups.contains(node.name)) parts.pop_back();
    std::string path;
    for (const std::string& part : parts) {
      path += (path.empty() ? "" : ".") + part;
      level = &group(*level, part, path).children;
    }
    level->push_back(leaf_of(config, graph, node, uncounted));
  }
  add_up(root);
  return std::move(root.children);
}

}  // namespace vitrine

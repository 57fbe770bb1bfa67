// The shape walk of a model as a tree: what happens to an image, part by part, with shapes, parameters and
// arithmetic. Its leaves with an operator are the nodes of the model's graph, in their order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/vit/vit_graph.h"

namespace vitrine {

struct StructureNode {
  std::string name;             // within its parent: "attn", "block 3"
  std::string path;             // "blocks.0.attn": what names of nodes and parameters begin with
  std::string what;             // in words; empty where the name says it all
  std::string operator_name;    // of leaves; empty for groups, inputs and rows of the attention's table
  std::vector<uint64_t> shape;  // what comes out of it
  DType dtype = DType::f32;
  uint64_t parameters = 0;  // learned, of all inside
  double flops = 0;         // of all inside, a multiply-add counting two
  std::vector<StructureNode> children;
};

// The graph must be of make_vit_graph() and of this config. The node of an attention has the walk in the
// letters of the paper (model/look/attention_table.h) as children.
std::vector<StructureNode> structure_of(const ViTConfig& config, const Graph& graph);

// "blocks.11.attn.qkv" as ["blocks", "11", "attn", "qkv"].
std::vector<std::string> parts_of_path(const std::string& path);

}  // namespace vitrine

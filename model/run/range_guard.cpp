#include "model/run/range_guard.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "runtime/ops/elementwise/magnitude.h"
#include "runtime/ops/moves/concat.h"
#include "runtime/tune/choice_store.h"
#include "runtime/util/four_digits.h"

namespace vitrine {
namespace {

const char* const magnitudes_name = "magnitudes";

std::map<std::string, const Node*, std::less<>> nodes_by_name(const Graph& graph) {
  std::map<std::string, const Node*, std::less<>> nodes;
  for (const Node& node : graph.nodes()) nodes.emplace(node.name, &node);
  return nodes;
}

std::map<std::string, DType> constants_of(const Graph& graph) {
  std::map<std::string, DType> constants;
  for (const ValueId id : graph.with_role(Role::constant))
    constants.emplace(graph.value(id).name, graph.value(id).dtype);
  return constants;
}

// The node that computes a value, and which of its outputs that is; none for an input or a constant.
std::pair<const Node*, uint32_t> producer_of(const Graph& graph, ValueId id) {
  for (const Node& node : graph.nodes()) {
    const auto found = std::ranges::find(node.outputs, id);
    if (found != node.outputs.end()) return {&node, static_cast<uint32_t>(found - node.outputs.begin())};
  }
  return {nullptr, 0};
}

// The larger magnitude, infinity above numbers and NaN above infinity.
float larger(float a, float b) {
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffu; };
  return bits(b) > bits(a) ? b : a;
}

bool is_part_of(std::string_view name, std::string_view layer) {
  return name.starts_with(layer) && (name.size() == layer.size() || name[layer.size()] == '.');
}

}  // namespace

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

// The recording with magnitudes. Its weights are its own, in f32, and go with it.
struct RangeGuard::Probe {
  Probe(RangeGuard& guard, uint64_t batch_size, const GoOn& preparing)
      : batch(batch_size), weights(guard.pipelines_, *guard.model_.constants) {
    ViTGraphOptions options = guard.graph_of_(batch);
    options.dtype = DType::f32;
    options.layers = {};
    const auto plain = make_vit_graph(guard.model_.config, options);
    executable =
        std::make_unique<Executable>(weights,
                                     make_plan(with_magnitudes(*plain, guard.stored_),
                                               guard.pipelines_.device().capabilities(), guard.plan_),
                                     nullptr, preparing);
  }

  // The graph with a magnitude taken right behind each of these nodes, so that no memory is kept for it.
  static std::shared_ptr<const Graph> with_magnitudes(const Graph& source, std::span<const Stored> stored) {
    std::map<std::pair<std::string, uint32_t>, size_t> place;
    for (size_t i = 0; i < stored.size(); ++i) place[{stored[i].node, stored[i].output}] = i;
    std::vector<ValueId> magnitudes(stored.size());
    auto graph = std::make_shared<Graph>();
    std::vector<ValueId> copies(source.values().size());
    for (uint32_t i = 0; i < copies.size(); ++i) {
      const Value& value = source.values()[i];
      if (value.role == Role::input) copies[i] = graph->input(value.name, value.shape, value.dtype);
      if (value.role == Role::constant) copies[i] = graph->constant(value.name, value.shape, value.dtype);
    }
    for (const Node& node : source.nodes()) {
      std::vector<ValueId> inputs;
      for (const ValueId id : node.inputs) inputs.push_back(id ? copies[id.index] : ValueId{});
      const auto outputs = graph->add(*node.op, node.name, std::move(inputs), node.attributes);
      for (uint32_t k = 0; k < outputs.size(); ++k) {
        copies[node.outputs[k].index] = outputs[k];
        if (const auto found = place.find({node.name, k}); found != place.end())
          magnitudes[found->second] = magnitude(*graph, node.name + ".magnitude", outputs[k]);
      }
    }
    for (const ValueId id : source.with_role(Role::output))
      graph->output(copies[id.index], source.value(id).name);
    graph->output(concat(*graph, magnitudes_name, magnitudes, 0), magnitudes_name);
    return graph;
  }

  std::vector<float> magnitudes() const {
    const auto bytes = executable->output(executable->output_index(magnitudes_name));
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  uint64_t batch;
  WeightStore weights;
  std::unique_ptr<Executable> executable;
};

RangeGuard::RangeGuard(PipelineStore& pipelines, const Model& model, GraphOf graph_of, PlanOptions plan,
                       Warn warn)
    : pipelines_(pipelines),
      model_(model),
      graph_of_(std::move(graph_of)),
      plan_(with_stored_choices(std::move(plan), pipelines.device().capabilities(), warn)),
      warn_(std::move(warn)) {}

RangeGuard::~RangeGuard() = default;

void RangeGuard::release() { probe_.reset(); }

// Which tensors and constants are f16, and by whose type, shows in what changes when a layer alone is f32.
void RangeGuard::look_at_graph() {
  if (std::exchange(graph_seen_, true)) return;
  ViTGraphOptions options = graph_of_(1);
  options.layers = {};
  options.dtype = DType::f32;
  const auto wide = make_vit_graph(model_.config, options);
  const auto wide_nodes = nodes_by_name(*wide);
  options.dtype = DType::f16;
  const auto half = make_vit_graph(model_.config, options);
  std::set<std::pair<std::string, uint32_t>> seen;
  for (const std::string& layer : layers_of(model_.config, options)) {
    ranges_.push_back({.layer = layer});
    options.layers = {{layer, DType::f32}};
    const auto changed = make_vit_graph(model_.config, options);
    const auto changed_nodes = nodes_by_name(*changed);
    for (const Node& node : half->nodes()) {
      for (uint32_t k = 0; k < node.outputs.size(); ++k) {
        if (half->value(node.outputs[k]).dtype != DType::f16) continue;
        const auto other = changed_nodes.find(node.name);
        if (other != changed_nodes.end() && changed->value(other->second->outputs[k]).dtype == DType::f16)
          continue;
        // A conversion that f32 does without is looked at in what it converts.
        std::pair<const Node*, uint32_t> source{&node, k};
        while (source.first && !wide_nodes.contains(source.first->name))
          source = producer_of(*half, source.first->inputs.front());
        if (source.first && seen.insert({source.first->name, source.second}).second)
          stored_.push_back({source.first->name, source.second, layer});
      }
    }
    const auto types = constants_of(*changed);
    for (const auto& [name, dtype] : constants_of(*half)) {
      if (dtype == DType::f16 && types.contains(name) && types.at(name) != DType::f16)
        layer_of_constant_.emplace(name, layer);
    }
  }
}

// The layer whose type decides whether this is f16; "" for none.
std::string RangeGuard::layer_of(const WeightRange& range) const {
  if (!range.bound) {
    const auto found = layer_of_constant_.find(range.constant);
    return found == layer_of_constant_.end() ? "" : found->second;
  }
  const std::string& at = range.feeds.empty() ? range.constant : range.feeds;
  std::string closest;  // "attn_pool.mlp" is a layer of its own within "attn_pool"
  for (const LayerRange& row : ranges_) {
    if (is_part_of(at, row.layer) && row.layer.size() > closest.size()) closest = row.layer;
  }
  return closest;
}

void RangeGuard::look_at_weights() {
  if (std::exchange(weights_seen_, true)) return;
  // Random weights are far below, and take longer to make than to use.
  if (model_.family == "random") return;
  weights_ = weight_ranges(model_);
  std::vector<std::string> beyond;
  WeightRange worst;
  for (const WeightRange& range : weights_) {
    if (range.largest <= (range.bound ? f16_safe : f16_largest)) continue;
    look_at_graph();
    const std::string layer = layer_of(range);
    if (layer.empty()) continue;
    if (std::ranges::find(beyond, layer) == beyond.end()) beyond.push_back(layer);
    if (range.largest > worst.largest) worst = range;
  }
  promote(beyond, worst.largest, worst.bound ? "possible in " + worst.constant : worst.constant);
}

const LayerTypes& RangeGuard::layers() {
  look_at_weights();
  return layers_;
}

Plan RangeGuard::plan(ViTGraphOptions options) {
  if (options.dtype == DType::f16) options.layers.insert(layers().begin(), layers().end());
  return make_plan(make_vit_graph(model_.config, options), pipelines_.device().capabilities(), plan_);
}

bool RangeGuard::promote(const std::vector<std::string>& layers, float largest, const std::string& where) {
  std::string names;
  size_t count = 0;
  for (const std::string& layer : layers) {
    if (!layers_.emplace(layer, DType::f32).second) continue;
    names += (count++ ? ", " : "") + layer;
  }
  if (count == 0) return false;
  if (warn_) {
    warn_("f16 ends at 65504: " + names + (count == 1 ? " runs" : " run") + " in f32 (largest magnitude " +
          four_digits(largest) + ", " + where + ")");
  }
  return true;
}

bool RangeGuard::check(uint64_t batch, const Fill& fill, const GoOn& preparing) {
  look_at_weights();
  look_at_graph();
  if (stored_.empty()) return false;
  if (!probe_ || probe_->batch != batch) {
    probe_.reset();
    probe_ = std::make_unique<Probe>(*this, batch, preparing);
  }
  fill(*probe_->executable);
  probe_->executable->run();
  const std::vector<float> magnitudes = probe_->magnitudes();
  saw_nonfinite_ = false;
  std::vector<std::string> beyond;
  float largest = 0;
  std::string where;
  for (size_t i = 0; i < stored_.size(); ++i) {
    const float found = magnitudes[i];
    LayerRange& row = *std::ranges::find(ranges_, stored_[i].layer, &LayerRange::layer);
    if (row.value.empty() || larger(row.largest, found) != row.largest) {
      row.largest = found;
      row.value = stored_[i].node;
    }
    if (!std::isfinite(found)) {
      saw_nonfinite_ = true;
      continue;
    }
    if (found <= f16_safe || layers_.contains(row.layer)) continue;
    if (std::ranges::find(beyond, row.layer) == beyond.end()) beyond.push_back(row.layer);
    if (found > largest) {
      largest = found;
      where = stored_[i].node;
    }
  }
  return promote(beyond, largest, where);
}

bool RangeGuard::overflowed(std::span<const float> results, uint64_t batch, const Fill& fill,
                            const GoOn& preparing) {
  if (all_finite(results)) return false;
  const bool promoted = check(batch, fill, preparing);
  release();
  return promoted;
}

std::vector<LayerRange> RangeGuard::ranges() {
  look_at_weights();
  look_at_graph();
  std::vector<LayerRange> ranges = ranges_;
  for (const WeightRange& range : weights_) {
    const auto row = std::ranges::find(ranges, range.bound ? "" : layer_of(range), &LayerRange::layer);
    if (row == ranges.end() || range.largest <= row->largest_constant) continue;
    row->largest_constant = range.largest;
    row->constant = range.constant;
  }
  return ranges;
}

}  // namespace vitrine

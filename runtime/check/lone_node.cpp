#include "runtime/check/lone_node.h"

#include <cstring>
#include <map>

#include "runtime/check/op_case.h"
#include "runtime/util/half.h"

namespace vitrine::reference {
namespace {

// SplitMix64: neighbouring numbers give unrelated ones.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

float number(ValueId id, uint64_t element) {
  // 24 bits, which a float holds.
  const auto bits = static_cast<float>(mix(uint64_t{id.index} << 48 ^ element) >> 40);
  return bits * 0x1p-23f - 1;
}

std::shared_ptr<const Graph> alone(const Graph& graph, const Node& node) {
  auto lone = std::make_shared<Graph>();
  std::map<ValueId, ValueId> made;  // an input that is read twice stays one
  std::vector<ValueId> inputs;
  for (const ValueId id : node.inputs) {
    if (id && !made.contains(id)) {
      const Value& value = graph.value(id);
      const std::string name = std::to_string(made.size());
      made[id] = value.role == Role::constant ? lone->constant(name, value.shape, value.dtype)
                                              : lone->input(name, value.shape, value.dtype);
    }
    inputs.push_back(id ? made[id] : ValueId{});
  }
  const auto outputs = lone->add(*node.op, node.name, inputs, node.attributes);
  for (size_t i = 0; i < outputs.size(); ++i) lone->output(outputs[i], "out" + std::to_string(i));
  return lone;
}

}  // namespace

LoneNode::LoneNode(const Graph& graph, const Node& node) : graph_(alone(graph, node)) {}

double LoneNode::value(size_t input, uint64_t element) const {
  const ValueId id = node().inputs.at(input);
  return round_to(graph_->value(id).dtype, static_cast<double>(number(id, element)));
}

std::vector<double> LoneNode::values(size_t which) const {
  std::vector<double> values(input(which).shape.elements());
  for (uint64_t i = 0; i < values.size(); ++i) values[i] = value(which, i);
  return values;
}

std::vector<std::byte> LoneNode::bytes(ValueId id) const {
  const Value& value = graph_->value(id);
  std::vector<std::byte> bytes(value.bytes());
  const uint64_t elements = value.shape.elements();
  const auto put = [&](auto as_stored) {
    for (uint64_t i = 0; i < elements; ++i) {
      const auto stored = as_stored(number(id, i));
      std::memcpy(&bytes[i * sizeof stored], &stored, sizeof stored);
    }
  };
  switch (value.dtype) {
    case DType::f32:
      put([](float x) { return x; });
      break;
    case DType::f16:
      put([](float x) { return f32_to_f16(x); });
      break;
    case DType::bf16:
      put([](float x) { return f32_to_bf16(x); });
      break;
    case DType::u32:
      put([](float) { return uint32_t{0}; });
      break;
  }
  return bytes;
}

ConstantParts LoneNode::find(const std::string& name, const Shape&, DType dtype) {
  constant_ = bytes(graph_->find(name));
  return {{dtype, constant_}};
}

}  // namespace vitrine::reference

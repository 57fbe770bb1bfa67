// A computation as plain data: values (shape, dtype, role) and nodes (operator, attributes, inputs,
// outputs) in an order in which they can run. Building one touches no GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/graph/tensor.h"

namespace vitrine {

struct OpDef;

// Which value of a Graph; a default-made one is "none" and stands for an optional input left out.
struct ValueId {
  uint32_t index = ~0u;
  explicit operator bool() const { return index != ~0u; }
  auto operator<=>(const ValueId&) const = default;
};

// A state lies in memory that outlives a run, and other graphs may share it.
enum class Role : uint8_t { input, constant, intermediate, output, state };
std::string_view name_of(Role role);

// Where a state lies: a named buffer (StateStore has them), and how many elements come before it there.
struct StatePlace {
  std::string buffer;
  uint64_t first = 0;
  bool operator==(const StatePlace&) const = default;
};

struct Value {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  Role role = Role::intermediate;
  StatePlace place = {};  // of a state
  uint64_t bytes() const { return shape.elements() * size_of(dtype); }
  uint64_t offset() const { return place.first * size_of(dtype); }  // of a state in its buffer, in bytes
};
// Whether both are states and have bytes in common.
bool overlap(const Value& a, const Value& b);

// An operator's settings: names with whole numbers or real ones, kept sorted by name.
class Attributes {
 public:
  using Setting = std::variant<int64_t, double>;
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string_view, Setting>> settings);

  void set(std::string_view name, Setting setting);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name) const;  // throws when missing or real
  double number(std::string_view name) const;    // throws when missing
  bool flag(std::string_view name) const;        // false when missing
  std::span<const std::pair<std::string, Setting>> all() const { return settings_; }
  std::string to_string() const;  // "{activation=1, eps=1e-06}"
  bool operator==(const Attributes&) const = default;

 private:
  const Setting* find(std::string_view name) const;
  std::vector<std::pair<std::string, Setting>> settings_;
};

struct Node {
  const OpDef* op = nullptr;
  std::string name;
  Attributes attributes;
  std::vector<ValueId> inputs;  // an optional input that is left out is a none ValueId
  std::vector<ValueId> outputs;
};

class Graph {
 public:
  ValueId input(std::string name, Shape shape, DType dtype = DType::f32);
  // A constant's data is found by name when an Executable is built.
  ValueId constant(std::string name, Shape shape, DType dtype = DType::f32);
  // Appends a node and returns its outputs; the operator's infer decides their shapes or throws an
  // Error that names the node. The free functions of runtime/ops/*.h call this.
  std::vector<ValueId> add(const OpDef& op, std::string name, std::vector<ValueId> inputs,
                           Attributes attributes = {});
  // Marks an intermediate value as a result of the graph under a new name.
  void output(ValueId value, std::string name);

  // What a state holds when the nodes that read it run: several may be views of one buffer. Nodes run in
  // their order, so those behind a store() to the same place read what was stored.
  ValueId state(std::string name, Shape shape, StatePlace place, DType dtype = DType::f32);
  // Has an intermediate value written to a state's place instead of to memory of its own.
  void store(ValueId value, StatePlace place);

  const Value& value(ValueId id) const;
  std::span<const Value> values() const { return values_; }
  std::span<const Node> nodes() const { return nodes_; }
  std::vector<ValueId> with_role(Role role) const;
  ValueId find(std::string_view name) const;  // none when there is no such value
  std::string to_string() const;

 private:
  std::vector<Value> values_;
  std::vector<Node> nodes_;
};

}  // namespace vitrine

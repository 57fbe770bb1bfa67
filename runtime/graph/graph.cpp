#include "runtime/graph/graph.h"

#include <algorithm>
#include <charconv>

#include "runtime/graph/op.h"
#include "runtime/util/error.h"

namespace vitrine {

std::string_view name_of(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::constant:
      return "constant";
    case Role::intermediate:
      return "intermediate";
    case Role::output:
      return "output";
    case Role::state:
      return "state";
  }
  return "?";
}

Attributes::Attributes(std::initializer_list<std::pair<std::string_view, Setting>> settings) {
  for (const auto& [name, setting] : settings) set(name, setting);
}

void Attributes::set(std::string_view name, Setting setting) {
  const auto at = std::lower_bound(settings_.begin(), settings_.end(), name,
                                   [](const auto& entry, std::string_view key) { return entry.first < key; });
  if (at != settings_.end() && at->first == name) {
    at->second = setting;
  } else {
    settings_.insert(at, {std::string(name), setting});
  }
}

const Attributes::Setting* Attributes::find(std::string_view name) const {
  for (const auto& [key, setting] : settings_) {
    if (key == name) return &setting;
  }
  return nullptr;
}

int64_t Attributes::integer(std::string_view name) const {
  const Setting* setting = find(name);
  if (!setting || !std::holds_alternative<int64_t>(*setting)) {
    throw Error(ErrorCode::usage, "a node has no whole-number attribute '" + std::string(name) + "'");
  }
  return std::get<int64_t>(*setting);
}

double Attributes::number(std::string_view name) const {
  const Setting* setting = find(name);
  if (!setting) throw Error(ErrorCode::usage, "a node has no attribute '" + std::string(name) + "'");
  return std::visit([](auto value) { return static_cast<double>(value); }, *setting);
}

bool Attributes::flag(std::string_view name) const { return has(name) && number(name) != 0; }

std::string Attributes::to_string() const {
  std::string text = "{";
  for (const auto& [name, setting] : settings_) {
    char digits[40];
    const auto end = std::visit(
        [&](auto value) { return std::to_chars(digits, digits + sizeof digits, value).ptr; }, setting);
    text += (text.size() > 1 ? ", " : "") + name + "=" + std::string(digits, end);
  }
  return text + "}";
}

bool overlap(const Value& a, const Value& b) {
  return a.role == Role::state && b.role == Role::state && a.place.buffer == b.place.buffer &&
         a.offset() < b.offset() + b.bytes() && b.offset() < a.offset() + a.bytes();
}

ValueId Graph::input(std::string name, Shape shape, DType dtype) {
  values_.push_back({std::move(name), shape, dtype, Role::input});
  return {static_cast<uint32_t>(values_.size() - 1)};
}

ValueId Graph::constant(std::string name, Shape shape, DType dtype) {
  values_.push_back({std::move(name), shape, dtype, Role::constant});
  return {static_cast<uint32_t>(values_.size() - 1)};
}

std::vector<ValueId> Graph::add(const OpDef& op, std::string name, std::vector<ValueId> inputs,
                                Attributes attributes) {
  for (const ValueId id : inputs) {
    if (id) value(id);  // throws when this graph has no such value
  }
  Node node{&op, std::move(name), std::move(attributes), std::move(inputs), {}};
  std::vector<Value> outputs;
  InferContext context(*this, node, outputs);
  op.infer(context);
  for (Value& output : outputs) {
    node.outputs.push_back({static_cast<uint32_t>(values_.size())});
    values_.push_back(std::move(output));
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

void Graph::output(ValueId id, std::string name) {
  const Value& found = value(id);
  if (found.role != Role::intermediate) {
    throw Error(ErrorCode::usage, "'" + found.name + "' is an " + std::string(name_of(found.role)) +
                                      " and can't be made the output '" + name +
                                      "': only what a node computed can");
  }
  values_[id.index].role = Role::output;
  values_[id.index].name = std::move(name);
}

ValueId Graph::state(std::string name, Shape shape, StatePlace place, DType dtype) {
  values_.push_back({std::move(name), shape, dtype, Role::state, std::move(place)});
  return {static_cast<uint32_t>(values_.size() - 1)};
}

void Graph::store(ValueId id, StatePlace place) {
  const Value& found = value(id);
  if (found.role != Role::intermediate) {
    throw Error(ErrorCode::usage, "'" + found.name + "' is an " + std::string(name_of(found.role)) +
                                      " and can't be stored in '" + place.buffer +
                                      "': only what a node computed can");
  }
  values_[id.index].role = Role::state;
  values_[id.index].place = std::move(place);
}

const Value& Graph::value(ValueId id) const {
  if (id.index >= values_.size()) {
    throw Error(ErrorCode::usage, "a value was asked for that this graph does not have");
  }
  return values_[id.index];
}

std::vector<ValueId> Graph::with_role(Role role) const {
  std::vector<ValueId> found;
  for (uint32_t i = 0; i < values_.size(); ++i) {
    if (values_[i].role == role) found.push_back({i});
  }
  return found;
}

ValueId Graph::find(std::string_view name) const {
  for (uint32_t i = 0; i < values_.size(); ++i) {
    if (values_[i].name == name) return {i};
  }
  return {};
}

std::string Graph::to_string() const {
  const auto describe = [&](ValueId id) {
    if (!id) return std::string("-");
    const Value& v = value(id);
    std::string text = v.name + " " + std::string(name_of(v.dtype)) + v.shape.to_string();
    if (v.role == Role::state) text += "@" + v.place.buffer + "+" + std::to_string(v.place.first);
    return text;
  };
  std::string text;
  for (const Value& v : values_) {
    if (v.role == Role::input || v.role == Role::constant) {
      text += std::string(name_of(v.role)) + " " + v.name + " " + std::string(name_of(v.dtype)) +
              v.shape.to_string() + "\n";
    }
  }
  for (const Node& node : nodes_) {
    text += std::string(node.op->name) + " " + node.name + node.attributes.to_string() + ":";
    for (const ValueId id : node.inputs) text += " " + describe(id);
    text += " ->";
    for (const ValueId id : node.outputs) text += " " + describe(id);
    text += "\n";
  }
  return text;
}

}  // namespace vitrine

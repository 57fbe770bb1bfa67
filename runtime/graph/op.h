// An operator in one object: what it makes of its inputs' shapes, what it costs, the kernels that can run it,
// and the small cases that prove them. cmake/ops.cmake collects the OpDefs of runtime/ops/*/*.cpp into one
// table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/work.h"
#include "runtime/vk/capabilities.h"
#include "runtime/vk/shader_table.h"

namespace vitrine {

// ---- infer -------------------------------------------------------------------------------------

// What a node is given, and where its operator says what comes out.
class InferContext {
 public:
  InferContext(const Graph& graph, const Node& node, std::vector<Value>& outputs)
      : graph_(graph), node_(node), outputs_(outputs) {}
  size_t input_count() const { return node_.inputs.size(); }
  bool has_input(size_t i) const { return i < node_.inputs.size() && bool(node_.inputs[i]); }
  const Value& input(size_t i) const;
  const Attributes& attributes() const { return node_.attributes; }
  // Declares the next output. An empty suffix names it as the node; else "node.suffix".
  void output(Shape shape, DType dtype, std::string_view suffix = {});
  // Throws an Error that names the operator and the node when `condition` is false.
  void require(bool condition, const std::string& what) const;

 private:
  const Graph& graph_;
  const Node& node_;
  std::vector<Value>& outputs_;
};

// ---- lower -------------------------------------------------------------------------------------

// A piece of memory that a dispatch reads or writes, in the node's own terms.
struct Operand {
  enum class Kind : uint8_t { input, output, scratch, packed, nothing };
  Kind kind = Kind::nothing;
  uint32_t index = 0;  // which input, output, scratch piece or pack of the node
  static Operand input(uint32_t i) { return {Kind::input, i}; }
  static Operand output(uint32_t i) { return {Kind::output, i}; }
  static Operand scratch(uint32_t i) { return {Kind::scratch, i}; }
  static Operand packed(uint32_t i) { return {Kind::packed, i}; }
  // For a binding that this specialization never touches; some small buffer is bound there.
  static Operand nothing() { return {}; }
  bool operator==(const Operand&) const = default;
};

// A specialization constant by the name that its shader gives it; the workgroup's size is "local_size" unless
// the shader says otherwise.
struct NamedConstant {
  std::string_view name;
  uint32_t value = 0;  // of floats the bits
  bool operator==(const NamedConstant&) const = default;
};

struct Dispatch {
  const ShaderVariant* shader = nullptr;
  std::vector<NamedConstant> constants;  // all that the shader has, in any order
  std::vector<Operand> operands;         // in order of binding, or of address
  std::vector<std::byte> params;         // the shader's parameter struct (shaders/X.h)
  std::array<uint32_t, 3> groups{1, 1, 1};
  uint32_t subgroup_size = 0;  // a size that the pipeline must have; 0: the driver's choice
  std::string note;            // a word or two for printouts, such as the tile
  Work work;                   // what its kernel says that it asks of a device, where it says so

  template <typename Params>
  void set_params(const Params& value) {
    static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) % 4 == 0);
    params.resize(sizeof(Params));
    std::memcpy(params.data(), &value, sizeof(Params));
  }
  void add_constants(std::initializer_list<NamedConstant> more) { constants.insert(constants.end(), more); }
  // Throws when it is given no such constant.
  uint32_t& constant(std::string_view name);
  uint32_t constant(std::string_view name) const { return const_cast<Dispatch&>(*this).constant(name); }
};

// The constants' values by their ids in the shader, 0..n-1. Throws an Error that names the shader and the
// constant when one is missing, unknown or given twice.
std::vector<uint32_t> constants_by_id(const Dispatch& dispatch);

// A constant input in a kernel's own layout, made once at load by a shader.
struct Pack {
  uint32_t input = 0;  // which input of the node; must be a constant
  std::string layout;  // names the layout with all its numbers; equal names share one copy
  uint64_t bytes = 0;  // of the packed copy
  Dispatch dispatch;   // operands: Operand::input(input) is the source, Operand::packed(own index)
};

struct Lowered {
  std::vector<Dispatch> dispatches;
  std::vector<uint64_t> scratch;  // bytes of each scratch piece; they live as long as the node
  std::vector<Pack> packs;
  // Outputs that may take over an input's memory when that input dies here: {output, input}.
  std::vector<std::pair<uint32_t, uint32_t>> in_place;
  // How many bytes past the end of an operand an address-bound kernel may read (never write).
  uint64_t overread_bytes = 0;
};

// How a computed tensor lies that its only reader likes otherwise than row by row. What the numbers mean is
// between the kernels that know the name; the plan makes room for the bytes.
struct Layout {
  std::string_view name;
  std::array<uint64_t, 4> numbers{};
  uint64_t bytes = 0;
  bool operator==(const Layout&) const = default;
};

// What a kernel knows when it is asked to run a node. Everything here is pure data.
class LowerContext {
 public:
  // `layouts`: by value, of those that the plan doesn't lay out row by row.
  LowerContext(const Graph& graph, const Node& node, const Capabilities& device,
               std::string_view configuration = {}, std::span<const std::optional<Layout>> layouts = {})
      : graph_(graph), node_(node), device_(device), configuration_(configuration), layouts_(layouts) {}
  const Capabilities& device() const { return device_; }
  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  bool has_input(size_t i) const { return i < node_.inputs.size() && bool(node_.inputs[i]); }
  const Value& input(size_t i) const { return graph_.value(node_.inputs.at(i)); }
  const Value& output(size_t i) const { return graph_.value(node_.outputs.at(i)); }
  bool input_is_constant(size_t i) const { return has_input(i) && input(i).role == Role::constant; }
  // Which of its configurations a kernel is lowered in; empty: its first.
  std::string_view configuration() const { return configuration_; }
  LowerContext with_configuration(std::string_view name) const {
    return LowerContext(graph_, node_, device_, name, layouts_);
  }

  // How an input lies or an output is wanted; nullptr for row by row, the rule.
  const Layout* input_layout(size_t i) const { return layout_of(node_.inputs.at(i)); }
  const Layout* output_layout(size_t i) const { return layout_of(node_.outputs.at(i)); }

  // Nothing when the shader variant exists in this build and the device has what it needs; else why
  // not.
  std::optional<std::string> missing(std::string_view shader, std::string_view variant) const;

 private:
  const Layout* layout_of(ValueId id) const {
    return id.index < layouts_.size() && layouts_[id.index] ? &*layouts_[id.index] : nullptr;
  }
  const Graph& graph_;
  const Node& node_;
  const Capabilities& device_;
  std::string_view configuration_;
  std::span<const std::optional<Layout>> layouts_;
};

// What a kernel was written for. Its name begins with the target where that is no part of it anyway, and its
// shaders and sources lie in a folder of that name.
enum class Target : uint8_t {
  any,           // every device; tuned for GPUs
  cpu,           // devices that are a CPU: their names begin with cpu_
  matrix_units,  // GPUs with cooperative matrices: their names begin with coopmat
};

// One way of running an operator.
struct KernelDef {
  std::string_view name;
  Target target;
  // Nothing when it can run this node on this device, else the reason why it can't.
  std::optional<std::string> (*refuses)(const LowerContext&);
  // How well it suits; the highest wins, the earlier of equals.
  double (*preference)(const LowerContext&);
  Lowered (*lower)(const LowerContext&);
  // For kernels that have tiles or blocks to choose from: the names of all that can run this node on this
  // device, the one that should be the fastest first. `lower` takes the one that the context's
  // configuration() names, else the first. A name holds no space, comma or equals sign.
  std::vector<std::string> (*configurations)(const LowerContext&) = nullptr;
  // How it likes an input to lie; null: it only reads rows.
  std::optional<Layout> (*likes_layout)(const LowerContext&, uint32_t input) = nullptr;
  // Whether it can write output 0 so; null: it only writes rows.
  bool (*writes_layout)(const LowerContext&, const Layout&) = nullptr;
  // Nobody has seen it run yet: it comes behind the others until it has passed its self-test on the device.
  bool unproven = false;
};
constexpr KernelDef unproven(KernelDef kernel) {
  kernel.unproven = true;
  return kernel;
}

// ---- cost --------------------------------------------------------------------------------------

struct Cost {
  double flops = 0;  // a multiply-add counts two
  double bytes = 0;  // read and written at least once
};

class GradContext;  // autodiff.h
namespace reference {
struct OpCase;   // runtime/check/op_case.h
struct Sample;   // runtime/check/sample.h
class LoneNode;  // runtime/check/lone_node.h
}  // namespace reference

struct OpDef {
  std::string_view name;
  void (*infer)(InferContext&);
  double (*flops)(const LowerContext&);  // the arithmetic that the mathematics asks for
  std::span<const KernelDef> kernels;
  // Cases at sizes that fit no tile: what a kernel has to get right before a device may use it. The tests
  // under tests/ops look at far more.
  std::vector<reference::OpCase> (*cases)() = nullptr;
  // Appends the nodes that compute the gradients of the inputs; null: it has no derivative.
  void (*backward)(GradContext&) = nullptr;
  // What float64 says of some elements of a node that is tuned; null: kernels that are right on the cases are
  // compared with each other.
  std::vector<reference::Sample> (*sample)(const reference::LoneNode&) = nullptr;
};

// All operators of this build, by name.
std::span<const OpDef* const> all_ops();
const OpDef* find_op(std::string_view name);

// Bytes of a node's inputs and outputs, each counted once.
Cost cost_of(const LowerContext& context);

// Helpers that many lowerings share.
constexpr uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
constexpr uint64_t round_up(uint64_t a, uint64_t b) { return ceil_div(a, b) * b; }
// The largest number up to `most`, which is 1 or more, that divides it.
constexpr uint64_t largest_divisor(uint64_t of, uint64_t most) {
  uint64_t found = of < most ? of : most;
  while (found > 1 && of % found != 0) --found;
  return found;
}
uint32_t to_u32(uint64_t value);  // throws when it does not fit
// What is wrong with a dispatch's numbers of workgroups, as the end of a sentence; nothing when the device
// takes them.
std::optional<std::string> excess_groups(const Capabilities& device, const Dispatch& dispatch);
// Whether a buffer can be bound from this byte on.
inline bool can_bind_at(const Capabilities& device, uint64_t offset) {
  return device.storage_alignment == 0 || offset % device.storage_alignment == 0;
}
inline double no_preference(const LowerContext&) { return 0; }

}  // namespace vitrine

#include "runtime/graph/plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "runtime/graph/barrier_planner.h"
#include "runtime/graph/kernel_choice.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

// Something that lives in the arena: an intermediate value, or a node's scratch piece.
struct Resident {
  std::string name;
  uint64_t bytes = 0;
  uint32_t first = ~0u, last = 0;
  uint32_t group = 0;  // residents of one group share their memory (in-place operators)
};

class Planner {
 public:
  Planner(std::shared_ptr<const Graph> graph, const Capabilities& device, const PlanOptions& options)
      : graph_(*graph) {
    plan_.graph = std::move(graph);
    plan_.device = device;
    plan_.options = options;
    plan_.inputs = graph_.with_role(Role::input);
    plan_.outputs = graph_.with_role(Role::output);
    for (const ValueId id : graph_.with_role(Role::state)) add_state(graph_.value(id));
    if (plan_.outputs.empty() && plan_.states.empty()) {
      throw Error(ErrorCode::usage, "a graph without outputs can't be planned");
    }
  }

  Plan make() {
    for (const Node& node : graph_.nodes()) candidates_.push_back(choose({graph_, node, plan_.device}));
    if (plan_.options.layouts) choose_layouts();
    for (uint32_t node = 0; node < graph_.nodes().size(); ++node) lower(node);
    place();
    resolve();
    for (const Step& step : plan_.steps)
      check_limits(graph_.nodes()[step.node].name, step.dispatch, step.ranges);
    for (const PlannedConstant& constant : plan_.constants) check_limits(constant);
    place_barriers();
    plan_.slice_count = assign_slices(plan_.steps, plan_.options.slice_seconds);
    return std::move(plan_);
  }

 private:
  LowerContext context_of(size_t node) const {
    return {graph_, graph_.nodes()[node], plan_.device, candidates_[node].configuration, layouts_};
  }

  // Where a value's only reader likes it otherwise than row by row, and who computes it can write that, it
  // lies so.
  void choose_layouts() {
    const std::span<const Node> nodes = graph_.nodes();
    std::vector<uint32_t> readers(graph_.values().size());
    std::vector<std::optional<size_t>> producer(graph_.values().size());
    for (size_t node = 0; node < nodes.size(); ++node) {
      for (const ValueId id : nodes[node].inputs) {
        if (id) ++readers[id.index];
      }
      producer[nodes[node].outputs.front().index] = node;
    }
    layouts_.resize(graph_.values().size());
    for (size_t reader = 0; reader < nodes.size(); ++reader) {
      const KernelDef& kernel = *candidates_[reader].kernel;
      if (!kernel.likes_layout) continue;
      for (uint32_t i = 0; i < nodes[reader].inputs.size(); ++i) {
        const ValueId id = nodes[reader].inputs[i];
        if (!id || !producer[id.index] || readers[id.index] != 1) continue;
        if (graph_.value(id).role != Role::intermediate) continue;
        const size_t writer = *producer[id.index];
        if (!candidates_[writer].kernel->writes_layout) continue;
        const std::optional<Layout> liked = kernel.likes_layout(context_of(reader), i);
        if (!liked || !candidates_[writer].kernel->writes_layout(context_of(writer), *liked)) continue;
        layouts_[id.index] = liked;
        plan_.laid_out.push_back(id);
      }
    }
  }

  Candidate choose(const LowerContext& context) {
    const auto wish = plan_.options.variants.find(context.node().op->name);
    KernelChoice choice = choose_kernel(
        graph_, context, wish == plan_.options.variants.end() ? "" : wish->second, plan_.options.known.get());
    plan_.choices.push_back(std::move(choice.text));
    return std::move(choice.candidate);
  }

  void lower(uint32_t node_index) {
    const Node& node = graph_.nodes()[node_index];
    const LowerContext context = context_of(node_index);
    const Candidate& candidate = candidates_[node_index];
    Lowered lowered = lower_as(context, candidate);
    plan_.tail_bytes = std::max(plan_.tail_bytes, lowered.overread_bytes);

    std::vector<uint32_t> pack_constants;
    for (Pack& pack : lowered.packs) {
      pack_constants.push_back(constant_index(
          {node.inputs.at(pack.input), std::move(pack.layout), pack.bytes, std::move(pack.dispatch)}));
    }
    const auto first_scratch = static_cast<uint32_t>(residents_.size());
    for (size_t i = 0; i < lowered.scratch.size(); ++i) {
      residents_.push_back({node.name + ".scratch" + std::to_string(i), lowered.scratch[i], ~0u, 0,
                            static_cast<uint32_t>(residents_.size())});
    }

    const Cost cost = cost_of(context);
    const auto first_step = static_cast<uint32_t>(plan_.steps.size());
    for (Dispatch& dispatch : lowered.dispatches) {
      Step step;
      step.node = node_index;
      step.kernel = candidate.kernel->name;
      step.configuration = candidate.configuration;
      step.access = access_of(*dispatch.shader);
      step.seconds = estimate_seconds(cost, lowered.dispatches.size());
      if (step.access.size() != dispatch.operands.size()) {
        throw Error(ErrorCode::failed, std::string(node.op->name) + " '" + node.name + "': the shader " +
                                           std::string(dispatch.shader->shader) + " takes " +
                                           std::to_string(step.access.size()) +
                                           " buffers and its kernel gives " +
                                           std::to_string(dispatch.operands.size()));
      }
      const auto index = static_cast<uint32_t>(plan_.steps.size());
      for (const Operand& operand : dispatch.operands) {
        step.ranges.push_back(touch(node, operand, first_scratch, pack_constants, index));
      }
      step.dispatch = std::move(dispatch);
      plan_.steps.push_back(std::move(step));
    }
    check_stored(node, lowered.in_place);
    for (const auto& [output, input] : lowered.in_place) share_memory(node, output, input, first_step);
  }

  // A node may overwrite a state that it reads only where its kernel says that it works in place.
  void check_stored(const Node& node, std::span<const std::pair<uint32_t, uint32_t>> in_place) const {
    for (uint32_t out = 0; out < node.outputs.size(); ++out) {
      const Value& stored = graph_.value(node.outputs[out]);
      if (stored.role != Role::state) continue;
      for (uint32_t in = 0; in < node.inputs.size(); ++in) {
        if (!node.inputs[in]) continue;
        const Value& read = graph_.value(node.inputs[in]);
        if (!overlap(read, stored)) continue;
        const bool same = read.offset() == stored.offset() && read.bytes() == stored.bytes();
        const bool declared = std::ranges::find(in_place, std::pair{out, in}) != in_place.end();
        if (same && declared) continue;
        throw Error(ErrorCode::usage, std::string(node.op->name) + " '" + node.name + "' writes to '" +
                                          stored.place.buffer + "' where it reads '" + read.name +
                                          "', and its kernel does not work in place");
      }
    }
  }

  // The operand's range; for the arena it names the resident until resolve() knows offsets.
  MemoryRange touch(const Node& node, const Operand& operand, uint32_t first_scratch,
                    std::span<const uint32_t> pack_constants, uint32_t step) {
    using Space = MemoryRange::Space;
    switch (operand.kind) {
      case Operand::Kind::nothing:
        return {};
      case Operand::Kind::packed: {
        const uint32_t index = pack_constants[operand.index];
        return {Space::constant, index, 0, plan_.constants[index].bytes};
      }
      case Operand::Kind::scratch:
        return touch_resident(first_scratch + operand.index, step);
      case Operand::Kind::input:
        return touch_value(node.inputs.at(operand.index), step);
      case Operand::Kind::output:
        return touch_value(node.outputs.at(operand.index), step);
    }
    return {};
  }

  MemoryRange touch_value(ValueId id, uint32_t step) {
    using Space = MemoryRange::Space;
    const Value& value = graph_.value(id);
    const auto position = [&](const std::vector<ValueId>& list) {
      return static_cast<uint32_t>(std::find(list.begin(), list.end(), id) - list.begin());
    };
    switch (value.role) {
      case Role::input:
        return {Space::input, position(plan_.inputs), 0, value.bytes()};
      case Role::output:
        return {Space::output, position(plan_.outputs), 0, value.bytes()};
      case Role::constant: {
        const uint32_t index = constant_index({id, "", value.bytes(), std::nullopt});
        return {Space::constant, index, 0, value.bytes()};
      }
      case Role::state:
        return {Space::state, state_index(value.place.buffer), value.offset(), value.bytes()};
      case Role::intermediate:
        break;
    }
    const auto [at, is_new] = resident_of_.try_emplace(id, static_cast<uint32_t>(residents_.size()));
    const bool laid_out = id.index < layouts_.size() && layouts_[id.index];
    const uint64_t bytes = laid_out ? layouts_[id.index]->bytes : value.bytes();
    if (is_new) residents_.push_back({value.name, bytes, ~0u, 0, at->second});
    return touch_resident(at->second, step);
  }

  uint32_t state_index(const std::string& buffer) const {
    const auto found = std::ranges::find(plan_.states, buffer, &Plan::StateBuffer::name);
    return static_cast<uint32_t>(found - plan_.states.begin());
  }

  void add_state(const Value& value) {
    const uint32_t index = state_index(value.place.buffer);
    if (index == plan_.states.size()) plan_.states.push_back({value.place.buffer, 0});
    uint64_t& bytes = plan_.states[index].bytes;
    bytes = std::max(bytes, value.offset() + value.bytes());
  }

  MemoryRange touch_resident(uint32_t index, uint32_t step) {
    Resident& resident = residents_[index];
    resident.first = std::min(resident.first, step);
    resident.last = std::max(resident.last, step);
    return {MemoryRange::Space::arena, index, 0, resident.bytes};
  }

  uint32_t constant_index(PlannedConstant constant) {
    const auto at = std::find(plan_.constants.begin(), plan_.constants.end(), constant);
    if (at != plan_.constants.end()) return static_cast<uint32_t>(at - plan_.constants.begin());
    plan_.constants.push_back(std::move(constant));
    return static_cast<uint32_t>(plan_.constants.size() - 1);
  }

  // Lets an output take over an input's memory; whether the input dies here is only known at the end.
  void share_memory(const Node& node, uint32_t output, uint32_t input, uint32_t first_step) {
    const ValueId from = node.inputs.at(input), to = node.outputs.at(output);
    const auto source = resident_of_.find(from), target = resident_of_.find(to);
    if (source == resident_of_.end() || target == resident_of_.end()) return;
    // An input that is read in two roles (as operand and as residual, say) can't be overwritten.
    if (std::count(node.inputs.begin(), node.inputs.end(), from) != 1) return;
    if (residents_[source->second].bytes != residents_[target->second].bytes) return;
    takeovers_.push_back({source->second, target->second, first_step});
  }

  double estimate_seconds(const Cost& cost, size_t dispatches) const {
    // Deliberately low rates: a slice that turns out too short costs microseconds, one that is too long
    // a lost device. Executable::profile corrects them by what it measures.
    const bool cpu = plan_.device.type == DeviceType::cpu;
    const bool discrete = plan_.device.type == DeviceType::discrete;
    const double flop_rate = cpu ? 40e9 : discrete ? 2e12 : 200e9;
    const double byte_rate = cpu ? 5e9 : discrete ? 100e9 : 20e9;
    const double launch = cpu ? 50e-6 : 10e-6;
    return launch +
           std::max(cost.flops / flop_rate, cost.bytes / byte_rate) / static_cast<double>(dispatches);
  }

  void place() {
    if (!plan_.options.reuse_memory) takeovers_.clear();
    // A source is taken over once, and a target takes over one source: with a second one, both would
    // have to lie in the same memory before.
    std::set<uint32_t> taken, settled;
    for (const auto& takeover : takeovers_) {
      const uint32_t dies = residents_[takeover.source].last;
      if (dies >= takeover.first_step && dies < next_node_step(takeover.first_step) &&
          !taken.contains(takeover.source) && settled.insert(takeover.target).second) {
        taken.insert(takeover.source);
        const uint32_t from = residents_[takeover.source].group, to = residents_[takeover.target].group;
        for (Resident& resident : residents_) {
          if (resident.group == to) resident.group = from;
        }
      }
    }
    // One lifetime a group; residents that no step touches take no memory.
    const uint64_t alignment = std::max<uint64_t>(plan_.device.storage_alignment, 256);
    const uint64_t guard = round_up(plan_.options.guard_bytes, alignment);
    std::map<uint32_t, uint32_t> lifetime_of;
    std::vector<Lifetime> lifetimes;
    for (const Resident& resident : residents_) {
      if (resident.first == ~0u) continue;
      const auto [at, is_new] =
          lifetime_of.try_emplace(resident.group, static_cast<uint32_t>(lifetimes.size()));
      if (is_new) {
        lifetimes.push_back({resident.bytes + 2 * guard, resident.first, resident.last});
      } else {
        Lifetime& lifetime = lifetimes[at->second];
        lifetime.first = std::min(lifetime.first, resident.first);
        lifetime.last = std::max(lifetime.last, resident.last);
      }
    }
    MemoryRules rules{alignment, std::min<uint64_t>(plan_.device.max_allocation, 1ull << 30),
                      plan_.options.reuse_memory};
    const MemoryLayout layout = plan_memory(lifetimes, rules);
    plan_.slab_bytes = layout.slab_bytes;
    plan_.largest_live_set = layout.largest_live_set;
    ranges_.resize(residents_.size());
    for (size_t i = 0; i < residents_.size(); ++i) {
      const Resident& resident = residents_[i];
      if (resident.first == ~0u) continue;
      const Placement& placement = layout.placements[lifetime_of.at(resident.group)];
      ranges_[i] = {MemoryRange::Space::arena, placement.slab, placement.offset + guard, resident.bytes};
      plan_.tensors.push_back({resident.name, ranges_[i], resident.first, resident.last});
    }
  }

  uint32_t next_node_step(uint32_t step) const {
    const uint32_t node = plan_.steps[step].node;
    while (step < plan_.steps.size() && plan_.steps[step].node == node) ++step;
    return step;
  }

  void resolve() {
    for (Step& step : plan_.steps) {
      for (MemoryRange& range : step.ranges) {
        if (range.space == MemoryRange::Space::arena) range = ranges_[range.index];
      }
    }
  }

  void check_limits(const PlannedConstant& constant) const {
    if (!constant.pack) return;
    const Value& value = graph_.value(constant.value);
    const std::array ranges{MemoryRange{.bytes = value.bytes()}, MemoryRange{.bytes = constant.bytes}};
    check_limits(value.name, *constant.pack, ranges);
  }

  void check_limits(const std::string& name, const Dispatch& dispatch,
                    std::span<const MemoryRange> ranges) const {
    const auto refuse = [&](const std::string& what) {
      throw Error(ErrorCode::failed, "'" + name + "' (" + std::string(dispatch.shader->shader) + ") " + what);
    };
    constants_by_id(dispatch);  // throws where the shader has others
    if (const auto excess = excess_groups(plan_.device, dispatch)) refuse(*excess);
    if (dispatch.shader->bind == BindMode::addresses) return;
    for (const MemoryRange& range : ranges) {
      if (range.bytes > plan_.device.max_storage_range) {
        refuse("binds a buffer of " + std::to_string(range.bytes) + " bytes, this device allows " +
               std::to_string(plan_.device.max_storage_range));
      }
      if (!can_bind_at(plan_.device, range.offset)) {
        refuse("binds a buffer from byte " + std::to_string(range.offset) +
               " on, this device binds multiples of " + std::to_string(plan_.device.storage_alignment));
      }
    }
  }

  void place_barriers() {
    BarrierPlanner barriers;
    for (Step& step : plan_.steps) {
      std::vector<RangeUse> uses;
      for (size_t i = 0; i < step.ranges.size(); ++i) {
        const MemoryRange& range = step.ranges[i];
        if (range.space == MemoryRange::Space::nothing || range.space == MemoryRange::Space::constant)
          continue;
        const uint64_t space = static_cast<uint64_t>(range.space) << 32 | range.index;
        uses.push_back(
            {space, range.offset, range.offset + range.bytes, step.access[i] != 'w', step.access[i] != 'r'});
      }
      step.barrier_before = barriers.step(uses);
    }
  }

  struct Takeover {
    uint32_t source, target, first_step;
  };

  const Graph& graph_;
  Plan plan_;
  std::vector<Candidate> candidates_;           // one a node
  std::vector<std::optional<Layout>> layouts_;  // one a value, or none at all
  std::vector<Resident> residents_;
  std::map<ValueId, uint32_t> resident_of_;
  std::vector<Takeover> takeovers_;
  std::vector<MemoryRange> ranges_;  // one a resident
};

}  // namespace

std::vector<const Dispatch*> Plan::dispatches() const {
  std::vector<const Dispatch*> all;
  for (const Step& step : steps) all.push_back(&step.dispatch);
  for (const PlannedConstant& constant : constants) {
    if (constant.pack) all.push_back(&*constant.pack);
  }
  return all;
}

uint64_t Plan::arena_bytes() const {
  return std::accumulate(slab_bytes.begin(), slab_bytes.end(), uint64_t{0});
}

uint64_t Plan::constant_bytes() const {
  uint64_t sum = 0;
  for (const PlannedConstant& constant : constants) sum += constant.bytes;
  return sum;
}

double Plan::flops() const {
  double sum = 0;
  for (const Node& node : graph->nodes()) sum += cost_of(LowerContext(*graph, node, device)).flops;
  return sum;
}

Plan make_plan(std::shared_ptr<const Graph> graph, const Capabilities& device, const PlanOptions& options) {
  FusedGraph fused = fuse(std::move(graph), options.fusions, &device);
  Plan plan = Planner(std::move(fused.graph), device, options).make();
  plan.fusion_changes = std::move(fused.changes);
  // Nothing ends what takes long on a CPU.
  if (options.warn && device.type != DeviceType::cpu)
    std::ranges::for_each(overlong_steps(plan), options.warn);
  return plan;
}

std::map<std::string, std::string, std::less<>> parse_variants(std::string_view text) {
  std::map<std::string, std::string, std::less<>> variants;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t equals = item.find('=');
    const OpDef* op = find_op(item.substr(0, equals));
    const std::string_view kernel = equals == item.npos ? "" : item.substr(equals + 1);
    if (!op || !candidate_named(*op, kernel).kernel || kernel.ends_with(':')) {
      std::string names;
      if (op) {
        for (const KernelDef& k : op->kernels) names += (names.empty() ? "" : ", ") + std::string(k.name);
      } else {
        for (const OpDef* each : all_ops()) names += (names.empty() ? "" : ", ") + std::string(each->name);
      }
      throw Error(ErrorCode::usage, "variant '" + std::string(item) +
                                        "' is not of the form OPERATOR=KERNEL[:CONFIGURATION] with " +
                                        (op ? "a kernel of that operator (" : "a known operator (") + names +
                                        ")");
    }
    variants[std::string(op->name)] = std::string(kernel);
  }
  return variants;
}

}  // namespace vitrine

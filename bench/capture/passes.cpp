#include "bench/capture/passes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtime/util/error.h"

namespace vitrine::capture {
namespace {

// Numbers of the specification, by its names.
enum : uint32_t {
  OpTypeBool = 20,
  OpTypeInt = 21,
  OpConstantTrue = 41,  // the first of those that define constants
  OpConstant = 43,
  OpSpecConstantOp = 52,  // the last
  OpFunction = 54,
  OpFunctionCall = 57,
  OpVariable = 59,
  OpLoad = 61,
  OpAccessChain = 65,
  OpCopyObject = 83,
  OpIAdd = 128,
  OpULessThan = 176,
  OpControlBarrier = 224,
  OpPhi = 245,
  OpLoopMerge = 246,
  OpSelectionMerge = 247,
  OpLabel = 248,
  OpBranch = 249,
  OpBranchConditional = 250,
  OpSwitch = 251,
  OpReturn = 253,
};
constexpr uint32_t header_words = 5, unroll = 1, scope_workgroup = 2, storage_push = 9;

struct Instruction {
  uint32_t opcode = 0;
  std::span<const uint32_t> words;  // with the first, which holds opcode and length
  uint32_t operator[](size_t i) const {
    if (i >= words.size()) throw Error(ErrorCode::failed, "a SPIR-V instruction is cut short");
    return words[i];
  }
};

std::vector<Instruction> instructions_of(std::span<const uint32_t> words) {
  if (words.size() < header_words || words[0] != 0x07230203) {
    throw Error(ErrorCode::failed, "this is no SPIR-V module");
  }
  std::vector<Instruction> out;
  for (size_t at = header_words; at < words.size(); at += words[at] >> 16) {
    const uint32_t length = words[at] >> 16;
    if (length == 0 || at + length > words.size()) {
      throw Error(ErrorCode::failed, "a SPIR-V instruction is cut short");
    }
    out.push_back({words[at] & 0xffff, words.subspan(at, length)});
  }
  return out;
}

struct Range {
  size_t begin = 0, end = 0;  // instructions
  bool holds(size_t at) const { return begin <= at && at < end; }
};
struct Loop {
  Range range;
  uint32_t header = 0, merge = 0, control = 0;
};
struct Function {
  Range range;
  std::vector<Loop> loops;
  std::vector<Range> selections;
};
struct Size {
  uint64_t instructions = 0;
  bool has_barrier = false;
};

// Where functions, loops and branches begin and end; a branch on a constant is none. Blocks stand in an order
// in which what lies inside a construct lies between its header and its merge block.
class Module {
 public:
  explicit Module(std::span<const uint32_t> words) : all_(instructions_of(words)) {
    std::map<uint32_t, size_t> labels;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].opcode == OpLabel) labels[all_[i][1]] = i;
    }
    uint32_t block = 0, function = 0;
    for (size_t i = 0; i < all_.size(); ++i) {
      const Instruction& one = all_[i];
      if (one.opcode >= OpConstantTrue && one.opcode <= OpSpecConstantOp) constants_.insert(one[2]);
      if (one.opcode == OpConstant && one[3] == scope_workgroup) workgroup_scopes_.insert(one[2]);
      if (one.opcode == OpFunction) {
        function = one[2];
        functions_[function].range = {i, i};
      }
      if (function == 0) continue;
      functions_[function].range.end = i + 1;
      if (one.opcode == OpLabel) block = one[1];
      if (one.opcode == OpLoopMerge) {
        functions_[function].loops.push_back({{labels[block], labels[one[1]]}, block, one[1], one[3]});
      } else if (one.opcode == OpSelectionMerge && i + 1 < all_.size() &&
                 !constants_.contains(all_[i + 1][1])) {
        functions_[function].selections.push_back({i, labels[one[1]]});
      }
    }
  }

  const std::vector<Instruction>& all() const { return all_; }
  const std::map<uint32_t, Function>& functions() const { return functions_; }

  // With what is called; a recursion, which SPIR-V for shaders forbids, ends at its depth.
  Size size_of(Range range, int depth = 0) const {
    Size size;
    for (size_t i = range.begin; i < range.end; ++i) {
      ++size.instructions;
      size.has_barrier |= all_[i].opcode == OpControlBarrier && workgroup_scopes_.contains(all_[i][1]);
      if (all_[i].opcode != OpFunctionCall || depth > 16) continue;
      const auto called = functions_.find(all_[i][3]);
      if (called == functions_.end()) continue;
      const Size inner = size_of(called->second.range, depth + 1);
      size.instructions += inner.instructions;
      size.has_barrier |= inner.has_barrier;
    }
    return size;
  }

  uint32_t inner_loops(Range range, int depth = 0) const {
    uint32_t count = 0;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (all_[i].opcode == OpLoopMerge && (all_[i][3] & unroll) == 0) ++count;
      if (all_[i].opcode != OpFunctionCall || depth > 16) continue;
      const auto called = functions_.find(all_[i][3]);
      if (called != functions_.end()) count += inner_loops(called->second.range, depth + 1);
    }
    return count;
  }

  // Branches around an instruction and returns before it, in its function and where that is called.
  uint32_t selections_around(size_t at, int depth = 0) const {
    uint32_t count = 0;
    for (const auto& [id, function] : functions_) {
      if (!function.range.holds(at)) continue;
      for (const Range& selection : function.selections) count += selection.holds(at);
      for (size_t i = function.range.begin; i < at; ++i) count += all_[i].opcode == OpReturn;
      for (size_t i = 0; i < all_.size() && depth < 16; ++i) {
        if (all_[i].opcode == OpFunctionCall && all_[i][3] == id) {
          return count + selections_around(i, depth + 1);
        }
      }
    }
    return count;
  }

 private:
  std::vector<Instruction> all_;
  std::map<uint32_t, Function> functions_;
  std::set<uint32_t> constants_;         // what compilers know by themselves
  std::set<uint32_t> workgroup_scopes_;  // of these, what stands for a workgroup
};

bool is_target(const Instruction& one, uint32_t block) {
  if (one.opcode == OpBranch) return one[1] == block;
  if (one.opcode == OpBranchConditional) return one[2] == block || one[3] == block;
  if (one.opcode != OpSwitch) return false;
  for (size_t i = 2; i < one.words.size(); i += 2) {  // 32-bit cases
    if (one.words[i] == block) return true;
  }
  return false;
}

class Writer {
 public:
  explicit Writer(std::span<const uint32_t> header) : words_(header.begin(), header.end()) {}
  void put(const Instruction& one) { words_.insert(words_.end(), one.words.begin(), one.words.end()); }
  void put(uint32_t opcode, const std::vector<uint32_t>& operands) {
    words_.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | opcode);
    words_.insert(words_.end(), operands.begin(), operands.end());
  }
  uint32_t new_id() { return words_[3]++; }
  std::vector<uint32_t> take() { return std::move(words_); }

 private:
  std::vector<uint32_t> words_;
};

uint32_t find_type(const std::vector<Instruction>& all, uint32_t opcode,
                   const std::vector<uint32_t>& operands) {
  for (const Instruction& one : all) {
    if (one.opcode != opcode || one.words.size() != operands.size() + 2) continue;
    if (std::ranges::equal(one.words.subspan(2), operands)) return one[1];
  }
  return 0;
}

}  // namespace

std::optional<MainLoop> main_loop_of(std::span<const uint32_t> words) {
  const Module module(words);
  std::optional<MainLoop> found;
  std::pair<bool, uint64_t> best{};
  for (const auto& [id, function] : module.functions()) {
    for (const Loop& loop : function.loops) {
      if ((loop.control & unroll) != 0) continue;
      const bool inside = std::ranges::any_of(function.loops, [&](const Loop& other) {
        return other.header != loop.header && other.range.holds(loop.range.begin);
      });
      if (inside) continue;
      const Size size = module.size_of(loop.range);
      const std::pair<bool, uint64_t> rank{size.has_barrier, size.instructions};
      if (found && rank <= best) continue;
      best = rank;
      found = MainLoop{loop.header, module.selections_around(loop.range.begin),
                       module.inner_loops(loop.range) - 1, size.has_barrier};
    }
  }
  return found;
}

std::vector<uint32_t> with_push_constants(std::span<const uint32_t> words,
                                          const std::map<uint32_t, uint32_t>& members) {
  const std::vector<Instruction> all = instructions_of(words);
  std::set<uint32_t> blocks, numbers;            // of push constants, and types of 32 bits
  std::map<uint32_t, uint32_t> indices, chains;  // constants' values, and what pointers lead to
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> constants;  // by type and value
  Writer out(words.first(header_words));
  for (const Instruction& one : all) {
    if (one.opcode == OpTypeInt && one[2] == 32) numbers.insert(one[1]);
    if (one.opcode == OpConstant) indices[one[2]] = one[3];
    if (one.opcode == OpVariable && one[3] == storage_push) blocks.insert(one[2]);
    if (one.opcode == OpAccessChain && one.words.size() == 5 && blocks.contains(one[3])) {
      const auto index = indices.find(one[4]);
      const auto member = index == indices.end() ? members.end() : members.find(index->second);
      if (member != members.end()) chains[one[2]] = member->second;
    }
    if (one.opcode == OpLoad && chains.contains(one[3]) && numbers.contains(one[1])) {
      uint32_t& id = constants[{one[1], chains[one[3]]}];
      if (id == 0) id = out.new_id();
    }
  }
  bool written = false;
  for (const Instruction& one : all) {
    if (one.opcode == OpFunction && !written) {
      written = true;
      for (const auto& [key, id] : constants) out.put(OpConstant, {key.first, id, key.second});
    }
    const auto value = one.opcode == OpLoad ? chains.find(one[3]) : chains.end();
    if (value != chains.end() && numbers.contains(one[1])) {
      out.put(OpCopyObject, {one[1], one[2], constants[{one[1], value->second}]});
    } else {
      out.put(one);
    }
  }
  return out.take();
}

std::vector<uint32_t> with_passes(std::span<const uint32_t> words, const MainLoop& loop, uint32_t passes) {
  const Module module(words);
  const std::vector<Instruction>& all = module.all();
  const Loop* whole = nullptr;
  const Function* inside = nullptr;
  for (const auto& [id, function] : module.functions()) {
    for (const Loop& one : function.loops) {
      if (one.header == loop.header) whole = &one, inside = &function;
    }
  }
  if (!whole) throw Error(ErrorCode::failed, "the SPIR-V module has no loop " + std::to_string(loop.header));

  // The blocks that lead to the header, and the first branch out of the loop.
  std::vector<std::pair<uint32_t, bool>> before;  // and whether it lies inside
  uint32_t block = 0, exit_block = 0;
  size_t exit = 0;
  for (size_t i = inside->range.begin; i < inside->range.end; ++i) {
    if (all[i].opcode == OpLabel) block = all[i][1];
    if (is_target(all[i], whole->header)) before.emplace_back(block, whole->range.holds(i));
    if (exit == 0 && whole->range.holds(i) && all[i].opcode == OpBranchConditional &&
        is_target(all[i], whole->merge)) {
      exit = i;
      exit_block = block;
    }
  }
  if (exit == 0) throw Error(ErrorCode::failed, "the main loop has no branch out of it");
  // Then the last pass is over when it asks for another.
  const bool at_end = std::ranges::count(before, std::pair{exit_block, true}) > 0;

  if (at_end && passes == 0)
    throw Error(ErrorCode::failed, "the main loop is left behind its first pass at the earliest");

  size_t body = whole->range.begin + 1;  // behind the header's label and phis
  while (body < whole->range.end && all[body].opcode == OpPhi) ++body;

  Writer out(words.first(header_words));
  uint32_t boolean = find_type(all, OpTypeBool, {}), number = find_type(all, OpTypeInt, {32, 0});
  const uint32_t zero = out.new_id(), one = out.new_id(), limit = out.new_id(), counter = out.new_id(),
                 next = out.new_id(), goes_on = out.new_id();
  bool types_written = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].opcode == OpFunction && !types_written) {
      types_written = true;
      if (boolean == 0) out.put(OpTypeBool, {boolean = out.new_id()});
      if (number == 0) out.put(OpTypeInt, {number = out.new_id(), 32, 0});
      out.put(OpConstant, {number, zero, 0});
      out.put(OpConstant, {number, one, 1});
      out.put(OpConstant, {number, limit, passes});
    }
    if (i == body) {
      out.put(OpIAdd, {number, next, counter, one});
      out.put(OpULessThan, {boolean, goes_on, at_end ? next : counter, limit});
    }
    if (i == exit) {
      const bool true_leaves = all[i][2] == whole->merge;
      out.put(OpBranchConditional, {goes_on, true_leaves ? all[i][3] : all[i][2], whole->merge});
      continue;
    }
    if (all[i].opcode == OpLoopMerge && all[i][1] == whole->merge) {
      out.put(OpLoopMerge, {all[i][1], all[i][2], unroll});
      continue;
    }
    out.put(all[i]);
    if (i != whole->range.begin) continue;
    std::vector<uint32_t> operands{number, counter};
    for (const auto& [from, comes_back] : before) {
      operands.push_back(comes_back ? next : zero);
      operands.push_back(from);
    }
    out.put(OpPhi, operands);
  }
  return out.take();
}

}  // namespace vitrine::capture

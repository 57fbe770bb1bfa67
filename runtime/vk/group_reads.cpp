#include "runtime/vk/group_reads.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/vk/spirv.h"

namespace vitrine {
namespace {

constexpr std::array everything{GroupReads::other, GroupReads::other, GroupReads::other};

// What an id holds: a built-in vector or a pointer to it, or one of its components or a pointer to that.
struct Holds {
  uint32_t built_in = 0;
  std::optional<uint32_t> component;
};

class Reader {
 public:
  explicit Reader(spv::Words words) : words_(words) {}

  std::array<GroupReads, 3> read() {
    bool known = true;
    const size_t end = spv::for_each_instruction(words_, [&](uint32_t opcode, spv::Words operands) {
      known = known && read_instruction(opcode, operands);
    });
    if (!known || end != words_.size()) return everything;
    return reads_;
  }

 private:
  // False where a number of workgroups goes somewhere unknown.
  bool read_instruction(uint32_t opcode, spv::Words operands) {
    switch (opcode) {
      case spv::constant:
        if (operands.size() == 3) constants_[operands[1]] = operands[2];
        return true;
      case spv::decorate:
        if (operands.size() == 3 && operands[1] == spv::built_in &&
            (operands[2] == spv::num_workgroups || operands[2] == spv::workgroup_id))
          holds_[operands[0]] = {operands[2], std::nullopt};
        return true;
      case spv::load:
        if (operands.size() >= 3) pass_on(operands[1], operands[2], std::nullopt);
        return true;
      case spv::access_chain:
        if (operands.size() == 4 && constants_.contains(operands[3])) {
          pass_on(operands[1], operands[2], constants_.at(operands[3]));
          return true;
        }
        break;
      case spv::composite_extract:
        if (operands.size() == 4) {
          pass_on(operands[1], operands[2], operands[3]);
          return true;
        }
        break;
      case spv::i_mul:
        if (operands.size() == 4) {
          multiply(operands[2], operands[3]);
          return true;
        }
        break;
      case spv::ext_inst:
        // Behind the set of instructions comes a plain number.
        if (operands.size() >= 4) operands = operands.subspan(4);
        break;
      case spv::function:
        in_code_ = true;
        break;
      default:
        break;
    }
    if (!in_code_) return true;
    // A plain number that happens to be an id's makes this refuse too much, never too little.
    for (const uint32_t operand : operands) use(operand);
    return !whole_vector_used_;
  }

  void pass_on(uint32_t to, uint32_t from, std::optional<uint32_t> component) {
    const auto found = holds_.find(from);
    if (found == holds_.end()) return;
    holds_[to] = {found->second.built_in, component ? component : found->second.component};
  }

  bool is(uint32_t id, uint32_t built_in, uint32_t component) const {
    const auto found = holds_.find(id);
    return found != holds_.end() && found->second.built_in == built_in &&
           found->second.component == component;
  }

  void multiply(uint32_t left, uint32_t right) {
    for (const auto& [count, place] : {std::pair{left, right}, std::pair{right, left}}) {
      if (is(count, spv::num_workgroups, 0) && is(place, spv::workgroup_id, 1)) {
        reads_[0] = std::max(reads_[0], GroupReads::rows);
        return;
      }
    }
    use(left);
    use(right);
  }

  void use(uint32_t id) {
    const auto found = holds_.find(id);
    if (found == holds_.end() || found->second.built_in != spv::num_workgroups) return;
    const std::optional<uint32_t> component = found->second.component;
    if (component && *component < reads_.size()) {
      reads_[*component] = GroupReads::other;
    } else {
      whole_vector_used_ = true;
    }
  }

  spv::Words words_;
  std::unordered_map<uint32_t, uint32_t> constants_;
  std::unordered_map<uint32_t, Holds> holds_;
  std::array<GroupReads, 3> reads_{};
  bool in_code_ = false, whole_vector_used_ = false;
};

}  // namespace

std::array<GroupReads, 3> group_reads_of(std::span<const uint32_t> words) { return Reader(words).read(); }

std::array<bool, 3> cuttable_axes(std::span<const uint32_t> words, const std::array<uint32_t, 3>& groups) {
  const std::array<GroupReads, 3> reads = group_reads_of(words);
  std::array<bool, 3> cuttable{};
  for (size_t axis = 0; axis < 3; ++axis) {
    cuttable[axis] = reads[axis] == GroupReads::none ||
                     // In the first row of workgroups, which is the only one, its length makes no difference.
                     (reads[axis] == GroupReads::rows && groups[1] == 1);
  }
  return cuttable;
}

}  // namespace vitrine

#include "runtime/vk/specialize.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "runtime/vk/module_constants.h"
#include "runtime/vk/spirv.h"

namespace vitrine {
namespace {

using spv::Words;

// Which loops and functions decide anything in their bodies, beside how often they go round.
class Decisions {
 public:
  Decisions(Words words, const ModuleConstants& constants) {
    uint32_t current = 0;
    bool merges = false;  // the last instruction said where a decision ends
    spv::for_each_instruction(words, [&](uint32_t opcode, Words operands) {
      const bool decides =
          merges && (opcode == spv::branch_switch || (opcode == spv::branch_conditional &&
                                                      !operands.empty() && !constants.value_of(operands[0])));
      merges = opcode == spv::selection_merge;
      if (opcode == spv::function && operands.size() >= 2) {
        current = operands[1];
        open_.clear();
      } else if (opcode == spv::loop_merge && operands.size() >= 3) {
        open_.push_back(operands[0]);
      } else if (opcode == spv::label && !operands.empty()) {
        std::erase(open_, operands[0]);
      } else if (opcode == spv::function_call && operands.size() >= 3) {
        for (const uint32_t loop : open_) calls_[loop].push_back(operands[2]);
        calls_[current].push_back(operands[2]);
      } else if (decides) {
        deciding_.insert(open_.begin(), open_.end());
        deciding_.insert(current);
      }
    });
  }

  // Of a loop by the label that it ends at.
  bool made_in(uint32_t id) const { return made_in(id, 0); }

 private:
  bool made_in(uint32_t id, int depth) const {
    constexpr int deepest = 64;  // also ends what calls itself, which SPIR-V forbids
    if (deciding_.contains(id) || depth > deepest) return true;
    const auto called = calls_.find(id);
    return called != calls_.end() &&
           std::ranges::any_of(called->second, [&](uint32_t callee) { return made_in(callee, depth + 1); });
  }

  std::vector<uint32_t> open_;  // loops that the reader is in
  std::unordered_set<uint32_t> deciding_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> calls_;
};

class Specializer {
 public:
  Specializer(Words words, Words constants)
      : constants_(words, constants), decisions_(words, constants_), words_(words) {}

  std::vector<uint32_t> run() {
    out_.assign(words_.begin(), words_.begin() + std::min(words_.size(), spv::first_instruction));
    spv::for_each_instruction(words_, [&](uint32_t opcode, Words operands) {
      if (opcode == spv::decorate && operands.size() >= 3 && operands[1] == spv::spec_id) {
        if (!value_of(operands[0])) put(opcode, operands);
      } else if (opcode >= spv::spec_constant_true && opcode <= spv::spec_constant_op &&
                 operands.size() >= 2) {
        put_constant(opcode, operands);
      } else if (opcode == spv::loop_merge && operands.size() == 3 && operands[2] == spv::unroll &&
                 decisions_.made_in(operands[0])) {
        put(opcode, std::array{operands[0], operands[1], static_cast<uint32_t>(spv::dont_unroll)});
      } else {
        put(opcode, operands);
      }
    });
    return std::move(out_);
  }

 private:
  void put(uint32_t opcode, Words operands) {
    out_.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | opcode);
    out_.insert(out_.end(), operands.begin(), operands.end());
  }

  void put_constant(uint32_t opcode, Words operands) {
    const uint32_t type = operands[0], id = operands[1];
    if (const std::optional<uint32_t> value = value_of(id)) {
      if (constants_.find(type)->opcode == spv::type_bool) {
        put(*value != 0 ? spv::constant_true : spv::constant_false, operands.first(2));
      } else {
        put(spv::constant, std::array{type, id, *value});
      }
    } else if (opcode == spv::spec_constant_composite &&
               std::ranges::all_of(operands.subspan(2), [&](uint32_t part) { return is_ordinary(part); })) {
      put(spv::constant_composite, operands);
    } else {
      put(opcode, operands);
    }
  }

  std::optional<uint32_t> value_of(uint32_t id) const { return constants_.value_of(id); }
  bool is_ordinary(uint32_t id) const {
    const ModuleConstants::Id* constant = constants_.find(id);
    return value_of(id) || (constant != nullptr && constant->opcode < spv::spec_constant_true);
  }

  ModuleConstants constants_;
  Decisions decisions_;
  Words words_;
  std::vector<uint32_t> out_;
};

}  // namespace

std::vector<uint32_t> specialize(Words words, Words constants) { return Specializer(words, constants).run(); }

}  // namespace vitrine

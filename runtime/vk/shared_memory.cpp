#include "runtime/vk/shared_memory.h"

#include <vector>

#include "runtime/vk/module_constants.h"
#include "runtime/vk/spirv.h"

namespace vitrine {
namespace {

using spv::Words;
constexpr int deepest = 64;  // also ends what is defined by itself

class Reader {
 public:
  Reader(Words words, Words constants) : constants_(words, constants) {
    spv::for_each_instruction(words, [&](uint32_t opcode, Words operands) {
      if (opcode == spv::variable && operands.size() >= 3 && operands[2] == spv::workgroup)
        pointers_.push_back(operands[0]);
    });
  }

  std::optional<uint64_t> sum() const {
    uint64_t bytes = 0;
    for (const uint32_t pointer : pointers_) {
      const ModuleConstants::Id* type = constants_.find(pointer);
      if (type == nullptr || type->opcode != spv::type_pointer || type->operands.size() < 2) return {};
      const auto size = size_of(type->operands[1], 0);
      if (!size) return {};
      bytes += *size;
    }
    return bytes;
  }

 private:
  std::optional<uint64_t> size_of(uint32_t id, int depth) const {
    const ModuleConstants::Id* type = constants_.find(id);
    if (type == nullptr || depth > deepest) return {};
    const Words o = type->operands;
    switch (type->opcode) {
      case spv::type_bool:
        return 4;
      case spv::type_int:
      case spv::type_float:
        if (o.empty()) return {};
        return o[0] / 8;
      case spv::type_vector:
      case spv::type_array: {
        if (o.size() < 2) return {};
        const auto each = size_of(o[0], depth + 1);
        const auto count = type->opcode == spv::type_vector ? o[1] : constants_.value_of(o[1]);
        if (!each || !count) return {};
        return *each * *count;
      }
      case spv::type_struct: {
        uint64_t bytes = 0;
        for (const uint32_t member : o) {
          const auto each = size_of(member, depth + 1);
          if (!each) return {};
          bytes += *each;
        }
        return bytes;
      }
      default:
        return {};
    }
  }

  ModuleConstants constants_;
  std::vector<uint32_t> pointers_;
};

}  // namespace

std::optional<uint64_t> shared_bytes_of(Words words, Words constants) {
  return Reader(words, constants).sum();
}

}  // namespace vitrine

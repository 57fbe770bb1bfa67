#include "runtime/vk/reflection.h"

#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/vk/spirv.h"

namespace vitrine {
namespace {

[[noreturn]] void malformed(const std::string& what) {
  throw Error(ErrorCode::failed, "malformed SPIR-V module: " + what);
}

struct Member {
  std::optional<uint32_t> offset;
  uint32_t matrix_stride = 0;
  bool non_writable = false, non_readable = false;
};

// All that is known of one id. Decorations come before the definition.
struct Id {
  uint32_t opcode = 0;                 // 0: not defined
  uint32_t type = 0;                   // result type of constants and variables
  std::span<const uint32_t> operands;  // after the result
  std::string name;
  std::optional<uint32_t> set, binding, spec_id, built_in;
  uint32_t array_stride = 0;
  bool buffer_block = false, non_writable = false, non_readable = false;
  std::unordered_map<uint32_t, Member> members;
};

class Reader {
 public:
  explicit Reader(std::span<const uint32_t> words) : words_(words) {}

  Reflection read() {
    if (words_.size() < spv::first_instruction)
      malformed("it has " + std::to_string(words_.size()) + " words, a header takes 5");
    if (words_[0] != spv::magic) malformed("it begins with another number than SPIR-V's");
    const size_t end = spv::for_each_instruction(
        words_, [&](uint32_t opcode, Operands operands) { read_instruction(opcode, operands); });
    if (end != words_.size()) {
      malformed("the instruction at word " + std::to_string(end) + " claims " +
                std::to_string(words_[end] >> 16) + " words of " + std::to_string(words_.size() - end));
    }
    if (entry_points_ != 1) {
      malformed("it has " + std::to_string(entry_points_) + " compute entry points, expected 1");
    }
    read_bindings();
    read_constants();
    read_workgroup_size();
    return std::move(out_);
  }

 private:
  using Operands = spv::Words;

  static uint32_t at(Operands operands, size_t i) {
    if (i >= operands.size()) malformed("an instruction ends before its operand " + std::to_string(i));
    return operands[i];
  }
  static Operands from(Operands operands, size_t i) {
    if (i > operands.size()) malformed("an instruction ends before its operand " + std::to_string(i));
    return operands.subspan(i);
  }

  static std::string read_string(Operands operands) {
    const char* text = reinterpret_cast<const char*>(operands.data());
    const size_t room = operands.size() * sizeof(uint32_t);
    const size_t length = operands.empty() ? 0 : strnlen(text, room);
    if (length == room) malformed("a string does not end inside its instruction");
    return {text, length};
  }

  void define(uint32_t id, uint32_t opcode, uint32_t type, Operands operands) {
    Id& entry = ids_[id];
    if (entry.opcode != 0) malformed("id " + std::to_string(id) + " is defined twice");
    entry.opcode = opcode;
    entry.type = type;
    entry.operands = operands;
  }

  const Id& find(uint32_t id) const {
    const auto found = ids_.find(id);
    if (found == ids_.end() || found->second.opcode == 0) {
      malformed("id " + std::to_string(id) + " is used but not defined");
    }
    return found->second;
  }

  void read_instruction(uint32_t opcode, Operands operands) {
    if ((opcode >= spv::group_first && opcode <= spv::group_last) ||
        (opcode >= spv::subgroup_khr_first && opcode <= spv::subgroup_khr_last) ||
        (opcode >= spv::cooperative_first && opcode <= spv::cooperative_last)) {
      out_.uses_subgroups = true;
    }
    if (opcode >= spv::type_first && opcode <= spv::type_last) {
      define(at(operands, 0), opcode, 0, from(operands, 1));
    } else if (opcode >= spv::constant_first && opcode <= spv::constant_last) {
      define(at(operands, 1), opcode, at(operands, 0), from(operands, 2));
    } else {
      read_other(opcode, operands);
    }
  }

  // An id may have several names: glslang gives `const uint width = dims` those of both. The first is that of
  // what the others were made from.
  void read_name(Operands operands) {
    std::string name = read_string(from(operands, 1));
    std::string& known = ids_[at(operands, 0)].name;
    if (known.empty()) known = std::move(name);
  }

  void read_other(uint32_t opcode, Operands operands) {
    switch (opcode) {
      case spv::capability:
        out_.capabilities.push_back(at(operands, 0));
        break;
      case spv::name:
        read_name(operands);
        break;
      case spv::member_name:
        read_string(from(operands, 2));
        break;
      case spv::entry_point:
        if (at(operands, 0) == spv::model_compute) ++entry_points_;
        break;
      case spv::execution_mode:
      case spv::execution_mode_id:
        if (at(operands, 1) == spv::mode_local_size || at(operands, 1) == spv::mode_local_size_id) {
          local_size_is_ids_ = at(operands, 1) == spv::mode_local_size_id;
          local_size_ = {at(operands, 2), at(operands, 3), at(operands, 4)};
        }
        break;
      case spv::variable:
        define(at(operands, 1), opcode, at(operands, 0), from(operands, 2));
        // Function variables are of no interest, and there may be many.
        switch (at(operands, 2)) {
          case spv::uniform_constant:
          case spv::uniform:
          case spv::push_constant:
          case spv::storage_buffer:
            variables_.push_back(at(operands, 1));
            break;
          default:
            break;
        }
        break;
      case spv::decorate:
        decorate(ids_[at(operands, 0)], at(operands, 1), from(operands, 2));
        break;
      case spv::member_decorate:
        decorate_member(ids_[at(operands, 0)].members[at(operands, 1)], at(operands, 2), from(operands, 3));
        break;
      default:
        break;
    }
  }

  static void decorate(Id& id, uint32_t decoration, Operands operands) {
    switch (decoration) {
      case spv::spec_id:
        id.spec_id = at(operands, 0);
        break;
      case spv::buffer_block:
        id.buffer_block = true;
        break;
      case spv::array_stride:
        id.array_stride = at(operands, 0);
        break;
      case spv::built_in:
        id.built_in = at(operands, 0);
        break;
      case spv::non_writable:
        id.non_writable = true;
        break;
      case spv::non_readable:
        id.non_readable = true;
        break;
      case spv::binding:
        id.binding = at(operands, 0);
        break;
      case spv::descriptor_set:
        id.set = at(operands, 0);
        break;
      default:
        break;
    }
  }

  static void decorate_member(Member& member, uint32_t decoration, Operands operands) {
    switch (decoration) {
      case spv::offset:
        member.offset = at(operands, 0);
        break;
      case spv::matrix_stride:
        member.matrix_stride = at(operands, 0);
        break;
      case spv::non_writable:
        member.non_writable = true;
        break;
      case spv::non_readable:
        member.non_readable = true;
        break;
      default:
        break;
    }
  }

  void read_bindings() {
    bool has_push = false;
    for (const uint32_t variable_id : variables_) {
      const Id& variable = find(variable_id);
      const Id& pointer = find(variable.type);
      if (pointer.opcode != spv::type_pointer) malformed("a variable's type is no pointer");
      const uint32_t storage = at(variable.operands, 0);
      const uint32_t block_id = at(pointer.operands, 1);
      const Id& block = find(block_id);
      if (storage == spv::push_constant) {
        if (std::exchange(has_push, true)) malformed("it has two push-constant blocks");
        out_.push_bytes = static_cast<uint32_t>(size_of(block_id, 0, 0));
        continue;
      }
      if (!variable.set || !variable.binding) {
        malformed("variable " + std::to_string(variable_id) + " has no set or no binding");
      }
      ReflectedBinding binding{*variable.set, *variable.binding};
      binding.storage_buffer =
          block.opcode == spv::type_struct &&
          (storage == spv::storage_buffer || (storage == spv::uniform && block.buffer_block));
      const auto all_members = [&](bool Member::* flag) {
        // Every member must carry it; members without any decoration aren't in the map.
        return !block.operands.empty() && block.members.size() == block.operands.size() &&
               std::ranges::all_of(block.members, [&](const auto& entry) { return entry.second.*flag; });
      };
      binding.writable = !variable.non_writable && !all_members(&Member::non_writable);
      binding.readable = !variable.non_readable && !all_members(&Member::non_readable);
      binding.name = !variable.name.empty() ? variable.name : block.name;
      out_.bindings.push_back(std::move(binding));
    }
    std::ranges::sort(out_.bindings, {},
                      [](const ReflectedBinding& b) { return std::pair(b.set, b.binding); });
  }

  // Bytes of a type in an explicit layout.
  uint64_t size_of(uint32_t type_id, uint32_t matrix_stride, int depth) const {
    constexpr int deepest = 16;  // also ends a type that contains itself
    constexpr uint64_t largest = 1u << 20;
    if (depth > deepest) malformed("the push-constant block is nested too deep");
    const Id& type = find(type_id);
    uint64_t bytes = 0;
    switch (type.opcode) {
      case spv::type_bool:
        malformed("the push-constant block holds a bool");
        break;
      case spv::type_int:
      case spv::type_float:
        bytes = at(type.operands, 0) / 8;
        break;
      case spv::type_vector:
        bytes = uint64_t{at(type.operands, 1)} * size_of(at(type.operands, 0), 0, depth + 1);
        break;
      case spv::type_matrix: {
        const uint64_t columns = at(type.operands, 1);
        if (columns == 0) malformed("a matrix has no columns");
        const uint64_t column = size_of(at(type.operands, 0), 0, depth + 1);
        bytes = std::max<uint64_t>(matrix_stride, column) * (columns - 1) + column;
        break;
      }
      case spv::type_array: {
        const uint64_t element = size_of(at(type.operands, 0), 0, depth + 1);
        const uint64_t length = value_of(at(type.operands, 1));
        bytes = std::max<uint64_t>(type.array_stride, element) * length;
        break;
      }
      case spv::type_struct:
        for (uint32_t i = 0; i < type.operands.size(); ++i) {
          const auto member = type.members.find(i);
          if (member == type.members.end() || !member->second.offset) {
            malformed("a member of the push-constant block has no offset");
          }
          bytes = std::max(bytes, *member->second.offset +
                                      size_of(type.operands[i], member->second.matrix_stride, depth + 1));
        }
        break;
      case spv::type_pointer:
        bytes = 8;
        break;  // a buffer address
      default:
        malformed("the push-constant block holds a type without a size");
    }
    if (bytes > largest) malformed("the push-constant block is larger than any device allows");
    return bytes;
  }

  // A whole-number constant, specialization constants by their default.
  uint32_t value_of(uint32_t id) const {
    const Id& constant = find(id);
    if (constant.opcode != spv::constant && constant.opcode != spv::spec_constant) {
      malformed("id " + std::to_string(id) + " is no plain constant");
    }
    return at(constant.operands, 0);
  }

  void read_constants() {
    for (const auto& [id, entry] : ids_) {
      if (!entry.spec_id) continue;
      ReflectedConstant constant{.id = *entry.spec_id, .name = entry.name};
      switch (entry.opcode) {
        case spv::spec_constant_true:
          constant.is_switch = true;
          constant.default_value = 1;
          break;
        case spv::spec_constant_false:
          constant.is_switch = true;
          break;
        case spv::spec_constant: {
          constant.bytes = std::max<uint32_t>(4, at(find(entry.type).operands, 0) / 8);
          constant.default_value = at(entry.operands, 0);
          if (constant.bytes == 8) constant.default_value |= uint64_t{at(entry.operands, 1)} << 32;
          break;
        }
        default:
          malformed("id " + std::to_string(id) + " has a SpecId but is no specialization constant");
      }
      out_.constants.push_back(std::move(constant));
    }
    // Named ones first among equals, so that the name stays.
    std::ranges::sort(out_.constants, [](const ReflectedConstant& a, const ReflectedConstant& b) {
      return a.id != b.id ? a.id < b.id : a.name.size() > b.name.size();
    });
    // One SpecId may decorate several constants, which all take the value that is given: glslang makes
    // extra ones for local_size_x_id, with a default of 1.
    const auto [first, last] = std::ranges::unique(out_.constants, [](const auto& a, const auto& b) {
      if (a.id == b.id && a.bytes != b.bytes) {
        malformed("specialization constant " + std::to_string(a.id) + " is declared with two widths");
      }
      return a.id == b.id;
    });
    out_.constants.erase(first, last);
  }

  void read_workgroup_size() {
    std::array<uint32_t, 3> size_ids{};
    bool by_ids = local_size_is_ids_;
    if (by_ids) size_ids = local_size_;
    // The older way, which overrides the execution mode: a constant decorated as WorkgroupSize.
    for (const auto& [id, entry] : ids_) {
      if (entry.built_in != spv::workgroup_size) continue;
      if (entry.opcode != spv::spec_constant_composite && entry.opcode != spv::constant_composite) continue;
      by_ids = true;
      size_ids = {at(entry.operands, 0), at(entry.operands, 1), at(entry.operands, 2)};
    }
    if (!by_ids) {
      out_.workgroup_size = local_size_;
      return;
    }
    for (size_t i = 0; i < 3; ++i) {
      out_.workgroup_size[i] = value_of(size_ids[i]);
      out_.workgroup_size_ids[i] = find(size_ids[i]).spec_id;
      name_workgroup_size(i);
    }
  }

  // GLSL has no name for local_size_x_id, unless a constant of the same id gives it one.
  void name_workgroup_size(size_t axis) {
    constexpr std::array<const char*, 3> names{"local_size", "local_size_y", "local_size_z"};
    for (ReflectedConstant& constant : out_.constants) {
      if (constant.id == out_.workgroup_size_ids[axis] && constant.name.empty()) constant.name = names[axis];
    }
  }

  std::span<const uint32_t> words_;
  std::unordered_map<uint32_t, Id> ids_;
  std::vector<uint32_t> variables_;
  uint32_t entry_points_ = 0;
  bool local_size_is_ids_ = false;
  std::array<uint32_t, 3> local_size_{1, 1, 1};
  Reflection out_;
};

}  // namespace

bool Reflection::declares(uint32_t capability) const {
  return std::ranges::find(capabilities, capability) != capabilities.end();
}

std::array<uint32_t, 3> Reflection::workgroup_size_with(std::span<const uint32_t> values) const {
  std::array<uint32_t, 3> size = workgroup_size;
  for (size_t i = 0; i < 3; ++i) {
    if (workgroup_size_ids[i] && *workgroup_size_ids[i] < values.size()) {
      size[i] = values[*workgroup_size_ids[i]];
    }
  }
  return size;
}

Reflection reflect(std::span<const uint32_t> words) { return Reader(words).read(); }

ModuleNeeds needs_of(const Reflection& module) {
  struct Row {
    uint32_t capability = 0;
    Need need = Need::none;
    uint32_t subgroup_operation = 0;
  };
  static constexpr std::array<Row, 23> rows{{
      {0},                                              // Matrix
      {1},                                              // Shader
      {9, Need::fp16},                                  // Float16
      {11, Need::int64},                                // Int64
      {39, Need::int8},                                 // Int8
      {61, Need::none, VK_SUBGROUP_FEATURE_BASIC_BIT},  // GroupNonUniform
      {62, Need::none, VK_SUBGROUP_FEATURE_VOTE_BIT},
      {63, Need::none, VK_SUBGROUP_FEATURE_ARITHMETIC_BIT},
      {64, Need::none, VK_SUBGROUP_FEATURE_BALLOT_BIT},
      {65, Need::none, VK_SUBGROUP_FEATURE_SHUFFLE_BIT},
      {66, Need::none, VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT},
      {67, Need::none, VK_SUBGROUP_FEATURE_CLUSTERED_BIT},
      {68, Need::none, VK_SUBGROUP_FEATURE_QUAD_BIT},
      {4433, Need::storage16},             // StorageBuffer16BitAccess
      {4448, Need::int8},                  // StorageBuffer8BitAccess
      {5345},                              // VulkanMemoryModel: enabled wherever a device has it
      {5347, Need::addresses},             // PhysicalStorageBufferAddresses
      {5430, Need::coopmat2_reductions},   // CooperativeMatrixReductionsNV
      {5431, Need::coopmat2_conversions},  // CooperativeMatrixConversionsNV
      {5432, Need::coopmat2_elements},     // CooperativeMatrixPerElementOperationsNV
      {5433, Need::coopmat2_tensors},      // CooperativeMatrixTensorAddressingNV
      {5439, Need::coopmat2_tensors},      // TensorAddressingNV
      {6022, Need::coopmat},               // CooperativeMatrixKHR
  }};
  ModuleNeeds out;
  for (const uint32_t capability : module.capabilities) {
    const auto row = std::ranges::find(rows, capability, &Row::capability);
    if (row == rows.end()) {
      out.unknown.push_back(capability);
      continue;
    }
    out.needs = out.needs | row->need;
    out.subgroup_operations |= row->subgroup_operation;
  }
  return out;
}

}  // namespace vitrine

// The numbers of the SPIR-V specification that the readers of modules look at, and a walk over instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vitrine::spv {

constexpr uint32_t magic = 0x07230203;
constexpr size_t first_instruction = 5;  // behind the header

using Words = std::span<const uint32_t>;

enum Op : uint32_t {
  name = 5,
  member_name = 6,
  ext_inst = 12,
  entry_point = 15,
  execution_mode = 16,
  capability = 17,
  type_first = 19,
  type_bool = 20,
  type_int = 21,
  type_float = 22,
  type_vector = 23,
  type_matrix = 24,
  type_array = 28,
  type_struct = 30,
  type_pointer = 32,
  type_last = 38,
  constant_first = 41,
  constant_true = 41,
  constant_false = 42,
  constant = 43,
  constant_composite = 44,
  spec_constant_true = 48,
  spec_constant_false = 49,
  spec_constant = 50,
  spec_constant_composite = 51,
  spec_constant_op = 52,
  constant_last = 52,
  function = 54,
  function_call = 57,
  variable = 59,
  load = 61,
  access_chain = 65,
  decorate = 71,
  member_decorate = 72,
  composite_extract = 81,
  i_add = 128,
  i_sub = 130,
  i_mul = 132,
  u_div = 134,
  u_mod = 137,
  logical_or = 166,
  logical_and = 167,
  logical_not = 168,
  select = 169,
  i_equal = 170,
  i_not_equal = 171,
  u_greater = 172,
  u_greater_equal = 174,
  u_less = 176,
  u_less_equal = 178,
  shift_right = 194,
  shift_left = 196,
  bit_or = 197,
  bit_and = 199,
  loop_merge = 246,
  selection_merge = 247,
  label = 248,
  branch_conditional = 250,
  branch_switch = 251,
  execution_mode_id = 331,
  group_first = 333,          // OpGroupNonUniformElect
  group_last = 366,           // OpGroupNonUniformQuadSwap
  subgroup_khr_first = 4421,  // OpSubgroupBallotKHR
  subgroup_khr_last = 4432,   // OpSubgroupReadInvocationKHR
  cooperative_first = 4456,   // OpTypeCooperativeMatrixKHR
  cooperative_last = 4460,    // OpCooperativeMatrixLengthKHR
};

enum Decoration : uint32_t {
  spec_id = 1,
  buffer_block = 3,
  array_stride = 6,
  matrix_stride = 7,
  built_in = 11,
  non_writable = 24,
  non_readable = 25,
  binding = 33,
  descriptor_set = 34,
  offset = 35,
};
enum BuiltIn : uint32_t { num_workgroups = 24, workgroup_size = 25, workgroup_id = 26 };
enum Storage : uint32_t {
  uniform_constant = 0,
  uniform = 2,
  workgroup = 4,
  push_constant = 9,
  storage_buffer = 12
};
enum LoopControl : uint32_t { unroll = 1, dont_unroll = 2 };
constexpr uint32_t model_compute = 5;
constexpr uint32_t mode_local_size = 17, mode_local_size_id = 38;

// Calls visit(opcode, operands) for one instruction after the other. Returns the word that it ended at:
// behind the last, or where an instruction claims no words at all or more than are left.
template <typename Visit>
size_t for_each_instruction(Words words, const Visit& visit) {
  size_t at = first_instruction;
  while (at < words.size()) {
    const uint32_t count = words[at] >> 16, opcode = words[at] & 0xffff;
    if (count == 0 || count > words.size() - at) break;
    visit(opcode, words.subspan(at + 1, count - 1));
    at += count;
  }
  return at;
}

}  // namespace vitrine::spv

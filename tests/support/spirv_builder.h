// Writes SPIR-V modules word by word, for tests of what reads them.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace vitrine::test {

// Numbers of the specification, by its names.
namespace spirv {
enum : uint32_t {
  OpUndef = 1,
  OpName = 5,
  OpEntryPoint = 15,
  OpExecutionMode = 16,
  OpCapability = 17,
  OpTypeVoid = 19,
  OpTypeBool = 20,
  OpTypeInt = 21,
  OpTypeFloat = 22,
  OpTypeVector = 23,
  OpTypeMatrix = 24,
  OpTypeArray = 28,
  OpTypeRuntimeArray = 29,
  OpTypeStruct = 30,
  OpTypePointer = 32,
  OpTypeFunction = 33,
  OpConstant = 43,
  OpSpecConstantTrue = 48,
  OpSpecConstant = 50,
  OpSpecConstantComposite = 51,
  OpSpecConstantOp = 52,
  OpFunction = 54,
  OpFunctionEnd = 56,
  OpFunctionCall = 57,
  OpVariable = 59,
  OpLoad = 61,
  OpAccessChain = 65,
  OpDecorate = 71,
  OpMemberDecorate = 72,
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
  OpReturn = 253,
  OpExecutionModeId = 331,
  // operations on constants
  IMul = 132,
  UDiv = 134,
  // storage classes
  Uniform = 2,
  Workgroup = 4,
  Private = 6,
  PushConstant = 9,
  StorageBuffer = 12,
  // decorations
  SpecId = 1,
  BufferBlock = 3,
  ArrayStride = 6,
  MatrixStride = 7,
  BuiltIn = 11,
  NonWritable = 24,
  NonReadable = 25,
  Binding = 33,
  DescriptorSet = 34,
  Offset = 35,
};
}  // namespace spirv

class SpirvBuilder {
 public:
  SpirvBuilder() : words_{0x07230203, 0x00010600, 0, 1000, 0} {}

  SpirvBuilder& op(uint32_t opcode, std::initializer_list<uint32_t> operands) {
    words_.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | opcode);
    words_.insert(words_.end(), operands);
    return *this;
  }
  // An instruction with a string at its end.
  SpirvBuilder& text_op(uint32_t opcode, std::initializer_list<uint32_t> operands, std::string_view text) {
    std::vector<uint32_t> packed(text.size() / 4 + 1, 0);
    std::memcpy(packed.data(), text.data(), text.size());
    words_.push_back(static_cast<uint32_t>(operands.size() + packed.size() + 1) << 16 | opcode);
    words_.insert(words_.end(), operands);
    words_.insert(words_.end(), packed.begin(), packed.end());
    return *this;
  }
  const std::vector<uint32_t>& words() const { return words_; }

 private:
  std::vector<uint32_t> words_;
};

}  // namespace vitrine::test

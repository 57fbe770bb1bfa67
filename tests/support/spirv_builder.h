// Writes SPIR-V modules word by word, for tests of what reads them.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace vitrine::test {

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
